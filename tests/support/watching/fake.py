"""A watcher that finds what a test says, for virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, FileChange
from pilotfish.system.ports import Interest, Watcher, WatchHealth


@dataclass
class FakeWatcher:
    covered: list[Interest] = field(default_factory=list[Interest])
    covers: bool = True
    """False: covering takes for ever."""
    drains: int = 0
    health: WatchHealth = field(default_factory=lambda: WatchHealth(watched=1))
    _found: list[FileChange] = field(default_factory=list[FileChange])
    _stirred: anyio.Event = field(default_factory=anyio.Event)

    def find(self, *changes: FileChange) -> None:
        self._found += changes
        self._stirred.set()

    async def cover(self, interest: Interest) -> None:
        if not self.covers:
            await anyio.sleep_forever()
        self.covered.append(interest)

    async def drain(self) -> tuple[FileChange, ...]:
        return self.drain_now()

    def drain_now(self) -> tuple[FileChange, ...]:
        self.drains += 1
        found, self._found, self._stirred = tuple(self._found), [], anyio.Event()
        return found

    async def stirred(self) -> None:
        await self._stirred.wait()

    def recent(self, since: float, folders: frozenset[AbsPath] | None = None) -> tuple[FileChange, ...]:
        return ()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Watcher]:
        yield self


def made(path: object) -> FileChange:
    return FileChange(AbsPath(str(path)), Change.CREATED)


def written(path: object) -> FileChange:
    return FileChange(AbsPath(str(path)), Change.CHANGED)


def gone(path: object) -> FileChange:
    return FileChange(AbsPath(str(path)), Change.DELETED)
