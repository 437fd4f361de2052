"""A watcher that finds what a test says, for virtual time."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.ports import Interest, Watcher, WatchHealth


@dataclass
class FakeWatcher:
    covered: list[Interest] = field(default_factory=list[Interest])
    covers: bool = True
    """False: covering takes for ever."""
    cover_seconds: float = 0.0
    """How long it takes otherwise."""
    drains: int = 0
    health: WatchHealth = field(default_factory=lambda: WatchHealth(watched=1))
    _found: list[PathChange] = field(default_factory=list[PathChange])
    _stirred: anyio.Event = field(default_factory=anyio.Event)

    def find(self, *changes: PathChange) -> None:
        self._found += changes
        self._stirred.set()

    async def cover(self, interest: Interest) -> None:
        if not self.covers:
            await anyio.sleep_forever()
        await anyio.sleep(self.cover_seconds)
        self.covered.append(interest)

    async def drain(self) -> tuple[PathChange, ...]:
        return self.drain_now()

    def drain_now(self) -> tuple[PathChange, ...]:
        self.drains += 1
        found, self._found, self._stirred = tuple(self._found), [], anyio.Event()
        return found

    def aliases(self, found: Sequence[PathChange]) -> tuple[PathChange, ...]:
        return ()

    async def wait_for_changes(self) -> None:
        await self._stirred.wait()

    def recent(self, since: float, folders: frozenset[AbsPath] | None = None) -> tuple[PathChange, ...]:
        return ()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Watcher]:
        yield self


def made(path: object) -> PathChange:
    return PathChange(AbsPath(str(path)), Change.CREATED)


def written(path: object) -> PathChange:
    return PathChange(AbsPath(str(path)), Change.CHANGED)


def gone(path: object) -> PathChange:
    return PathChange(AbsPath(str(path)), Change.DELETED)
