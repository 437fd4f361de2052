"""How config files are read: once, whole, bounded, and never through something that could block or lead elsewhere.

What is parsed is the buffer that was read; nothing is read twice (T5). A user's file may be a symbolic link (people
keep their dotfiles so). A project's may not: it is read through a descriptor of the workspace, step by step without
following links, so that neither a link nor a swap while we look can make another folder's file count as this
project's (T3, T29). FIFOs, devices and folders are refused by their type, before a byte is read (T43).
"""

import errno
import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside

MAX_BYTES = 262_144
"""A hand-written config file is a few KiB; this bounds what one load costs."""

MAX_PROGRAM_BYTES = 67_108_864
"""What is hashed of one program inside the workspace; larger ones are approved by size only."""

OPEN_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class UnreadableFile(Exception):
    """The file is there and cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file outside every project. `tampering` says who else could have written it, if somebody could."""

    data: bytes = field(repr=False)
    tampering: str | None


def read_user_file(path: AbsPath) -> UserFile | None:
    """The file at `path`, or None when there is none; raises `UnreadableFile`."""
    try:
        descriptor = os.open(path, OPEN_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableFile(_said(error)) from None
    try:
        status = os.fstat(descriptor)
        return UserFile(_all_of(descriptor, status), _tampering(status))
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
        """A file below, by its relative name, or None when there is none; raises `UnreadableFile`."""
        *folders, last = name.split("/")
        descriptor = os.dup(self.descriptor)
        try:
            for folder in folders:
                descriptor = _stepped(descriptor, folder, OPEN_FOLDER)
            descriptor = _stepped(descriptor, last, OPEN_FILE)
            return _all_of(descriptor, os.fstat(descriptor))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableFile(_said(error)) from None
        finally:
            os.close(descriptor)

    def program_hash(self, word: str) -> str | None:
        """The hash of the file of this workspace that a word of a command line names, or None when it names none."""
        if "\0" in word or not is_inside(path := os.path.realpath(os.path.join(self.path, word)), self.path):
            return None
        try:
            descriptor = os.open(path, OPEN_FILE | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"unreadable: {_said(error)}"
        try:
            return _hash_of(descriptor, os.fstat(descriptor))
        finally:
            os.close(descriptor)


@contextmanager
def open_workspace(root: str) -> Generator[WorkspaceFiles]:
    """The folder that `root` really is, for as long as the block lasts; raises `Refused` when it is none."""
    path = os.path.realpath(root)
    try:
        descriptor = os.open(path, OPEN_FOLDER | os.O_NOFOLLOW)
    except OSError as error:
        raise Refused(Code.ROOT_GONE, f"the workspace {path} cannot be opened: {_said(error)}") from None
    try:
        status = os.fstat(descriptor)
        yield WorkspaceFiles(AbsPath(path), status.st_dev, status.st_ino, descriptor)
    finally:
        os.close(descriptor)


def _stepped(folder: int, name: str, flags: int) -> int:
    """Open `name` in `folder`, and let `folder` go."""
    try:
        descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK} and _is_link(name, folder):
            raise UnreadableFile("it is a symbolic link, or in one: a project's config file must be its own") from None
        if error.errno == errno.ENOTDIR:
            raise FileNotFoundError from None
        raise
    os.close(folder)
    return descriptor


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _all_of(descriptor: int, status: os.stat_result) -> bytes:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile("it is not a regular file")
    chunks: list[bytes] = []
    left = MAX_BYTES + 1
    while left and (chunk := os.read(descriptor, left)):
        chunks.append(chunk)
        left -= len(chunk)
    if not left:
        raise UnreadableFile(f"it is larger than {MAX_BYTES} bytes")
    return b"".join(chunks)


def _hash_of(descriptor: int, status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_size > MAX_PROGRAM_BYTES:
        return f"size: {status.st_size}"
    with open(descriptor, "rb", closefd=False) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _tampering(status: os.stat_result) -> str | None:
    if status.st_uid not in {os.geteuid(), 0}:
        return f"it belongs to another user (uid {status.st_uid})"
    if status.st_mode & stat.S_IWOTH:
        return "every user may write it"
    return None


def _said(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
