"""Reading config files: once, whole, bounded, and never through a file that could block or lead elsewhere.

What is parsed is the buffer that was read; nothing is read twice (T5). A user's file may be a symbolic link (people
keep their dotfiles so). A project's may not: it is read through a descriptor of the workspace, step by step without
following links, so that neither a link nor a swap while we look can make another folder's file count as this
project's (T3, T29). FIFOs, devices and folders are refused by their type, before a byte is read (T43).
"""

import errno
import hashlib
import os
import stat
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.system import calls
from pilotfish.system.ownership import is_foreign
from pilotfish.system.real_path import real_path

MAX_BYTES = 262_144  # A hand-written config file is a few KiB; this bounds what one load costs

MAX_PROJECT_BYTES = 32_768
"""Of a project's own, which anybody may have written: the event loop waits for as long as it takes to read it."""

MAX_PROGRAM_BYTES = 67_108_864
"""The largest file of a workspace that is hashed; a larger one is approved by its inode, size and time of change."""

OPEN_FILE = os.O_RDONLY | calls.O_NONBLOCK
OPEN_FOLDER = os.O_RDONLY | calls.O_DIRECTORY


class UnreadableFile(Exception):
    """The file exists and cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file outside every project. `tampering` says which other user could have written it, if one could."""

    data: bytes = field(repr=False)
    tampering: str | None


def read_user_file(path: AbsPath, max_bytes: int = MAX_BYTES) -> UserFile | None:
    """The file at `path`, or None when it does not exist; raises `UnreadableFile`."""
    try:
        descriptor = os.open(path, OPEN_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    try:
        status = os.fstat(descriptor)
        tampering = f"it belongs to another user (uid {status.st_uid})" if is_foreign(status) else None
        if tampering is None and calls.mode_of(status) & stat.S_IWOTH:
            tampering = "every user may write it"
        return UserFile(_read_all(descriptor, status, max_bytes), tampering)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class WorkspaceFiles:
    """An open folder. Everything below it is read through its descriptor."""

    path: AbsPath
    device: int
    inode: int
    descriptor: int = field(repr=False)

    def read(self, name: str) -> bytes | None:
        """The file of this relative name, or None when it does not exist; raises `UnreadableFile`."""
        *folders, last = name.split("/")
        descriptor = os.dup(self.descriptor)
        try:
            for folder in folders:
                descriptor = _step_into(descriptor, folder, OPEN_FOLDER)
            descriptor = _step_into(descriptor, last, OPEN_FILE)
            status = os.fstat(descriptor)
            if is_foreign(status):
                raise UnreadableFile(f"it belongs to another user (uid {status.st_uid})")
            return _read_all(descriptor, status, MAX_PROJECT_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableFile(_reason(error)) from None
        finally:
            os.close(descriptor)

    def incarnation(self) -> str | None:
        """What tells it from a folder that is created later under the same name; None where nothing does."""
        return " ".join(filter(None, (_birth(self.descriptor), _generation(self.descriptor)))) or None


@contextmanager
def open_workspace(root: str) -> Generator[WorkspaceFiles]:
    """The real folder behind `root`, open for as long as the block lasts; raises `Refused` when it cannot be opened."""
    path = real_path(root)
    try:
        descriptor = os.open(path, OPEN_FOLDER | calls.O_NOFOLLOW)
    except OSError as error:
        raise Refused(Code.ROOT_GONE, f"the workspace {path} cannot be opened: {_reason(error)}") from None
    try:
        status = os.fstat(descriptor)
        yield WorkspaceFiles(AbsPath(path), status.st_dev, status.st_ino, descriptor)
    finally:
        os.close(descriptor)


def _step_into(folder: int, name: str, flags: int) -> int:
    """Open `name` in `folder`, and close `folder`."""
    try:
        descriptor = os.open(name, flags | calls.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK} and _is_link(name, folder):
            raise UnreadableFile("a project's config file must not be a symbolic link, or below one") from None
        if error.errno == errno.ENOTDIR:
            raise FileNotFoundError from None
        raise
    os.close(folder)
    return descriptor


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _read_all(descriptor: int, status: os.stat_result, max_bytes: int) -> bytes:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile("it is not a regular file")
    chunks: list[bytes] = []
    left = max_bytes + 1
    while left and (chunk := os.read(descriptor, left)):
        chunks.append(chunk)
        left -= len(chunk)
    if not left:
        raise UnreadableFile(f"it is larger than {max_bytes} bytes")
    return b"".join(chunks)


def content_hash(workspace: str, path: str) -> str | None:
    """What a file of a workspace holds, as one word; None when there is no file.

    A link counts by what it leads to: the content of a file of the workspace, otherwise the place.
    """
    real = real_path(path)
    if not is_inside(real, workspace):
        return f"leads to {real}" if os.path.lexists(real) else None
    try:
        descriptor = os.open(real, OPEN_FILE | calls.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"unreadable: {_reason(error)}"
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > MAX_PROGRAM_BYTES:
            # Nobody who writes the file can set the time of the last change of its status.
            return f"size: {status.st_size}, inode: {status.st_ino}, changed: {status.st_ctime_ns}"
        with open(descriptor, "rb", closefd=False) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# --- A folder, and a later one with the same name and inode -----------------------------------------------------------

# File systems give out an inode again at once (T50). The birth time and the generation of the inode, as far as the file
# system has them. Neither can be set by who may write the folder. Both, because two folders may be born in one tick of
# an older kernel's clock.

AT_EMPTY_PATH = 0x1000
STATX_BTIME = 0x800
STATX_SIZE = 256
MASK, BIRTH = 0, 0x50
"""Where `struct statx` has what it holds, and the birth time."""

FS_IOC_GETVERSION = 0x80087601


def _birth(descriptor: int) -> str | None:
    import ctypes  # only where something was approved

    status = os.fstat(descriptor)
    if sys.platform == "win32":
        return f"born {status.st_ctime_ns}"
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
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        (number,) = struct.unpack("=L", fcntl.ioctl(descriptor, FS_IOC_GETVERSION, bytes(8))[:4])
    except OSError:
        return None
    return f"generation {number}" if number else None
