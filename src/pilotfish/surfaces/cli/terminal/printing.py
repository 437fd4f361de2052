"""Prints answers: for people on a terminal, one result per line in a pipe, the envelope as JSON."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import click
import msgspec
from msgspec import Struct

from pilotfish.api.answers import Answer
from pilotfish.operations.cleaning import MAX_MESSAGE, structured
from pilotfish.operations.render import text_of
from pilotfish.operations.rows import answer_of
from pilotfish.protocol.notebooks import NotANotebook, code_of, is_notebook
from pilotfish.protocol.positions import Text
from pilotfish.sanitise import sanitised_lines
from pilotfish.surfaces.cli.terminal.answers import Screen, answer_lines
from pilotfish.surfaces.cli.terminal.exit_codes import is_refused
from pilotfish.system import calls
from pilotfish.system.real_path import real_path

MIN_COLUMNS = 40
"""On a narrower terminal lines wrap."""

MAX_SOURCE_BYTES = 4 * 1024 * 1024
"""Of a larger file, source lines are shown only from its first part."""


class Printed(Struct, frozen=True):
    """What goes to standard output and to standard error, without the last end of line."""

    output: str | None = None
    error: str | None = None


def print_all(printed: Printed) -> None:
    if printed.output is not None:
        click.echo(printed.output)
        # Whoever reads the other end of a pipe need not wait for more.
        sys.stdout.flush()
    if printed.error is not None:
        click.echo(printed.error, err=True)


def printed_answer(answer: Answer[Any], root: str, cwd: str, screen: Screen | None, *, as_json: bool) -> Printed:
    """An answer as it is printed in the folder `cwd`; without a `screen`, in a pipe."""
    if as_json:
        # ASCII, because a pipe may have any encoding.
        return Printed(json.dumps(structured(answer)))
    if is_refused(answer):
        # Nothing was asked, so a program that reads standard output gets nothing.
        return Printed(error="\n".join(sanitised_lines(error.message, MAX_MESSAGE) for error in answer.errors))
    shown = relative_to(cwd, answer, root) if root else answer
    return Printed("\n".join(answer_lines(shown, screen)) if screen else text_of(shown, grouped=False))


def find_screen(texts: Mapping[str, str] | None = None) -> Screen | None:
    """The terminal; None in a pipe. `texts` replace the contents of files on disk."""
    if not sys.stdout.isatty():
        return None
    given = {path: Text(text) for path, text in (texts or {}).items()}

    @cache
    def text_of(path: str) -> Text | None:
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | calls.O_NONBLOCK), "rb") as file:
                text = file.read(MAX_SOURCE_BYTES).decode("utf-8-sig", "replace")
                return Text(code_of(text) if is_notebook(path) else text)
        except (OSError, NotANotebook):
            return None

    def line(path: str, number: int) -> str | None:
        text = given.get(path) or text_of(path)
        return text.line(number - 1) if text is not None and 0 < number <= text.line_count else None

    return Screen(max(MIN_COLUMNS, shutil.get_terminal_size().columns), line)


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
