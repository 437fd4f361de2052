"""Tells a folder from a later one with the same name and inode: file systems give out an inode again at once (T50).

The birth time and the generation of the inode, as far as the file system has them. Neither can be set by who may write
the folder. Both, because two folders may be born in one tick of an older kernel's clock.
"""

import ctypes
import fcntl
import os
import struct

AT_EMPTY_PATH = 0x1000
STATX_BTIME = 0x800
STATX_SIZE = 256
MASK, BIRTH = 0, 0x50
"""Where `struct statx` has what it holds, and the birth time."""

FS_IOC_GETVERSION = 0x80087601


def incarnation(descriptor: int) -> str | None:
    """Of an open folder; None where the file system tells nothing of the kind."""
    return " ".join(filter(None, (_birth(descriptor), _generation(descriptor)))) or None


def _birth(descriptor: int) -> str | None:
    status = os.fstat(descriptor)
    if (born := getattr(status, "st_birthtime_ns", None) or getattr(status, "st_birthtime", None)) is not None:
        return f"born {born}"
    call = getattr(ctypes.CDLL(None), "statx", None)
    if call is None:
        return None
    buffer = ctypes.create_string_buffer(STATX_SIZE)
    if call(descriptor, b"", AT_EMPTY_PATH, STATX_BTIME, buffer) != 0:
        return None
    (held,) = struct.unpack_from("=I", buffer, MASK)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, BIRTH)
    return f"born {seconds}.{nanoseconds:09}" if held & STATX_BTIME else None


def _generation(descriptor: int) -> str | None:
    try:
        (number,) = struct.unpack("=L", fcntl.ioctl(descriptor, FS_IOC_GETVERSION, bytes(8))[:4])
    except OSError:
        return None
    return f"generation {number}" if number else None
