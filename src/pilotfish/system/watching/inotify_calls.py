"""The kernel's inotify: watches are numbers, events are a number, a mask and a name.

Called by ctypes, because a project and the libraries that its servers read have thousands of folders: a watch takes
5 µs here, and 23 µs with objects for paths, masks and watches around it.
"""

import ctypes
import fcntl
import os
import termios
from array import array
from collections.abc import Iterator
from struct import Struct as Layout
from typing import NamedTuple

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
