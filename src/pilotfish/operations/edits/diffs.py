"""Unified diffs, for people and models to read and for `patch` to apply.

Lines end at `\\n` here, as in every diff tool: the `\\r` of a Windows line is part of the line.
"""

from collections.abc import Iterable
from difflib import unified_diff

from pilotfish.api.answers import FileChange

NO_FILE = "/dev/null"
"""What stands for the side on which there is no file."""

_NO_NEWLINE = "\n\\ No newline at end of file\n"


def unified(before: str, after: str, *, old: str | None, new: str | None) -> str:
    """The diff from one text to another, empty when they are the same; a side without a file has no name."""
    names = (NO_FILE if old is None else f"a/{old}", NO_FILE if new is None else f"b/{new}")
    lines = unified_diff(_lines(before), _lines(after), *names)
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)


def ordered(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """By path where all are edits, which some servers name in another order each time; moves stay in theirs."""
    listed = tuple(changes)
    edits_only = all(change.kind == "edit" for change in listed)
    return tuple(sorted(listed, key=lambda change: change.path)) if edits_only else listed


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
