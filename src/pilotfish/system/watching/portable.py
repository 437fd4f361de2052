"""Watching where there is no inotify (macOS, Windows): `watchfiles` over whole trees, and the same picture behind it.

Its events come some milliseconds after the change, and nothing can hurry them: what was written just before a question
may be missing from the answer. On Linux that cannot happen.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from watchfiles import awatch

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import PathChange
from pilotfish.system.ports import Clock, Interest, WatchHealth
from pilotfish.system.tasks import owned_tasks
from pilotfish.system.watching.aliases import Aliases
from pilotfish.system.watching.ignoring import tops
from pilotfish.system.watching.tree import MAX_FOLDERS, WatchedTree

DEBOUNCE_MILLISECONDS = 50
STEP_MILLISECONDS = 10
"""How long `watchfiles` gathers, and how long a silence ends that sooner. The reader gathers once more."""

READY_MILLISECONDS = 1_000
"""After this long without an event `watchfiles` says so: a sign that it watches."""


@asynccontextmanager
async def open_events_watcher(clock: Clock) -> AsyncGenerator["EventsWatcher"]:
    """The `OpenWatcher` port, but for its clock."""
    async with owned_tasks() as tasks:
        watcher = EventsWatcher(clock)
        tasks.start_soon(watcher.run)
        yield watcher
        tasks.cancel_scope.cancel()


class EventsWatcher:
    """The `Watcher` port over `watchfiles`."""

    def __init__(self, clock: Clock) -> None:
        self._tree = WatchedTree(_Everywhere(), clock.wall)
        self.recent = self._tree.recent
        self._aliases = Aliases(self._tree)
        self.aliases = self._aliases.of
        self._interest = Interest(())
        self._paths: tuple[AbsPath, ...] = ()
        self._hints: dict[tuple[AbsPath, str], None] = {}
        self._blind = False
        """Events may have been missed."""
        self._lock = anyio.Lock()
        self._woken = anyio.Event()
        self._reading = anyio.CancelScope()

    async def run(self) -> None:
        """Read events for what is covered now, again and again."""
        while True:
            with anyio.CancelScope() as self._reading:
                await self._read(self._paths)

    async def cover(self, interest: Interest) -> None:
        async with self._lock:
            await anyio.to_thread.run_sync(self._cover, interest)
            self._follow()

    async def drain(self) -> tuple[PathChange, ...]:
        async with self._lock:
            self._woken = anyio.Event()
            hints, self._hints = self._hints, {}
            blind, self._blind = self._blind, False
            await anyio.to_thread.run_sync(lambda: self._catch_up(hints, blind=blind))
            self._follow()
            return self._tree.take()

    def drain_now(self) -> tuple[PathChange, ...] | None:
        return None

    async def wait_for_changes(self) -> None:
        await self._woken.wait()

    @property
    def health(self) -> WatchHealth:
        crowded = f"there are more than {MAX_FOLDERS} folders; the others are not watched"
        degraded = crowded if self._tree.crowded else None
        return WatchHealth(len(self._tree.watches), degraded=degraded, behind=degraded)

    def _cover(self, interest: Interest) -> None:
        if (self._interest.roots, self._interest.registrations) != (interest.roots, interest.registrations):
            self._tree.cover(tops(interest))
            self._aliases.learn()
        self._tree.attend(interest.folders)
        self._interest = interest

    def _catch_up(self, hints: dict[tuple[AbsPath, str], None], *, blind: bool) -> None:
        for folder, name in hints:
            self._tree.look(folder, name, written=True)
        if blind:
            self._tree.compare_all()
        self._tree.settle()
        self._tree.reread()

    def _follow(self) -> None:
        """Read the events of the folders that are known now, if those are others than before."""
        known = frozenset(self._tree.folders())
        paths = tuple(sorted(path for path in known if os.path.dirname(path) not in known))
        if paths != self._paths:
            self._paths = paths
            self._reading.cancel()

    async def _read(self, paths: tuple[AbsPath, ...]) -> None:
        if not paths:
            await anyio.sleep_forever()
        batches = awatch(
            *paths,
            watch_filter=None,
            debounce=DEBOUNCE_MILLISECONDS,
            step=STEP_MILLISECONDS,
            rust_timeout=READY_MILLISECONDS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        # By its first word it watches; what happened between the listing and that is not among its events.
        starting = True
        async for batch in batches:
            for _, path in batch:
                folder, name = os.path.split(path)
                self._hints[AbsPath(folder), name] = None
            if batch or starting:
                self._blind, starting = self._blind or starting, False
                self._woken.set()


class _Everywhere:
    """`watchfiles` tells of whole trees: no folder needs a watch of its own."""

    def __init__(self) -> None:
        self._numbers: dict[AbsPath, int] = {}

    def watch(self, folder: AbsPath, *, follow: bool) -> int:
        del follow
        return self._numbers.setdefault(folder, len(self._numbers))

    def unwatch(self, watch: int) -> None:
        pass
