"""An answer with its paths relative to the current folder, as other commands print them."""

import os
from typing import Any, cast

import msgspec

from pilotfish.api.answers import Answer
from pilotfish.operations.answers import answer_of
from pilotfish.system.real_path import real_path

PATHS = frozenset({"path", "newPath"})


def relative_to(cwd: str, answer: Answer[Any], root: str) -> Answer[Any]:
    """The same answer, every path inside the workspace relative to `cwd`; diffs stay relative to the root."""
    here = real_path(cwd)
    if here == root or answer.data is None:
        return answer

    def moved(path: str) -> str:
        # A URI such as `jdt://…` has a colon before its first slash.
        is_inside = not os.path.isabs(path) and ":" not in path.partition("/")[0]
        return os.path.relpath(os.path.join(root, path), here) if is_inside else path

    def walked(value: object) -> object:
        if isinstance(value, list | tuple):
            return [walked(item) for item in cast("list[object]", value)]
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, object]", value)
        return {
            name: moved(item) if name in PATHS and isinstance(item, str) else walked(item)
            for name, item in members.items()
        }

    plain = cast("dict[str, object]", walked(msgspec.to_builtins(answer)))
    if isinstance(answer.data, dict):
        by_path = cast("dict[str, object]", plain["data"])
        plain["data"] = {moved(path): items for path, items in by_path.items()}
    return answer_of(plain)
