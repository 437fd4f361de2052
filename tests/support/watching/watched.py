"""A watcher over a folder, and the changes that it finds."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from pilotfish.model import AbsPath
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Coalescer, WatchRegistration, watch_registrations
from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Interest, Watcher, WatchHealth
from pilotfish.system.watching.inotify import Inotify, open_inotify_watcher

BOUND_SECONDS = 10.0
"""For a whole test: none takes a second."""

EVERYTHING = "**/*"


def absolute(path: Path | str) -> AbsPath:
    return AbsPath(str(path))


def registered(*globs: str, base: Path | None = None) -> tuple[WatchRegistration, ...]:
    """Watchers for these globs, relative to `base` where one is given."""
    patterns = [glob if base is None else {"baseUri": uri_of(absolute(base)), "pattern": glob} for glob in globs]
    return tuple(watch_registrations({"watchers": [{"globPattern": pattern} for pattern in patterns]}))


@dataclass(frozen=True)
class Watched:
    root: Path
    watcher: Watcher

    async def cover(self, *registrations: WatchRegistration, folders: tuple[Path, ...] = ()) -> None:
        attended = frozenset(map(absolute, folders))
        await self.watcher.cover(Interest((absolute(self.root),), registrations, attended))

    async def found(self) -> list[str]:
        """What changed since the last look, as a server would be told of it: `created a/b`, sorted."""
        gathered = Coalescer()
        for found in await self.watcher.drain():
            gathered.add(found)
        return sorted(f"{found.change.name.lower()} {self.named(found.path)}" for found in gathered.flush().changes)

    def named(self, path: str) -> str:
        return path.removeprefix(f"{self.root}/")

    @property
    def health(self) -> WatchHealth:
        return self.watcher.health


@asynccontextmanager
async def watched(
    root: Path, *globs: str, make: Callable[[], Inotify] | None = None, bound: float = BOUND_SECONDS
) -> AsyncGenerator[Watched]:
    """A watcher that covers these globs below `root`."""
    with anyio.fail_after(bound):
        async with open_inotify_watcher(WallClock(), make) as watcher:
            made = Watched(root, watcher)
            await made.cover(*registered(*globs))
            yield made
