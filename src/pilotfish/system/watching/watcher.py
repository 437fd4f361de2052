"""The `OpenWatcher` port as this system has it: told by inotify on Linux, by `watchfiles` elsewhere.

The libraries are imported when the first watcher is opened: a process that watches nothing does not pay for them.
"""

import sys
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import OpenWatcher, Watcher

if TYPE_CHECKING:
    from pilotfish.system.watching.folder_watcher import FolderWatcher


def open_watcher() -> AbstractAsyncContextManager[Watcher]:
    from pilotfish.system.watching.folder_watcher import closing

    return closing(_watcher())


def sharing_watchers() -> OpenWatcher:
    """Makes watchers that watch once what several of them ask for, as far as that lies outside of their roots."""
    opened: list[OpenWatcher] = []

    def open_shared() -> AbstractAsyncContextManager[Watcher]:
        from pilotfish.system.watching.shared import SharedWatchers

        if not opened:
            opened.append(SharedWatchers(_watcher).open)
        return opened[0]()

    return open_shared


def _watcher() -> "FolderWatcher":
    if sys.platform == "linux":
        from pilotfish.system.watching.inotify import inotify_watcher

        return inotify_watcher(WallClock())
    from pilotfish.system.watching.portable import events_watcher

    return events_watcher(WallClock())
