"""The journal of a transaction, on disk, so that a process that is killed leaves nothing half written.

One folder per transaction, locked while its process lives: an unlocked one belongs to a process that is gone, whatever
its pid is now. `plan` is complete and durable before anything is written, `ready` before the first file changes; it is
renamed to `done` after the last.
"""

import json
import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec
from msgspec import Struct

from pilotfish.errors import Code, Unavailable
from pilotfish.model import AbsPath
from pilotfish.policy.openat import sync_folder, write_all
from pilotfish.system import calls
from pilotfish.system.ownership import is_private, make_private_folders
from pilotfish.system.ports import Identity

PLAN, READY, DONE, DRAFT = "plan", "ready", "done", "draft"

TRIES = 3
"""A recovery may take a new folder before its maker has locked it; then another one is created."""

FOLDER_FLAGS = os.O_RDONLY | calls.O_DIRECTORY | calls.O_NOFOLLOW

T = TypeVar("T")


class JournalPlace(Struct, frozen=True):
    """A file or folder below a root."""

    root: AbsPath
    inode: int
    """Of the root: another folder under the same name is none of ours."""
    segments: tuple[str, ...]

    def __str__(self) -> str:
        return os.path.join(self.root, *self.segments)


class Plan(Struct, frozen=True):
    files: tuple[tuple[JournalPlace, Identity | None], ...]
    """Each with what was there; None where there was no file."""
    made: tuple[JournalPlace, ...]
    """Folders that are made on the way, each before those in it."""
    emptied: tuple[JournalPlace, ...]
    """Folders that go when all is done, each before those in it."""


Ready = tuple[Identity | None, ...]
"""Of each file of a plan what will be there, when all of it is written beside; None where there will be no file."""


class Journal(Struct, frozen=True):
    """The folder of one transaction, locked by us."""

    home: AbsPath
    token: str
    folder: int

    def write(self, name: str, content: Plan | Ready) -> None:
        """From here on, whoever comes after us knows this."""
        descriptor = os.open(DRAFT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self.folder)
        try:
            write_all(descriptor, json.dumps(msgspec.to_builtins(content)).encode())
        finally:
            os.close(descriptor)
        os.rename(DRAFT, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        sync_folder(self.folder)

    def read(self, name: str, shape: type[T]) -> T | None:
        """None when it was not written; raises `ValueError` when this is not ours to read."""
        try:
            descriptor = os.open(name, os.O_RDONLY, dir_fd=self.folder)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as opened:
            # Not by msgspec alone: names that are no UTF-8 are lone surrogates here.
            return msgspec.convert(json.loads(opened.read()), shape)

    def finish(self) -> None:
        """From here on, nothing is undone."""
        os.rename(READY, DONE, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def remove(self) -> None:
        """Its transaction is over."""
        for name in os.listdir(self.folder):
            os.unlink(name, dir_fd=self.folder)
        os.rmdir(os.path.join(self.home, self.token))


@contextmanager
def new_journal(home: AbsPath) -> Generator[Journal]:
    """A journal of our own; it is there after the block only if the block did not remove it."""
    make_private_folders(home)
    for _ in range(TRIES):
        token = secrets.token_hex(8)
        os.mkdir(os.path.join(home, token), 0o700)
        descriptor = _maybe_locked(home, token)
        if descriptor is not None:
            break
    else:
        raise Unavailable(Code.OVERLOADED, f"no journal could be begun in {home}")
    try:
        above = os.open(home, FOLDER_FLAGS)
        try:
            sync_folder(above)
        finally:
            os.close(above)
        yield Journal(home, token, descriptor)
    finally:
        os.close(descriptor)


def lock_abandoned(home: AbsPath) -> Iterator[Journal]:
    """The journals whose process is gone, each locked while it is looked at.

    What others can write is no journal of ours: a variable may have led here into somebody's repository.
    """
    for token in sorted(os.listdir(home)) if os.path.isdir(home) else ():
        if not is_private(os.lstat(os.path.join(home, token))):
            continue
        descriptor = _maybe_locked(home, token)
        if descriptor is not None:
            try:
                yield Journal(home, token, descriptor)
            finally:
                os.close(descriptor)


def _maybe_locked(home: AbsPath, token: str) -> int | None:
    """The folder, open and locked; None when it is somebody's or gone."""
    path = os.path.join(home, token)
    try:
        descriptor = os.open(path, FOLDER_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        calls.lock(descriptor)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
