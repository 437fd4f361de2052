"""What a server wants to know of files that change on disk, and what it is told.

A server registers globs; the watcher of the host reports changes as they come; `Coalescer` gathers them until the next
flush, and `batch` makes the one notification of them that a server gets.

Per path, what happened since the last flush becomes one change:
- Created, then changed, is created. Changed, then deleted, is deleted.
- Deleted, then created, is changed: that is how many tools save a file, and the server knows it by that name.
- Created, then deleted, stays both, in this order. Leaving both out would be right only if nothing was missed before;
  a deletion too many does no harm.
The paths keep the order in which they reached their last state, so that a folder is created before what is in it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import fields, items, member
from pilotfish.protocol.globs import BadGlob, FileGlob, file_glob, path_below
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import DidChangeWatchedFilesParams, FileEvent

MAX_PENDING = 100_000
"""Paths held between two flushes. A branch switch in a large repository changes some ten thousand; beyond this, looking
at the files again is cheaper than the list."""

ALL_KINDS = 7
"""The kinds of a watcher that names none."""


class Change(IntEnum):
    """What happened to a file or folder, in the numbers of the protocol."""

    CREATED = 1
    CHANGED = 2
    DELETED = 3


class PathChange(Struct, frozen=True):
    path: AbsPath
    change: Change
    is_alias: bool = False
    """The file has another name, by which its change is told as well."""


class WatchRegistration(Struct, frozen=True):
    """One watcher of a server: a glob, and the kinds of change as a sum of 1 (created), 2 (changed), 4 (deleted)."""

    glob: FileGlob
    kinds: int = ALL_KINDS


class Flush(Struct, frozen=True):
    """What was gathered. `rescan` says that changes were lost, so that only looking at the files tells the truth."""

    changes: tuple[PathChange, ...]
    rescan: bool = False


class Coalescer:
    """The changes since the last flush."""

    def __init__(self, limit: int = MAX_PENDING) -> None:
        self._limit = limit
        self._pending: dict[AbsPath, tuple[Change, ...]] = {}
        self._rescan = False

    def add(self, found: PathChange) -> None:
        """Take in one change; nothing is kept any more once a rescan is due."""
        if self._rescan:
            return
        before = self._pending.get(found.path, _NOTHING)
        after = _COMBINED[before, found.change]
        if after != before:
            self._pending.pop(found.path, None)
            self._pending[found.path] = after
        if len(self._pending) > self._limit:
            self.lose()

    def lose(self) -> None:
        """The host lost changes (a full queue, a dead watch): what is pending is only a part of the truth."""
        self._pending.clear()
        self._rescan = True

    def flush(self) -> Flush:
        """Hand over what is pending, and start afresh."""
        changes = tuple(PathChange(path, change) for path, changes in self._pending.items() for change in changes)
        flush = Flush(changes, self._rescan)
        self._pending, self._rescan = {}, False
        return flush


def watch_registrations(options: object) -> Iterator[WatchRegistration]:
    """Read `DidChangeWatchedFilesRegistrationOptions`, leaving out watchers with a bad glob."""
    for item in map(fields, items(member(options, "watchers"))):
        kinds = item.get("kind")
        with suppress(BadGlob):
            yield WatchRegistration(file_glob(item.get("globPattern")), kinds if isinstance(kinds, int) else ALL_KINDS)


def batch(
    changes: Iterable[PathChange], registrations: Sequence[WatchRegistration], roots: Sequence[AbsPath]
) -> DidChangeWatchedFilesParams | None:
    """What one server is told of `changes`; None when none is of interest to it."""
    events = [FileEvent(uri_of(found.path), found.change) for found in wanted(changes, registrations, roots)]
    return DidChangeWatchedFilesParams(events) if events else None


def wanted(
    changes: Iterable[PathChange], registrations: Sequence[WatchRegistration], roots: Sequence[AbsPath]
) -> tuple[PathChange, ...]:
    """Those of `changes` that are of interest."""
    return tuple(
        found
        for found in changes
        if any(one.kinds & 1 << (found.change - 1) and one.glob.matches(found.path, roots) for one in registrations)
    )


def may_match(registrations: Iterable[WatchRegistration], folder: AbsPath, roots: Sequence[AbsPath]) -> bool:
    """Whether anything below `folder` can be of interest: where not, it need not be watched."""
    return any(registration.glob.may_match_below(folder, roots) for registration in registrations)


def asks_for(registrations: Iterable[WatchRegistration], folder: AbsPath, roots: Sequence[AbsPath]) -> bool:
    """Whether a registration means `folder` itself, and not just everything: then it is watched even if ignored."""
    name = os.path.basename(folder)
    for glob in (registration.glob for registration in registrations):
        if glob.base is not None:
            # Packages have packages of their own: `node_modules` in `node_modules`.
            is_nested = name == os.path.basename(glob.base) and _inside(folder, glob.base)
            if is_nested or path_below(glob.base, folder) is not None:
                return True
        if name in glob.glob.names and glob.may_match_below(folder, roots):
            return True
    return False


def roots_to_watch(registrations: Iterable[WatchRegistration], roots: Sequence[AbsPath]) -> tuple[AbsPath, ...]:
    """The folders below which changes are of interest, without those inside another; `roots` are the workspace's.

    A `**` that starts above the workspace counts for the workspace only: no server may watch the whole machine.
    """
    wanted = {base for registration in registrations for base in _bases(registration.glob, roots)}
    return tuple(sorted(base for base in wanted if not any(_inside(base, other) for other in wanted - {base})))


def _bases(glob: FileGlob, roots: Sequence[AbsPath]) -> Iterator[AbsPath]:
    for base in glob.glob.anchors if glob.base is None else (glob.base,):
        inside = roots if base is None else [root for root in roots if _inside(root, base)]
        if base is None or (glob.glob.deep and inside):
            yield from inside
        else:
            yield base


def _inside(path: AbsPath, folder: AbsPath) -> bool:
    return bool(path_below(path, folder))


_NOTHING: tuple[Change, ...] = ()
_CREATED, _CHANGED, _DELETED = ((change,) for change in Change)
_PASSING = (Change.CREATED, Change.DELETED)
_COMBINED: dict[tuple[tuple[Change, ...], Change], tuple[Change, ...]] = {
    (_NOTHING, Change.CREATED): _CREATED,
    (_NOTHING, Change.CHANGED): _CHANGED,
    (_NOTHING, Change.DELETED): _DELETED,
    (_CREATED, Change.CREATED): _CREATED,
    (_CREATED, Change.CHANGED): _CREATED,
    (_CREATED, Change.DELETED): _PASSING,
    (_CHANGED, Change.CREATED): _CHANGED,
    (_CHANGED, Change.CHANGED): _CHANGED,
    (_CHANGED, Change.DELETED): _DELETED,
    (_DELETED, Change.CREATED): _CHANGED,
    (_DELETED, Change.CHANGED): _CHANGED,
    (_DELETED, Change.DELETED): _DELETED,
    (_PASSING, Change.CREATED): _CREATED,
    (_PASSING, Change.CHANGED): _CREATED,
    (_PASSING, Change.DELETED): _PASSING,
}
"""What is pending for a path, and what happens next: what is pending then."""
