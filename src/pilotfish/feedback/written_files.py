"""The files that somebody changed on disk between two events of a conversation, each with one word for all changes."""

from collections.abc import Collection, Mapping

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange

MAX_WRITTEN = 5_000
"""Paths that are remembered until the next event: a branch switch may change more, and then the first ones count."""

MERGED: Mapping[tuple[Change, Change], Change | None] = {
    (Change.CREATED, Change.CHANGED): Change.CREATED,
    (Change.CREATED, Change.DELETED): None,
    (Change.DELETED, Change.CREATED): Change.CHANGED,
}
"""The first change and the next → both together; None: as if nothing had been. Of other pairs the next one stands."""


class WrittenFiles:
    def __init__(self, changes: Mapping[AbsPath, Change] | None = None) -> None:
        self._changes: dict[AbsPath, Change] = dict(changes or {})

    def add(self, found: PathChange) -> None:
        before = self._changes.get(found.path)
        if before is None:
            if len(self._changes) < MAX_WRITTEN:
                self._changes[found.path] = found.change
            return
        both = MERGED.get((before, found.change), found.change)
        if both is None:
            del self._changes[found.path]
        else:
            self._changes[found.path] = both

    def discard(self, path: AbsPath) -> None:
        self._changes.pop(path, None)

    def clear(self, *, but: Collection[AbsPath] = ()) -> None:
        self._changes = {path: change for path, change in self._changes.items() if path in but}

    def all(self) -> dict[AbsPath, Change]:
        return dict(self._changes)
