"""Folders outside of workspaces, such as the library of an interpreter, are watched once for all that ask for them.

Each workspace has a watcher of its own for what lies inside; one more, the outer, is for the rest of all workspaces. It
begins with the first that needs it and ends with the last. Whoever reads its changes hands all others theirs.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.watching import PathChange, WatchRegistration, roots_to_watch
from pilotfish.system.ports import Interest, Watcher, WatchHealth
from pilotfish.system.tasks import owned_tasks
from pilotfish.system.watching.folder_watcher import FolderWatcher


class SharedWatchers:
    """Makes watchers that share what lies outside of their roots. `make` makes one that shares nothing."""

    def __init__(self, make: Callable[[], FolderWatcher]) -> None:
        self._make = make
        self._outer: _Outer | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Watcher]:
        """The `OpenWatcher` port."""
        own = self._make()
        watcher = _SharingWatcher(own, self)
        try:
            yield watcher
        finally:
            try:
                await self.leave(watcher)
            finally:
                await own.close()

    async def join(self, member: "_SharingWatcher", registrations: tuple[WatchRegistration, ...]) -> "_Outer":
        """Have these watched as well, for that member."""
        if self._outer is None:
            self._outer = _Outer(self._make())
        outer = self._outer
        await outer.cover(member, registrations)
        return outer

    async def leave(self, member: "_SharingWatcher") -> None:
        outer = self._outer
        if outer is None or member not in outer.members:
            return
        if len(outer.members) > 1:
            await outer.forget(member)
        else:
            self._outer = None
            await outer.watcher.close()


class _Outer:
    """The watcher of what lies outside of workspaces, and for whom."""

    def __init__(self, watcher: FolderWatcher) -> None:
        self.watcher = watcher
        self.members: dict[_SharingWatcher, tuple[WatchRegistration, ...]] = {}
        self._covered: tuple[WatchRegistration, ...] = ()
        self._turn = anyio.Lock()
        """To wait for the system: one task at a time can."""

    async def cover(self, member: "_SharingWatcher", registrations: tuple[WatchRegistration, ...]) -> None:
        self.members[member] = registrations
        await self._cover()

    async def forget(self, member: "_SharingWatcher") -> None:
        del self.members[member]
        await self._cover()

    async def _cover(self) -> None:
        every = dict.fromkeys(one for registrations in self.members.values() for one in registrations)
        # In the order of before: all is walked through again when that differs.
        kept = [one for one in self._covered if one in every]
        self._covered = (*kept, *(one for one in every if one not in kept))
        await self.watcher.cover(Interest((), self._covered))

    def hand_over(self, found: Sequence[PathChange]) -> None:
        """Give every member what lies where it looks."""
        for member in self.members if found else ():
            member.take_in(found)

    async def wait_for_changes(self) -> None:
        """Wait until the watcher may have something."""
        async with self._turn:
            await self.watcher.wait_for_changes()


class _SharingWatcher:
    """The `Watcher` port over a watcher of its own and the outer one."""

    def __init__(self, own: FolderWatcher, shared: SharedWatchers) -> None:
        self._own = own
        self.aliases = own.aliases
        self._shared = shared
        self._outer: _Outer | None = None
        self._tops: tuple[AbsPath, ...] = ()
        """Where it looks outside."""
        self._found: list[PathChange] = []
        self.woken = anyio.Event()
        """Somebody read what lies outside, and some of it is for this one; or this one looks elsewhere now."""

    async def cover(self, interest: Interest) -> None:
        outside = tuple(one for one in interest.registrations if _lies_outside(one, interest.roots))
        inside = tuple(one for one in interest.registrations if one not in outside)
        await self._own.cover(replace(interest, registrations=inside))
        self._tops = roots_to_watch(outside, interest.roots)
        if outside:
            self._outer = await self._shared.join(self, outside)
        elif self._outer is not None:
            self._outer = None
            await self._shared.leave(self)
        self.woken.set()

    async def drain(self) -> tuple[PathChange, ...]:
        if self._outer is not None:
            self._outer.hand_over(await self._outer.watcher.drain())
        # The last, because what it reports is nowhere else.
        return (*await self._own.drain(), *self._take())

    def drain_now(self) -> tuple[PathChange, ...] | None:
        if self._outer is not None:
            found = self._outer.watcher.drain_now()
            if found is None:
                return None
            self._outer.hand_over(found)
        found = self._own.drain_now()
        return None if found is None else (*found, *self._take())

    async def wait_for_changes(self) -> None:
        if self._found:
            return
        self.woken = anyio.Event()
        async with owned_tasks() as tasks:

            async def first(wait: Callable[[], Awaitable[object]]) -> None:
                await wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(first, self._own.wait_for_changes)
            tasks.start_soon(first, self.woken.wait)
            if self._outer is not None:
                tasks.start_soon(first, self._outer.wait_for_changes)

    def recent(self, since: float, folders: frozenset[AbsPath] | None = None) -> tuple[PathChange, ...]:
        found = self._own.recent(since, folders)
        if self._outer is None:
            return found
        known = {one.path for one in found}
        outer = self._mine(self._outer.watcher.recent(since, folders))
        return (*found, *(one for one in outer if one.path not in known))

    @property
    def health(self) -> WatchHealth:
        own = self._own.health
        if self._outer is None:
            return own
        outer = self._outer.watcher.health
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
            self.woken.set()

    def _take(self) -> tuple[PathChange, ...]:
        found, self._found = tuple(self._found), []
        return found

    def _mine(self, found: Iterable[PathChange]) -> list[PathChange]:
        return [one for one in found if any(is_inside(one.path, top) for top in self._tops)]


def _lies_outside(registration: WatchRegistration, roots: Sequence[AbsPath]) -> bool:
    tops = roots_to_watch((registration,), roots)
    return bool(tops) and not any(is_inside(top, root) for top in tops for root in roots)
