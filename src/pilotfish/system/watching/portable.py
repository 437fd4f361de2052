"""What is told where there is no inotify (macOS, Windows): by `watchfiles`, of whole trees, some milliseconds late.

Nothing can hurry its events, so they decide nothing: before a question all files are looked at, and the events say when
to look while nobody asks. A look at 10,000 files takes a tenth of a second.
"""

import asyncio
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import anyio
import anyio.to_thread
from watchfiles._rust_notify import RustNotify

from pilotfish.model import AbsPath
from pilotfish.system.ports import Clock
from pilotfish.system.watching.folder_watcher import FolderWatcher, Hints
from pilotfish.system.watching.listing import inode_of
from pilotfish.system.watching.watches import Watches

SLICE_SECONDS = 2.0
"""For one look at everything: what an answer says is not whole where that takes longer. 60,000 files in 10,000 folders
took 0.4 to 0.8 s with two cores, and more than 1 s beside another such look."""

GATHER_MILLISECONDS = 100
"""How long it gathers: its thread wakes as often, and does nothing else while nothing happens."""

Tops = frozenset[tuple[AbsPath, int | None]]
"""Folders and their inodes: another folder of the same name is another one for Windows."""


def events_watcher(clock: Clock) -> FolderWatcher:
    return FolderWatcher(_Events(), clock)


class _Events:
    """The `ChangeSource` over `watchfiles`: one thread waits for events, also while nobody waits for it."""

    def __init__(self) -> None:
        self.trouble = ""
        self._thread = ThreadPoolExecutor(1)
        self._notify: tuple[Tops, RustNotify] | None = None
        self._tops: Tops = frozenset()
        self._told: list[str] = []
        self._waiting: asyncio.Future[None] | None = None
        self._stop = Event()

    @property
    def slice_seconds(self) -> float:
        return SLICE_SECONDS

    @property
    def tells_of_polled(self) -> bool:
        return not self.trouble

    def watch(self, folder: AbsPath, *, follow: bool) -> None:
        """No folder has a watch of its own."""

    def unwatch(self, watch: int) -> None:
        pass

    def waiting_bytes(self) -> int:
        return sum(map(len, self._told))

    def read(self, hints: Hints, watches: Watches) -> None:
        del watches
        told, self._told = self._told, []
        for folder, name in map(os.path.split, told):
            # What looking has found by now is not told once more: only the times of the file count.
            hints.names[AbsPath(folder), name] = False

    async def readable(self, unwatched: Collection[AbsPath]) -> None:
        tops = frozenset((path, inode_of(path)) for path in unwatched if os.path.dirname(path) not in unwatched)
        if tops != self._tops:
            self._stop.set()
            self._tops, self._stop, self._waiting = tops, Event(), None
        if not tops or self.trouble:
            await anyio.sleep_forever()
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.get_running_loop().run_in_executor(self._thread, self._wait, tops, self._stop)
        await asyncio.wait((self._waiting,))

    async def close(self) -> None:
        self._stop.set()
        # What the system gave for the watches is not given back before the thread has ended.
        await anyio.to_thread.run_sync(self._thread.shutdown)
        self._notify = None

    def _wait(self, tops: Tops, stop: Event) -> None:
        """In the thread. The first time for these folders it is over when they are watched: what happened before that
        is not among the events."""
        try:
            if self._notify is None or self._notify[0] != tops:
                paths: list[str] = [path for path, _ in tops]
                self._notify = tops, RustNotify(paths, False, False, 0, True, True)  # noqa: FBT003 - its only signature
            elif isinstance(told := self._notify[1].watch(GATHER_MILLISECONDS, GATHER_MILLISECONDS, 0, stop), set):
                self._told += (path for _, path in told)
        except FileNotFoundError:
            pass  # a folder is gone since the last look: the next one knows
        except OSError as error:
            self.trouble = f"watching failed: {error}"
