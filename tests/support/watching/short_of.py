"""inotify on a system that is short of something."""

import errno
import os
from contextlib import aclosing
from functools import partial

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.watching.inotify import IGNORED, QUEUE_OVERFLOW, Inotify, InotifyEvent, inotify_watcher


class TinyQueue(Inotify):
    """Drops events as a kernel does whose queue holds only `size` of them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._taken = 0
        self.dropped = 0

    def read(self) -> list[InotifyEvent]:
        events = super().read()
        kept = events[: max(0, self._size - self._taken)]
        self._taken = self._taken + len(events) if events else 0
        self.dropped += len(events) - len(kept)
        return kept if len(kept) == len(events) else [*kept, InotifyEvent(-1, QUEUE_OVERFLOW, "")]


class FewWatches(Inotify):
    """Has room for `limit` watches."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self._live: set[int] = set()

    def add_watch(self, folder: str, mask: int) -> int:
        watch = super().add_watch(folder, mask)
        if watch not in self._live and len(self._live) >= self.limit:
            super().remove_watch(watch)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._live.add(watch)
        return watch

    def remove_watch(self, watch: int) -> None:
        self._live.discard(watch)
        super().remove_watch(watch)

    def read(self) -> list[InotifyEvent]:
        events = super().read()
        self._live -= {event.watch for event in events if event.mask & IGNORED}
        return events


def watches_for(limit: int) -> OpenWatcher:
    """Opens watchers with room for `limit` folders each."""
    return lambda: aclosing(inotify_watcher(WallClock(), partial(FewWatches, limit)))
