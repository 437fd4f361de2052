"""The files that an edit is about: what is there, and what is to become of it.

`operations.edits.staging` makes the one of the other; the writer takes the steps and nothing else.
"""

from collections.abc import Iterable
from difflib import unified_diff
from typing import Protocol

from msgspec import Struct

from pilotfish.api.answers import FileChange
from pilotfish.model import AbsPath
from pilotfish.paths import shown_path
from pilotfish.policy.boundary import Admitted
from pilotfish.system.ports import Identity


class Free(Struct, frozen=True):
    """Nothing is there, and a file may be."""

    place: Admitted


class Regular(Struct, frozen=True):
    """A file that may be changed."""

    place: Admitted
    identity: Identity
    mode: int


class StagedFolder(Struct, frozen=True):
    place: Admitted


class StagedTree(Struct, frozen=True):
    """All that is below a folder; `folders` has the folder itself first, and each before those in it."""

    files: tuple[Regular, ...]
    folders: tuple[Admitted, ...]


class Disk(Protocol):
    """The files as they are. Everything raises `Refused` for what may not be changed."""

    def at(self, path: AbsPath, *, itself: bool = False) -> Free | Regular | StagedFolder:
        """What is at a path. With `itself`, a symbolic link is refused and not followed."""
        ...

    def read(self, file: Regular) -> tuple[str, bool]:
        """The text without its byte-order mark, and whether there is one."""
        ...

    def tree(self, folder: StagedFolder) -> StagedTree: ...


class Put(Struct, frozen=True):
    """A file gets new content, or that of another file as it is, and the mode of `like`."""

    place: Admitted
    before: Regular | None
    content: bytes | Regular
    like: Regular | None


class Drop(Struct, frozen=True):
    place: Admitted
    before: Regular


class FileEffect(Struct, frozen=True):
    """What becomes of one file. Texts are there where they were needed."""

    old: AbsPath | None
    new: AbsPath | None
    before: str | None = None
    after: str | None = None
    edits: int = 0


class Staged(Struct, frozen=True):
    """All that is to be done: nothing, when `steps` is empty."""

    steps: tuple[Put | Drop, ...]
    emptied: tuple[Admitted, ...]
    """Folders that were moved or deleted, each before those in it."""
    effects: tuple[FileEffect, ...]

    def changes(self, workspace: AbsPath) -> tuple[FileChange, ...]:
        """As surfaces see it."""

        def shown(path: AbsPath | None) -> str | None:
            return None if path is None else shown_path(path, workspace)

        return ordered(
            file_change(shown(one.old), shown(one.new), one.before, one.after, one.edits) for one in self.effects
        )


def file_change(old: str | None, new: str | None, before: str | None, after: str | None, edits: int) -> FileChange:
    """What becomes of a file, by its shown paths and its texts; None where there is none, or it was not needed."""
    if new is None:
        return FileChange(old or "", "delete")
    changed = after is not None and after != before
    diff = unified(before or "", after or "", old=old, new=new) or None if changed else None
    if old is None:
        return FileChange(new, "create", edits=edits, diff=diff)
    if old != new:
        return FileChange(old, "rename", new, edits, diff)
    return FileChange(old, "edit", edits=edits, diff=diff)


# --- Unified diffs, for people and models to read and for `patch` to apply --------------------------------------------

# Lines end at `\n` here, as in every diff tool: the `\r` of a Windows line is part of the line.

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
