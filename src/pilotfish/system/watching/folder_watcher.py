"""The `Watcher` port: a picture of the folders of a root, kept true by what the system tells and by looking.

Rules:
- What the system tells is a hint where to look; `tree` compares. Where it has dropped something, all is looked at.
- A folder of which the system tells nothing, or not in time, is polled, in slices, and `health` says when that did not
  suffice. On Linux these are exceptions; elsewhere all folders are such, and the system only says when to look.
- What was written before `drain` was called is seen, whoever wrote it.

Many hints, and everything that walks the tree, are dealt with in a worker thread; `_lock` keeps it to one at a time.
One hint may stand for a tree of any size that was moved here or away, so at once only files are looked at.
"""

import math
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import anyio
import anyio.to_thread
from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.paths import top_folder
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.ports import Clock, Interest, WatchHealth
from pilotfish.system.tasks import first_of
from pilotfish.system.watching.ignoring import tops
from pilotfish.system.watching.tree import MAX_FOLDERS, MAX_SHARED, WatchedTree
from pilotfish.system.watching.watches import Sentry, Watches

INLINE_BYTES = 16 * 1024
"""Of waiting events. Up to here, some 500 events, they take less than 10 ms."""

POLL_SECONDS = 2.0
"""How often what nothing is told of is looked at while no question comes."""

BUSY = 10
"""A look may take so many times longer than its work, on a machine that is busy with something else."""

MAX_SECONDS = 10.0
"""Of one look, however busy the machine is: somebody waits for the answer."""

CLOSE_SECONDS = 5.0
"""For a walk over the tree that is under way; one over 50,000 folders takes as long."""


class Hints(Struct):
    """Where something may have changed."""

    names: dict[tuple[AbsPath, str], bool] = field(default_factory=dict[tuple[AbsPath, str], bool])
    """Folder and name → whether it was written."""
    has_folders: bool = False
    are_lost: bool = False
    """The system dropped some."""


class ChangeSource(Sentry, Protocol):
    """What the system tells."""

    trouble: str
    """Why a folder could not be watched, the last time that one could not; empty where none ever is."""

    @property
    def slice_seconds(self) -> float:
        """How much work one look at folders without a watch may be."""
        ...

    @property
    def tells_of_polled(self) -> bool:
        """Of changes in folders that have no watch, too, if late."""
        ...

    def waiting_bytes(self) -> int:
        """How much it holds."""
        ...

    def read(self, hints: Hints, watches: Watches) -> None:
        """Take in everything that it tells of."""

    async def readable(self, unwatched: Collection[AbsPath]) -> None:
        """Wait until there may be something to look at; `unwatched` are the folders without a watch."""

    async def close(self) -> None: ...


class FolderWatcher:
    """Whoever makes one must close it."""

    def __init__(self, source: ChangeSource, clock: Clock) -> None:
        self._source = source
        self._tree = WatchedTree(source, clock.wall, is_told_late=source.tells_of_polled)
        self.recent = self._tree.recent
        self._aliases = Aliases(self._tree)
        self.aliases = self._aliases.of
        self._interest = Interest(())
        self._lock = anyio.Lock()
        self._renewed = anyio.Event()
        self._hints = Hints()
        """What was told and nobody has looked at yet."""
        self._overflows = 0

    async def cover(self, interest: Interest) -> None:
        async with self._lock:
            before = self._interest
            try:
                if (before.roots, before.registrations) != (interest.roots, interest.registrations):
                    await anyio.to_thread.run_sync(self._cover, interest)
                self._tree.attend(interest.folders)
                self._interest = interest
            finally:
                self._renewed.set()
                self._renewed = anyio.Event()

    async def drain(self) -> tuple[PathChange, ...]:
        found = self.drain_now()
        if found is not None:
            return found
        async with self._lock:
            await anyio.to_thread.run_sync(self._catch_up)
            return self._tree.take()

    def drain_now(self) -> tuple[PathChange, ...] | None:
        waiting = self._source.waiting_bytes()
        if self._lock.locked() or waiting > INLINE_BYTES or self._tree.watches.without:
            return None
        self._source.read(self._hints, self._tree.watches)
        if self._hints.has_folders or self._hints.are_lost or not self._tree.is_settled():
            return None
        self._look_at_hints()
        return None if self._tree.to_reread else self._tree.take()

    async def wait_for_changes(self) -> None:
        async def wait_for_events() -> None:
            async with self._lock:  # a walk in its thread changes what is watched
                unwatched = frozenset(self._tree.watches.without)
                polls = self._tree.missing or (unwatched and not self._source.tells_of_polled)
            with anyio.move_on_after(POLL_SECONDS if polls else math.inf):
                await self._source.readable(unwatched)

        await first_of(self._renewed.wait, wait_for_events)

    @property
    def health(self) -> WatchHealth:
        tree, degraded = self._tree, None
        without = len(tree.watches.without)
        if tree.crowded:
            degraded = f"there are more than {MAX_FOLDERS} folders; the others are not watched"
        elif without and (trouble := self._source.trouble or tree.trouble):
            degraded = trouble
        elif tree.is_behind:
            degraded = f"there is more to look at than {self._source.slice_seconds:g} s suffice for"
        elif tree.has_too_many_links:
            degraded = f"there are more than {MAX_SHARED} links or files with several names"
        behind = degraded if tree.crowded or tree.has_too_many_links or tree.is_behind else None
        polled = 0 if self._source.tells_of_polled else without
        return WatchHealth(len(tree.watches) + without - polled, polled, self._overflows, degraded, behind)

    async def aclose(self) -> None:
        """Also while everything around is being cancelled; a walk that is under way ends by itself."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._lock.acquire()
            self._lock.release()
        with anyio.CancelScope(shield=True):
            await self._source.close()

    def _cover(self, interest: Interest) -> None:
        self._tree.cover(tops(interest))
        self._aliases.learn()

    def _catch_up(self) -> None:
        """Look wherever something may have changed."""
        self._source.read(self._hints, self._tree.watches)
        if self._hints.are_lost:
            self._hints = Hints()
            self._overflows += 1
            for folder in self._tree.folders():
                self._tree.compare(folder)
        else:
            self._look_at_hints()
            # Of the processor by this thread, or where that has little of it, of a time that still bounds the answer.
            seconds = self._source.slice_seconds
            worked, waited = time.thread_time() + seconds, time.monotonic() + min(seconds * BUSY, MAX_SECONDS)
            self._tree.poll(lambda: time.thread_time() >= worked or time.monotonic() >= waited)
        self._tree.settle()
        self._tree.reread()

    def _look_at_hints(self) -> None:
        hints, self._hints = self._hints, Hints()
        for (folder, name), written in hints.names.items():
            self._tree.look(folder, name, written=written)


# --- Other names ------------------------------------------------------------------------------------------------------

# Links inside the root to folders inside the root. Nobody is told of a write under these names, and a server may know a
# file by one of them alone. So each change below the folder that a link leads to is told again below the link; and when
# the link leads elsewhere, all that is below it.

MAX_STEPS = 3
"""Links on the way to a file: one in a folder that another one leads to, and so on."""

MAX_CHANGES = 50_000
"""In one answer; no project has as many files below links."""


class Aliases:
    def __init__(self, tree: WatchedTree) -> None:
        self._tree = tree
        self._links: dict[AbsPath, str] = {}

    def learn(self) -> None:
        """Something else is watched now: the links that were found by this are not news."""
        self._links = self._tree.inner_links() | self._links

    def of(self, found: Sequence[PathChange]) -> tuple[PathChange, ...]:
        """These changes under their other names, and what has changed because links lead elsewhere."""
        if not found:
            return ()
        before, self._links = self._links, self._tree.inner_links()
        if not before and not self._links:
            return ()
        switched = [link for link in before.keys() | self._links.keys() if before.get(link) != self._links.get(link)]
        changes = [one for link in switched for one in self._switched(link, before.get(link), self._links.get(link))]
        names: dict[str, list[AbsPath]] = {}
        for links in (before, self._links):
            by_target: dict[str, list[AbsPath]] = {}
            for link, real in links.items():
                by_target.setdefault(real, []).append(link)
            names |= by_target
        told, step = dict[AbsPath, PathChange](), [*found, *changes]
        for _ in range(MAX_STEPS):
            step = [alias for one in step for alias in _aliases(one, names) if alias.path not in told]
            told |= {one.path: one for one in step}
        return (*changes, *told.values())[:MAX_CHANGES]

    def _switched(self, link: AbsPath, before: str | None, now: str | None) -> Iterator[PathChange]:
        old, new = self._names_below(before), self._names_below(now)
        for name in old | new:
            change = Change.DELETED if name not in new else Change.CHANGED if name in old else Change.CREATED
            yield PathChange(AbsPath(link + name), change, is_alias=True)

    def _names_below(self, top: str | None) -> set[str]:
        return set() if top is None else {path[len(top) :] for path in self._tree.files_below(top)}


def _aliases(change: PathChange, names: Mapping[str, Sequence[AbsPath]]) -> Iterator[PathChange]:
    folder = os.path.dirname(change.path)
    while folder != top_folder(folder):
        for link in names.get(folder, ()):
            yield PathChange(AbsPath(link + change.path[len(folder) :]), change.change, is_alias=True)
        folder = os.path.dirname(folder)
