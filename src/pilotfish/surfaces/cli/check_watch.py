"""When files that a person watches change."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.globs import file_glob
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import WatchRegistration
from pilotfish.system.ports import Interest
from pilotfish.system.watching.watcher import open_watcher


@asynccontextmanager
async def watching(paths: Sequence[str]) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Gives a function that waits until a file in `paths`, or below a folder in it, has changed since the last time."""
    interest = _interest(paths)
    files = frozenset(map(_real, paths)) - frozenset(interest.roots)

    def is_meant(path: AbsPath) -> bool:
        return path in files or any(is_inside(path, folder) for folder in interest.roots)

    async with open_watcher() as watcher:
        await watcher.cover(interest)

        async def changed() -> None:
            while not any(is_meant(change.path) for change in await watcher.drain()):
                await watcher.stirred()

        yield changed


def _interest(paths: Sequence[str]) -> Interest:
    """All below the folders, and what stands beside the files."""
    real = [_real(path) for path in paths]
    folders = tuple(path for path in real if os.path.isdir(path))
    globs = [file_glob({"baseUri": uri_of(folder), "pattern": "**/*"}) for folder in folders]
    beside = frozenset(AbsPath(os.path.dirname(path)) for path in real if path not in folders)
    return Interest(folders, tuple(map(WatchRegistration, globs)), beside)


def _real(path: str) -> AbsPath:
    return AbsPath(os.path.realpath(path))
