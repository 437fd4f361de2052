"""Watching on Linux: inotify, one watch per folder, and only the folders that a session asked for.

What the kernel already holds is read before a question, so what was written by then is seen, whoever wrote it. A folder
that cannot be watched (no watch left, a network file system, which tells only of our own changes) is polled.
"""

import sys

if sys.platform != "linux":
    raise ImportError("inotify is Linux's")

import ctypes
import errno
import fcntl
import os
import re
import termios
from array import array
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from struct import Struct as Layout
from typing import NamedTuple

import anyio

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.system.ports import Clock
from pilotfish.system.watching.folder_watcher import FolderWatcher, Hints
from pilotfish.system.watching.watches import Watches

# --- The kernel's calls -----------------------------------------------------------------------------------------------

# Watches are numbers, events are a number, a mask and a name. Called by ctypes, because a project and the libraries
# that its servers read have thousands of folders: a watch takes 5 µs here, and 23 µs with objects for paths, masks and
# watches around it.

MODIFY = 0x0002
ATTRIB = 0x0004
CLOSE_WRITE = 0x0008
MOVED_FROM = 0x0040
MOVED_TO = 0x0080
CREATE = 0x0100
DELETE = 0x0200
DELETE_SELF = 0x0400
MOVE_SELF = 0x0800
QUEUE_OVERFLOW = 0x4000
IGNORED = 0x8000
"""The watch has ended."""
FOLDER = 0x4000_0000
"""What it tells of is a folder."""
ONLY_FOLDERS = 0x0100_0000
DONT_FOLLOW = 0x0200_0000

READ_BYTES = 36 * 1024
"""What one read takes: about a thousand ordinary events, or 128 with the longest names."""

_HEAD = Layout("iIII")
"""Number of the watch, mask, cookie, length of the name with the zeros behind it."""

_LIBC = ctypes.CDLL(None, use_errno=True)


class InotifyEvent(NamedTuple):
    watch: int
    mask: int
    name: str
    """Of what changed in the folder; empty for the folder itself."""


class Inotify:
    """One instance. Whoever makes it closes it."""

    def __init__(self) -> None:
        self.descriptor = _checked(_LIBC.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def add_watch(self, folder: str, mask: int) -> int:
        """The number of the watch: the same as before for the same folder."""
        return _checked(_LIBC.inotify_add_watch(self.descriptor, os.fsencode(folder), mask))

    def remove_watch(self, watch: int) -> None:
        _checked(_LIBC.inotify_rm_watch(self.descriptor, watch))

    def waiting_bytes(self) -> int:
        size = array("i", [0])
        fcntl.ioctl(self.descriptor, termios.FIONREAD, size)
        return size[0]

    def read(self) -> list[InotifyEvent]:
        """Some of the events that the kernel holds; empty when it holds none."""
        try:
            return list(_events(os.read(self.descriptor, READ_BYTES)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        # Whoever still calls it from another thread must not meet a file that has got the number since.
        descriptor, self.descriptor = self.descriptor, -1
        os.close(descriptor)


def _events(data: bytes) -> Iterator[InotifyEvent]:
    start = 0
    while start < len(data):
        watch, mask, _cookie, length = _HEAD.unpack_from(data, start)
        start += _HEAD.size
        yield InotifyEvent(watch, mask, os.fsdecode(data[start : start + length].rstrip(b"\0")))
        start += length


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# --- What the watcher is told -----------------------------------------------------------------------------------------

WRITTEN = CREATE | MODIFY | MOVED_TO | CLOSE_WRITE
"""What tells that a file has another content now. Of a write through a memory mapping there is only `CLOSE_WRITE`, and
not before the mapping is gone; the times of the file need not differ from the last look then."""

MASK = WRITTEN | ATTRIB | DELETE | MOVED_FROM | DELETE_SELF | MOVE_SELF | ONLY_FOLDERS

POLL_SLICE_SECONDS = 0.1
"""How long one look at what cannot be watched may take: 5 % of a processor, and no answer is delayed by more."""

REMOTE = frozenset({
    "9p", "afs", "ceph", "cifs", "davfs", "drvfs", "fuse.gvfsd-fuse", "fuse.rclone", "fuse.sshfs", "lustre", "nfs",
    "nfs4", "prl_fs", "smb3", "vboxsf", "virtiofs",
})  # fmt: skip
"""File systems on which others can change files without this kernel knowing."""


def inotify_watcher(clock: Clock, make: Callable[[], Inotify] | None = None) -> FolderWatcher:
    """`make` is for tests."""
    return FolderWatcher(_Kernel(make or Inotify), clock)


class _Kernel:
    """The `ChangeSource` over one inotify instance, made when the first folder is to be watched."""

    tells_of_polled = False

    def __init__(self, make: Callable[[], Inotify]) -> None:
        self._make = make
        self._inotify: Inotify | None = None
        self._closed = False
        self._remote = remote_mounts()
        self.trouble = ""
        """Why a folder could not be watched, the last time that one could not."""

    @property
    def slice_seconds(self) -> float:
        return POLL_SLICE_SECONDS

    def watch(self, folder: AbsPath, *, follow: bool) -> int | None:
        if self._closed:
            return None
        if any(is_inside(folder, mount) for mount in self._remote):
            self.trouble = "this is a network file system, which tells only of our own changes"
            return None
        try:
            if self._inotify is None:
                self._inotify = self._make()
            return self._inotify.add_watch(folder, MASK if follow else MASK | DONT_FOLLOW)
        except OSError as error:
            if error.errno not in _GONE:
                self.trouble = _TROUBLES.get(error.errno or 0, os.strerror(error.errno or 0).lower())
            return None

    def unwatch(self, watch: int) -> None:
        if self._inotify is not None:
            with suppress(OSError):  # the kernel has ended it
                self._inotify.remove_watch(watch)

    def waiting_bytes(self) -> int:
        return 0 if self._inotify is None else self._inotify.waiting_bytes()

    async def readable(self, unwatched: Collection[AbsPath]) -> None:
        del unwatched
        if self._inotify is None:
            await anyio.sleep_forever()
        else:
            await anyio.wait_readable(self._inotify.descriptor)

    def read(self, hints: Hints, watches: Watches) -> None:
        while self._inotify is not None and (events := self._inotify.read()):
            for watch, mask, name in events:
                if mask & QUEUE_OVERFLOW:
                    hints.are_lost = True
                elif mask & IGNORED:
                    watches.ended(watch)
                elif name and (folder := watches.folder_of(watch)) is not None:
                    key = (folder, name)
                    hints.names[key] = hints.names.get(key, False) or bool(mask & WRITTEN)
                    hints.has_folders |= bool(mask & FOLDER)

    async def close(self) -> None:
        self._closed = True
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None


def remote_mounts(table: str = "/proc/self/mountinfo") -> tuple[str, ...]:
    """Where network file systems are mounted."""
    try:
        with open(table, errors="surrogateescape") as lines:
            rows = [line.partition(" - ") for line in lines]
    except OSError:
        return ()
    mounts = [mount.split()[4] for mount, _, kind in rows if kind.split()[:1] and kind.split()[0] in REMOTE]
    # A space is `\040` there.
    return tuple(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), mount) for mount in mounts)


_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})

_TROUBLES = {
    errno.ENOSPC: "no inotify watch is left (fs.inotify.max_user_watches)",
    errno.EMFILE: "no inotify instance is left (fs.inotify.max_user_instances)",
}
