"""A watcher over a folder, and the changes that it finds."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from pilotfish.model import AbsPath
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Coalescer, WatchRegistration, watch_registrations
from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Clock, Interest, Watcher, WatchHealth
from pilotfish.system.watching.folder_watcher import FolderWatcher
from pilotfish.system.watching.inotify import Inotify, inotify_watcher

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
    root: Path,
    *globs: str,
    make: Callable[[], Inotify] | None = None,
    watcher_of: Callable[[Clock], FolderWatcher] | None = None,
    bound: float = BOUND_SECONDS,
) -> AsyncGenerator[Watched]:
    """A watcher that covers these globs below `root`: `watcher_of`, or one of inotify that `make` makes."""
    clock = WallClock()
    with anyio.fail_after(bound):
        async with aclosing(inotify_watcher(clock, make) if watcher_of is None else watcher_of(clock)) as watcher:
            made = Watched(root, watcher)
            await made.cover(*registered(*globs))
            yield made
