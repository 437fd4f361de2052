"""Second names for files, below a folder that is already open (`policy.beneath`).

A file with a second name survives whatever happens to the first one, as the same file: its content, its mode, its
time, and what somebody is writing into it. Where a file system has no such names, a copy must do.
"""

import errno
import hashlib
import os
import stat
from contextlib import suppress

from pilotfish.policy.openat import NEW_FILE_FLAGS, status_of, write_all

NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK, errno.ENOSYS})
"""What a file system says that has no second names, or none for this file."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""A name more may need space; moving the one that is there does not."""

COPY_BYTES = 1024 * 1024


def second_name(source: int, name: str, folder: int, new: str) -> None:
    """Give the file `name` in the folder `source` another name in `folder`, which must be free."""
    try:
        os.link(name, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _copy(source, name, folder, new)


def give_name(folder: int, name: str, new: str) -> None:
    """Let the file `name` be `new`, which must be free; `name` may stay as its second name."""
    try:
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS | NO_ROOM:
            raise
        if status_of(folder, new) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=folder)


def drop_name(folder: int, name: str) -> None:
    """Take a name away, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def digest(folder: int, name: str) -> str:
    """The SHA-256 of a regular file's content; empty when it is no regular file."""
    descriptor = _open(folder, name)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _copy(source: int, name: str, folder: int, new: str) -> None:
    reading = _open(source, name)
    try:
        writing = os.open(new, NEW_FILE_FLAGS, 0o600, dir_fd=folder)
        try:
            os.fchmod(writing, stat.S_IMODE(os.fstat(reading).st_mode))
            while part := os.read(reading, COPY_BYTES):
                write_all(writing, part)
            os.fsync(writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _open(folder: int, name: str) -> int:
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
