"""The `OpenWatcher` port as this system has it: inotify on Linux, `watchfiles` elsewhere.

The libraries are imported when the first watcher is opened: a process that watches nothing does not pay for them.
"""

import sys
from contextlib import AbstractAsyncContextManager

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import OpenWatcher, Watcher


def open_watcher() -> AbstractAsyncContextManager[Watcher]:
    if sys.platform == "linux":
        from pilotfish.system.watching.inotify import open_inotify_watcher

        return open_inotify_watcher(WallClock())
    from pilotfish.system.watching.portable import open_events_watcher

    return open_events_watcher(WallClock())


def sharing_watchers() -> OpenWatcher:
    """Makes watchers that watch once what several of them ask for, as far as that lies outside of their roots."""
    return _SharingWatchers() if sys.platform == "linux" else open_watcher


class _SharingWatchers:
    def __init__(self) -> None:
        self._open: OpenWatcher | None = None

    def __call__(self) -> AbstractAsyncContextManager[Watcher]:
        if sys.platform != "linux":
            return open_watcher()
        if self._open is None:
            from pilotfish.system.watching.inotify import inotify_watcher
            from pilotfish.system.watching.shared import SharedWatchers

            self._open = SharedWatchers(lambda: inotify_watcher(WallClock())).open
        return self._open()
