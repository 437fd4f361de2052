"""The files that an edit is about: what is there, and what is to become of it.

`operations.edits.staging` makes the one of the other; the writer takes the steps and nothing else.
"""

from typing import Protocol

from msgspec import Struct

from pilotfish.api.answers import FileChange
from pilotfish.model import AbsPath
from pilotfish.operations.edits.diffs import ordered, unified
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
        return ordered(_change(effect, workspace) for effect in self.effects)


def _change(effect: FileEffect, workspace: AbsPath) -> FileChange:
    old = None if effect.old is None else shown_path(effect.old, workspace)
    new = None if effect.new is None else shown_path(effect.new, workspace)
    if new is None:
        return FileChange(old or "", "delete")
    changed = effect.after is not None and effect.after != effect.before
    diff = unified(effect.before or "", effect.after or "", old=old, new=new) or None if changed else None
    if old is None:
        return FileChange(new, "create", edits=effect.edits, diff=diff)
    if old != new:
        return FileChange(old, "rename", new, effect.edits, diff)
    return FileChange(old, "edit", edits=effect.edits, diff=diff)
