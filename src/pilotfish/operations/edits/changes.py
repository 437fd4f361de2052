"""What a workspace edit would do, shown before it is done.

A plan is carried out in thought, in its own order, on the texts at hand: that gives the text of every file before and
after, and so a diff for each. Where a text is not at hand (an external file, one that cannot be read) the change is
listed without a diff; applying them is refused.
"""

from collections.abc import Iterable
from difflib import unified_diff
from typing import assert_never

from msgspec import Struct

from pilotfish.api.answers import Changes, FileChange
from pilotfish.operations.results import NOWHERE, Spot, View
from pilotfish.protocol.edits import (
    Create,
    Delete,
    EditOperation,
    EditPlan,
    OnExisting,
    Rename,
    Resource,
    TextChange,
    apply_edits,
)
from pilotfish.protocol.positions import Text


def preview(plan: EditPlan, view: View) -> Changes:
    """The plan as surfaces see it; raises `Overlapping` when its edits contradict each other."""
    stage = _Stage(view)
    for operation in plan.operations:
        stage.perform(operation)
    return Changes(applied=False, files=stage.changes(), confirm=to_confirm(plan))


def to_confirm(plan: EditPlan) -> tuple[str, ...]:
    """What the server wants a person to agree to first."""
    parts = [part for one in plan.operations for part in (one.edits if isinstance(one, TextChange) else (one,))]
    annotations = (part.annotation for part in parts)
    return tuple(dict.fromkeys(one.label for one in annotations if one is not None and one.needs_confirmation))


class _File(Struct):
    """One file on the stage: where it was, where it is, and what was in it."""

    source: Spot | None
    target: Spot | None
    before: str | None
    after: str | None
    edits: int = 0


class _Stage:
    """The files that a plan has touched so far."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._files: list[_File] = []

    def perform(self, operation: EditOperation) -> None:
        match operation:
            case TextChange():
                file = self._at(operation.resource)
                file.edits += len(operation.edits)
                if file.after is not None:
                    file.after = apply_edits(Text(file.after), operation.edits, self._view.encoding)
            case Create():
                self._create(operation)
            case Rename():
                self._at(operation.source).target = _spot(operation.target)
            case Delete():
                self._at(operation.resource).target = None
            case _:
                assert_never(operation)

    def changes(self) -> tuple[FileChange, ...]:
        changes = (_change(file, self._view) for file in self._files)
        return ordered(change for change in changes if change is not None)

    def _create(self, operation: Create) -> None:
        spot = _spot(operation.resource)
        text = self._view.text(spot)
        if text is None:
            self._files.append(_File(None, spot, "", ""))
        elif operation.on_existing is not OnExisting.IGNORE:
            self._files.append(_File(spot, spot, text.string, ""))

    def _at(self, resource: Resource) -> _File:
        """The file that is at this place by now."""
        spot = _spot(resource)
        for file in reversed(self._files):
            if file.target is not None and (file.target.path or file.target.uri) == (spot.path or spot.uri):
                return file
        text = self._view.text(spot)
        string = None if text is None else text.string
        self._files.append(_File(spot, spot, string, string))
        return self._files[-1]


def _change(file: _File, view: View) -> FileChange | None:
    """What happened to one file; None for one that came and went."""
    old = None if file.source is None else view.path(file.source)
    new = None if file.target is None else view.path(file.target)
    return None if old is new is None else file_change(old, new, file.before, file.after, file.edits)


def _spot(resource: Resource) -> Spot:
    return Spot(resource.uri, NOWHERE)


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
