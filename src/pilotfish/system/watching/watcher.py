"""The `OpenWatcher` port as this system has it: told by inotify on Linux, by `watchfiles` elsewhere.

Folders outside of workspaces, such as the library of an interpreter, are watched once for all that ask for them. Each
workspace has a watcher of its own for what lies inside; one more, the outer, is for the rest of all workspaces. It
begins with the first that needs it and ends with the last. Whoever reads its changes hands all others theirs.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

import anyio
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.watching import PathChange, WatchRegistration, roots_to_watch
from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Interest, Watcher, WatchHealth
from pilotfish.system.tasks import first_of
from pilotfish.system.watching.folder_watcher import FolderWatcher


def open_watcher() -> AbstractAsyncContextManager[Watcher]:
    return aclosing(_watcher())


def _watcher() -> FolderWatcher:
    # The libraries are imported when the first watcher is opened: a process that watches nothing does not pay for them.
    if sys.platform == "linux":
        from pilotfish.system.watching.inotify import inotify_watcher

        return inotify_watcher(WallClock())
    from pilotfish.system.watching.portable import events_watcher

    return events_watcher(WallClock())


class SharedWatchers:
    """Makes watchers that share what lies outside of their roots. `make` makes one that shares nothing."""

    def __init__(self, make: Callable[[], FolderWatcher] = _watcher) -> None:
        self._make = make
        self._wanted: dict[_SharingWatcher, tuple[WatchRegistration, ...]] = {}
        """What lies outside, and who asks for it."""
        self._covered: tuple[WatchRegistration, ...] = ()
        self.outer: FolderWatcher | None = None
        self.turn = anyio.Lock()
        """To wait for the system: one task at a time can."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Watcher]:
        """The `OpenWatcher` port."""
        async with aclosing(self._make()) as own:
            watcher = _SharingWatcher(own, self)
            try:
                yield watcher
            finally:
                await self.watch(watcher, ())

    async def watch(self, member: "_SharingWatcher", registrations: tuple[WatchRegistration, ...]) -> None:
        """Have these watched for that member, and nothing else that lies outside."""
        if registrations:
            self._wanted[member] = registrations
        elif self._wanted.pop(member, None) is None:
            return
        elif not self._wanted and self.outer is not None:
            outer, self.outer, self._covered = self.outer, None, ()
            await outer.aclose()
            return
        self.outer = self.outer or self._make()
        every = dict.fromkeys(one for registrations in self._wanted.values() for one in registrations)
        # In the order of before: all is walked through again when that differs.
        kept = [one for one in self._covered if one in every]
        self._covered = (*kept, *(one for one in every if one not in kept))
        await self.outer.cover(Interest((), self._covered))

    def hand_over(self, found: Sequence[PathChange]) -> None:
        """Give every member what lies where it looks."""
        for member in self._wanted if found else ():
            member.take_in(found)


class _SharingWatcher:
    """The `Watcher` port over a watcher of its own and the outer one."""

    def __init__(self, own: FolderWatcher, shared: SharedWatchers) -> None:
        self._own = own
        self.aliases = own.aliases
        self._shared = shared
        self._tops: tuple[AbsPath, ...] = ()
        """Where it looks outside."""
        self._found: list[PathChange] = []
        self._woken = anyio.Event()
        """Somebody read what lies outside, and some of it is for this one; or this one looks elsewhere now."""

    @property
    def _outer(self) -> FolderWatcher | None:
        return self._shared.outer if self._tops else None

    async def cover(self, interest: Interest) -> None:
        outside = tuple(one for one in interest.registrations if _lies_outside(one, interest.roots))
        inside = tuple(one for one in interest.registrations if one not in outside)
        await self._own.cover(replace(interest, registrations=inside))
        self._tops = roots_to_watch(outside, interest.roots)
        await self._shared.watch(self, outside)
        self._woken.set()

    async def drain(self) -> tuple[PathChange, ...]:
        if self._outer is not None:
            self._shared.hand_over(await self._outer.drain())
        # The last, because what it reports is nowhere else.
        return (*await self._own.drain(), *self._take())

    def drain_now(self) -> tuple[PathChange, ...] | None:
        if self._outer is not None:
            found = self._outer.drain_now()
            if found is None:
                return None
            self._shared.hand_over(found)
        found = self._own.drain_now()
        return None if found is None else (*found, *self._take())

    async def wait_for_changes(self) -> None:
        if self._found:
            return
        self._woken = anyio.Event()

        async def wait_outside() -> None:
            # That of now: this one may ask for nothing outside any more when its turn comes.
            outer = self._outer
            if outer is None:
                await anyio.sleep_forever()
            else:
                async with self._shared.turn:
                    await outer.wait_for_changes()

        await first_of(self._own.wait_for_changes, self._woken.wait, wait_outside)

    def recent(self, since: float, folders: frozenset[AbsPath] | None = None) -> tuple[PathChange, ...]:
        found = self._own.recent(since, folders)
        if self._outer is None:
            return found
        known = {one.path for one in found}
        outer = self._mine(self._outer.recent(since, folders))
        return (*found, *(one for one in outer if one.path not in known))

    @property
    def health(self) -> WatchHealth:
        own = self._own.health
        if self._outer is None:
            return own
        outer = self._outer.health
        return WatchHealth(
            own.watched + outer.watched,
            own.polled + outer.polled,
            own.overflows + outer.overflows,
            own.degraded or outer.degraded,
            own.behind or outer.behind,
        )

    def take_in(self, found: Sequence[PathChange]) -> None:
        """The outer watcher was read by somebody."""
        mine = self._mine(found)
        if mine:
            self._found += mine
            self._woken.set()

    def _take(self) -> tuple[PathChange, ...]:
        found, self._found = tuple(self._found), []
        return found

    def _mine(self, found: Sequence[PathChange]) -> list[PathChange]:
        return [one for one in found if any(is_inside(one.path, top) for top in self._tops)]


def _lies_outside(registration: WatchRegistration, roots: Sequence[AbsPath]) -> bool:
    tops = roots_to_watch((registration,), roots)
    return bool(tops) and not any(is_inside(top, root) for top in tops for root in roots)
