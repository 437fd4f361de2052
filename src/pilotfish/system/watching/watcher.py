"""The `OpenWatcher` port as this system has it: inotify on Linux, `watchfiles` elsewhere.

The libraries are imported when the first watcher is opened: a process that watches nothing does not pay for them.
"""

import sys
from contextlib import AbstractAsyncContextManager

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Watcher


def open_watcher() -> AbstractAsyncContextManager[Watcher]:
    if sys.platform == "linux":
        from pilotfish.system.watching.inotify import open_inotify_watcher

        return open_inotify_watcher(WallClock())
    from pilotfish.system.watching.portable import open_events_watcher

    return open_events_watcher(WallClock())
