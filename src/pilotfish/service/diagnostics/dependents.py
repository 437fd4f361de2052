"""Files that may depend on a changed one, by what they mention. No server is asked, so it costs the same for all.

A file that imports another names it, in every language that we know: by its stem, or by its folder where the stem only
stands for the folder (`__init__`, `index`, `mod`). That is a guess that errs on the side of too many, so it is bounded,
nearest files first, and each is then checked for real.
"""

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.paths import is_dependency

STANDS_FOR_FOLDER = frozenset({"__init__", "index", "mod"})

MAX_LISTED = 5_000
"""Files looked at by name; beyond it a project is so large that the nearest files must do."""

MAX_READ = 600
"""Files whose text is searched: some 50 ms of reading."""

MAX_READ_BYTES = 64 * 1024
"""Imports stand near the top of a file."""


class Changed(Struct, frozen=True):
    """The file that others may depend on, and what counts as the same kind of file."""

    path: AbsPath
    extensions: frozenset[str]


def dependents_of(changed: Changed, workspace: AbsPath, most: int) -> tuple[AbsPath, ...]:
    """At most `most` files that mention the changed one, nearest first. Reads files: run it in a worker thread."""
    word = _name(changed.path)
    if len(word) < 2:
        return ()
    mention = re.compile(rb"\b" + re.escape(os.fsencode(word)) + rb"\b")
    near = sorted(_files(changed, workspace), key=lambda path: (_distance(path, changed.path), path))
    found: list[AbsPath] = []
    for path in near[:MAX_READ]:
        if _mentions(path, mention):
            found.append(path)
            if len(found) == most:
                break
    return tuple(found)


def _name(path: AbsPath) -> str:
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem in STANDS_FOR_FOLDER else stem


def _files(changed: Changed, workspace: AbsPath) -> Iterator[AbsPath]:
    """Files of the same kind, folder by folder from the changed file's own outwards."""
    listed = 0
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if not name.startswith(".") and not is_dependency((name,))]
        for name in names:
            path = AbsPath(os.path.join(folder, name))
            if os.path.splitext(name)[1] in changed.extensions and path != changed.path:
                yield path
        listed += len(names)
        if listed > MAX_LISTED:
            return


def _distance(path: AbsPath, other: AbsPath) -> int:
    """Steps between the folders of two files."""
    return len(os.path.relpath(os.path.dirname(path), os.path.dirname(other)).split(os.sep))


def _mentions(path: AbsPath, mention: re.Pattern[bytes]) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return mention.search(os.read(descriptor, MAX_READ_BYTES)) is not None
    except OSError:
        return False
    finally:
        os.close(descriptor)
