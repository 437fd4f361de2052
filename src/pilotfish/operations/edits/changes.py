"""What a workspace edit would do, shown before it is done.

A plan is carried out in thought, in its own order, on the texts at hand: that gives the text of every file before and
after, and so a diff for each. Where a text is not at hand (an external file, one that cannot be read) the change is
listed without a diff; applying them is refused.
"""

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct

from pilotfish.api.answers import Changes, FileChange
from pilotfish.operations.edits.staged import file_change, ordered
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
    return tuple(dict.fromkeys(label for operation in plan.operations for label in _to_confirm(operation)))


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


def _to_confirm(operation: EditOperation) -> Iterator[str]:
    parts = operation.edits if isinstance(operation, TextChange) else (operation,)
    for part in parts:
        if part.annotation is not None and part.annotation.needs_confirmation:
            yield part.annotation.label
