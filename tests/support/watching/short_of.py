"""inotify on a system that is short of something."""

import errno
import os
from functools import partial

from asyncinotify import Event, Inotify, Mask, Watch

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.watching.inotify import open_inotify_watcher


class TinyQueue(Inotify):
    """Drops events as a kernel does whose queue holds only `size` of them."""

    def __init__(self, size: int) -> None:
        super().__init__(cache_size=128, sync_timeout=0)
        self._size = size
        self._taken = 0
        self.dropped = 0

    def sync_get(self) -> Event | None:
        event = super().sync_get()
        if event is None:
            self._taken = 0
            return None
        self._taken += 1
        if self._taken <= self._size or Mask.IGNORED in event:
            # The kernel would drop this one as well; it is kept, because asyncinotify counts on it.
            return event
        self.dropped += 1
        return Event(None, Mask.Q_OVERFLOW, 0, None)


class FewWatches(Inotify):
    """Has room for `limit` watches."""

    def __init__(self, limit: int) -> None:
        super().__init__(cache_size=128, sync_timeout=0)
        self.limit = limit

    def add_watch(self, path: os.PathLike[str] | bytes | str, mask: Mask) -> Watch:
        watch = super().add_watch(path, mask)  # pyright: ignore[reportUnknownMemberType] -- its PathLike is bare
        if len(self.watches) > self.limit:
            self.rm_watch(watch)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return watch


def watches_for(limit: int) -> OpenWatcher:
    """Opens watchers with room for `limit` folders each."""
    return lambda: open_inotify_watcher(WallClock(), partial(FewWatches, limit))
