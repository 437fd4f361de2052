"""The files that somebody changed on disk between two events of a conversation, each with one word for all changes."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

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


class Written(Struct, frozen=True):
    change: Change
    before: str | None
    """What was last seen of the file before the first change; None: nobody has looked. Empty: there was no file."""


class WrittenFiles:
    def __init__(self, changes: Mapping[AbsPath, Written] | None = None) -> None:
        self._changes: dict[AbsPath, Written] = dict(changes or {})

    def takes(self, path: AbsPath) -> bool:
        """Whether a change of this file would be remembered."""
        return path in self._changes or len(self._changes) < MAX_WRITTEN

    def add(self, found: PathChange, before: str | None) -> None:
        if not self.takes(found.path):
            return
        known = self._changes.get(found.path)
        if known is None:
            self._changes[found.path] = Written(found.change, before)
            return
        both = MERGED.get((known.change, found.change), found.change)
        if both is None:
            del self._changes[found.path]
        else:
            self._changes[found.path] = Written(both, known.before)

    def restore(self, changes: Mapping[AbsPath, Written]) -> None:
        """Put back what was taken: it comes before what was noticed since."""
        for path, one in changes.items():
            since = self._changes.get(path)
            self._changes[path] = one if since is None else Written(since.change, one.before)

    def discard(self, path: AbsPath) -> Written | None:
        return self._changes.pop(path, None)

    def clear(self, *, but: AbstractSet[AbsPath] = frozenset()) -> None:
        self._changes = {path: change for path, change in self._changes.items() if path in but}

    def all(self) -> dict[AbsPath, Written]:
        return dict(self._changes)
