"""A watcher of a disk that is not there, for virtual time: it keeps what the `Watcher` port promises, and no more.

It covers late, reads late, drops events as a kernel does whose queue is full, has to look for itself where no watch is
left, and breaks. What it cannot know it says in its `health`, as `system.watching.inotify` does.
"""

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import anyio

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.ports import Interest, Watcher, WatchHealth

POLL_SECONDS = 2.0
"""As `system.watching.inotify` does where no watch is left."""


class Loss(StrEnum):
    """What becomes of the events."""

    NONE = "none"
    OVERFLOW = "overflow"
    """Those that were not read are dropped, and the next reader is told so."""
    FEW_WATCHES = "few watches"
    """There are none: whoever reads looks at the files."""
    BEHIND = "behind"
    """The same, and there is no time to look."""
    BROKEN = "broken"
    """Reading fails."""


@dataclass
class VirtualWatcher:
    stamps: Callable[[], Mapping[AbsPath, tuple[float, int]]]
    """Of all files that can be watched: the wall time and the number of the last write."""
    delay: Callable[[], float]
    """Seconds that covering or looking takes, each time anew."""
    loss: Loss = Loss.NONE
    _covered: Interest = field(default_factory=lambda: Interest(()))
    _known: dict[AbsPath, tuple[float, int]] = field(default_factory=dict[AbsPath, tuple[float, int]])
    _events: dict[AbsPath, None] = field(default_factory=dict[AbsPath, None])
    _must_look: bool = False
    _is_behind: bool = False
    _stirred: anyio.Event = field(default_factory=anyio.Event)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    # --- What happens to it ------------------------------------------------------------------------------------------

    def wrote(self, path: AbsPath) -> None:
        if self.loss is Loss.NONE and self._covered.registrations:
            self._events[path] = None
            self._stirred.set()

    def lose(self, loss: Loss) -> None:
        self.loss = Loss.NONE if loss is Loss.OVERFLOW else loss
        self._events.clear()
        self._must_look = True
        self._stirred.set()

    # --- The port ----------------------------------------------------------------------------------------------------

    async def cover(self, interest: Interest) -> None:
        async with self._lock:
            await anyio.sleep(self.delay())
            if not self._covered.registrations:
                # Nothing was watched before: what is there is not news.
                self._known = dict(self.stamps())
            self._covered = interest

    async def drain(self) -> tuple[PathChange, ...]:
        found = self.drain_now()
        if found is not None:
            return found
        async with self._lock:
            await anyio.sleep(self.delay())
            return self._look()

    def drain_now(self) -> tuple[PathChange, ...] | None:
        if self.loss is Loss.BROKEN:
            raise OSError("the watcher is broken")
        if self._lock.locked() or self._must_look or self._is_polled:
            return None
        self._is_behind = False
        return self._compared(tuple(self._events))

    def aliases(self, found: Sequence[PathChange]) -> tuple[PathChange, ...]:
        return ()

    async def wait_for_changes(self) -> None:
        with anyio.move_on_after(POLL_SECONDS if self._is_polled else math.inf):
            await self._stirred.wait()

    def recent(self, since: float, folders: frozenset[AbsPath] | None = None) -> tuple[PathChange, ...]:
        found = [path for path, stamp in self._known.items() if stamp[0] >= since]
        return tuple(
            PathChange(path, Change.CREATED) for path in found if folders is None or path.rpartition("/")[0] in folders
        )

    @property
    def health(self) -> WatchHealth:
        degraded = "no watch is left" if self._is_polled else None
        return WatchHealth(1, degraded=degraded, behind="no watch is left" if self._is_behind else None)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Watcher]:
        self._covered, self._known, self._must_look, self._is_behind = Interest(()), {}, False, False
        self._events.clear()
        yield self

    @property
    def _is_polled(self) -> bool:
        return self.loss in {Loss.FEW_WATCHES, Loss.BEHIND}

    # --- Looking -----------------------------------------------------------------------------------------------------

    def _look(self) -> tuple[PathChange, ...]:
        self._is_behind = self.loss is Loss.BEHIND
        if self._is_behind:
            self._stirred = anyio.Event()
            return ()
        self._must_look = False
        return self._compared(self.stamps())

    def _compared(self, paths: Iterable[AbsPath]) -> tuple[PathChange, ...]:
        self._events.clear()
        self._stirred = anyio.Event()
        stamps = self.stamps()
        changed = [path for path in paths if self._known.get(path) != stamps.get(path)]
        self._known |= {path: stamps[path] for path in changed}
        return tuple(PathChange(path, Change.CHANGED) for path in changed)
