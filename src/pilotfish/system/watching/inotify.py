"""Watching on Linux: inotify, one watch per folder, and only the folders that a session asked for.

Rules:
- An event is a hint where to look; `tree` compares. Events that the kernel dropped mean looking everywhere.
- A folder that cannot be watched (no watch left, a network file system, which tells only of our own changes) is polled,
  in slices, and `health` says so.
- `drain` takes what the kernel already holds, so what was written before it was called is seen, whoever wrote it.

Many events, and everything that walks the tree, are dealt with in a worker thread; `_lock` keeps it to one at a time.
One event may stand for a tree of any size that was moved here or away, so at once only files are looked at.
"""

import sys

if sys.platform != "linux":
    raise ImportError("inotify is Linux's")

import ctypes
import errno
import fcntl
import math
import os
import re
import termios
import time
from array import array
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from struct import Struct as Layout
from typing import NamedTuple

import anyio
import anyio.to_thread
from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.watching import PathChange
from pilotfish.system.ports import Clock, Interest, WatchHealth
from pilotfish.system.tasks import owned_tasks
from pilotfish.system.watching.aliases import Aliases
from pilotfish.system.watching.ignoring import tops
from pilotfish.system.watching.tree import MAX_FOLDERS, MAX_SHARED, WatchedTree
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


# --- The watcher ------------------------------------------------------------------------------------------------------

WRITTEN = CREATE | MODIFY | MOVED_TO | CLOSE_WRITE
"""What tells that a file has another content now. Of a write through a memory mapping there is only `CLOSE_WRITE`, and
not before the mapping is gone; the times of the file need not differ from the last look then."""

MASK = WRITTEN | ATTRIB | DELETE | MOVED_FROM | DELETE_SELF | MOVE_SELF | ONLY_FOLDERS

INLINE_BYTES = 16 * 1024
"""Of waiting events. Up to here, some 500 events, they take less than 10 ms."""

POLL_SECONDS = 2.0
"""How often what cannot be watched is looked at while no question comes."""

POLL_SLICE_SECONDS = 0.1
"""How long one look at it may take: 5 % of a processor, and no answer is delayed by more."""

CLOSE_SECONDS = 5.0
"""For a walk over the tree that is under way; one over 50,000 folders takes as long."""

REMOTE = frozenset({
    "9p", "afs", "ceph", "cifs", "davfs", "drvfs", "fuse.gvfsd-fuse", "fuse.rclone", "fuse.sshfs", "lustre", "nfs",
    "nfs4", "prl_fs", "smb3", "vboxsf", "virtiofs",
})  # fmt: skip
"""File systems on which others can change files without this kernel knowing."""


@asynccontextmanager
async def open_inotify_watcher(
    clock: Clock, make: Callable[[], Inotify] | None = None
) -> AsyncGenerator["InotifyWatcher"]:
    """The `OpenWatcher` port, but for its clock. `make` is for tests."""
    watcher = inotify_watcher(clock, make)
    try:
        yield watcher
    finally:
        await watcher.close()


def inotify_watcher(clock: Clock, make: Callable[[], Inotify] | None = None) -> "InotifyWatcher":
    """A watcher that whoever makes it must close."""
    return InotifyWatcher(_Sentry(make or Inotify), clock)


class InotifyWatcher:
    """The `Watcher` port over inotify."""

    def __init__(self, sentry: "_Sentry", clock: Clock) -> None:
        self._sentry = sentry
        self._tree = WatchedTree(sentry, clock.wall)
        self.recent = self._tree.recent
        self._aliases = Aliases(self._tree)
        self.aliases = self._aliases.of
        self._interest = Interest(())
        self._lock = anyio.Lock()
        self._renewed = anyio.Event()
        self._hints = Hints()
        """What the kernel has told and nobody has looked at yet."""
        self._overflows = 0

    async def cover(self, interest: Interest) -> None:
        async with self._lock:
            before = self._interest
            try:
                if (before.roots, before.registrations) == (interest.roots, interest.registrations):
                    self._attend(interest)
                else:
                    await anyio.to_thread.run_sync(self._cover, interest)
            finally:
                self._renewed.set()
                self._renewed = anyio.Event()

    async def drain(self) -> tuple[PathChange, ...]:
        found = self.drain_now()
        if found is not None:
            return found
        async with self._lock:
            await anyio.to_thread.run_sync(self._catch_up)
            return self._tree.take()

    def drain_now(self) -> tuple[PathChange, ...] | None:
        waiting = self._sentry.waiting_bytes()
        if self._lock.locked() or waiting > INLINE_BYTES or self._tree.watches.without:
            return None
        self._sentry.read(self._hints, self._tree.watches)
        if self._hints.need_a_walk or not self._tree.is_settled():
            return None
        self._look_at_hints()
        return None if self._tree.has_new_rules else self._tree.take()

    async def wait_for_changes(self) -> None:
        async with owned_tasks() as tasks:
            renewed = self._renewed

            async def wait_for_cover() -> None:
                await renewed.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_cover)
            with anyio.move_on_after(POLL_SECONDS if self._polls else math.inf):
                await self._sentry.readable()
            tasks.cancel_scope.cancel()

    @property
    def health(self) -> WatchHealth:
        tree = self._tree
        degraded = self._degraded()
        lost = tree.crowded or tree.has_too_many_links or tree.is_behind
        behind = degraded if lost else None
        return WatchHealth(len(tree.watches), len(tree.watches.without), self._overflows, degraded, behind)

    async def close(self) -> None:
        """Also while everything around is being cancelled; a walk that is under way ends by itself."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._lock.acquire()
            self._lock.release()
        self._sentry.close()

    def _cover(self, interest: Interest) -> None:
        self._tree.cover(tops(interest))
        self._aliases.learn()
        self._attend(interest)

    def _attend(self, interest: Interest) -> None:
        self._tree.attend(interest.folders)
        self._interest = interest

    @property
    def _polls(self) -> bool:
        return bool(self._tree.watches.without) or self._tree.missing

    def _degraded(self) -> str | None:
        if self._tree.crowded:
            return f"there are more than {MAX_FOLDERS} folders; the others are not watched"
        if self._tree.watches.without:
            return self._sentry.trouble or self._tree.trouble
        too_many = f"there are more than {MAX_SHARED} links or files with several names"
        return too_many if self._tree.has_too_many_links else None

    def _catch_up(self) -> None:
        self._look()
        self._tree.reread()

    def _look(self) -> None:
        """Look wherever something may have changed."""
        self._sentry.read(self._hints, self._tree.watches)
        if self._hints.are_lost:
            self._hints = Hints()
            self._overflows += 1
            self._tree.compare_all()
        else:
            self._look_at_hints()
            until = time.monotonic() + POLL_SLICE_SECONDS
            self._tree.poll(lambda: time.monotonic() >= until)
        self._tree.settle()

    def _look_at_hints(self) -> None:
        hints, self._hints = self._hints, Hints()
        for (folder, name), written in hints.names.items():
            self._tree.look(folder, name, written=written)


class Hints(Struct):
    """Where something may have changed."""

    names: dict[tuple[AbsPath, str], bool] = field(default_factory=dict[tuple[AbsPath, str], bool])
    """Folder and name → whether it was written."""
    has_folders: bool = False
    are_lost: bool = False
    """The kernel dropped some."""

    @property
    def need_a_walk(self) -> bool:
        return self.has_folders or self.are_lost


class _Sentry:
    """One inotify instance, made when the first folder is to be watched."""

    def __init__(self, make: Callable[[], Inotify]) -> None:
        self._make = make
        self._inotify: Inotify | None = None
        self._closed = False
        self._remote = remote_mounts()
        self.trouble = ""
        """Why a folder could not be watched, the last time that one could not."""

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

    async def readable(self) -> None:
        if self._inotify is None:
            await anyio.sleep_forever()
        else:
            await anyio.wait_readable(self._inotify.descriptor)

    def read(self, hints: Hints, watches: Watches) -> None:
        """Take in everything that the kernel tells of."""
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

    def close(self) -> None:
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
    return tuple(
        _unescaped(mount.split()[4]) for mount, _, kind in rows if kind.split()[:1] and kind.split()[0] in REMOTE
    )


def _unescaped(field: str) -> str:
    r"""A field of the table of mounts, in which a space is `\040`."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})

_TROUBLES = {
    errno.ENOSPC: "no inotify watch is left (fs.inotify.max_user_watches)",
    errno.EMFILE: "no inotify instance is left (fs.inotify.max_user_instances)",
}
