"""The claim to be the one daemon of a user: two locks and the listening socket.

Both locks are `flock`s, so they end with their process however it ends:

- `daemon` is held for life. Its holder is the daemon; a socket file or a pid never decides that (F68, F69).
- `start` is held from before `daemon` is tried until the socket listens. So a process that holds `start` and finds
  `daemon` taken knows that the holder listens already, or is ending: it never mistakes one that is about to listen for
  a dead one.

A lock file is never deleted: a process that waits for the old file and one that opens a new one would both win.
That of the daemon holds its process while it runs. A daemon that is killed writes no log: the next one finds the number
there, and writes the line.
"""

import os
import socket
import sys
from contextlib import suppress
from typing import Never

from pilotfish.ipc.rendezvous import Busy, DaemonPlace, NoDaemon, Unsafe, check_socket, connect
from pilotfish.system import calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pilotfish.ipc.loopback import Endpoint

START_SECONDS = 30
"""How long to wait for one that is starting (milliseconds) or ending (10 s at most)."""

BACKLOG = 4096
"""Clients that may connect before the event loop runs: as many as Linux allows by default. They cost no descriptor."""

SHORT_FOLDER = "/tmp"  # noqa: S108 - what is made in it is a private folder with a random name, checked before use
"""Where the socket goes when the usual path is too long."""


class DaemonClaim:
    # A dataclass would cost as much as everything else that is imported before the daemon listens.
    __slots__ = ("endpoint", "listener", "lock", "place")

    def __init__(
        self, place: DaemonPlace, lock: int, listener: socket.socket, endpoint: "Endpoint | None" = None
    ) -> None:
        self.place = place
        self.lock = lock
        self.listener = listener
        self.endpoint = endpoint
        """What its clients say and hear first, where anybody can connect."""

    def holds(self) -> bool:
        """Whether the lock file is still the one at its path: the whole folder may have been deleted."""
        return _is_at(self.place.lock, self.lock)

    def begin(self) -> str:
        """Write down that we run; returns the process of a daemon that did not write down its own end, or nothing."""
        os.lseek(self.lock, 0, os.SEEK_SET)
        left = os.read(self.lock, 20).decode(errors="replace")
        self.end()
        with suppress(OSError):  # the disk is full
            os.lseek(self.lock, 0, os.SEEK_SET)
            os.write(self.lock, b"%d" % os.getpid())
        return left

    def end(self) -> None:
        """Write down that this end is no surprise."""
        with suppress(OSError):
            os.ftruncate(self.lock, 0)


def claim_daemon(place: DaemonPlace, seconds: int = START_SECONDS) -> DaemonClaim | None:
    """Become the one daemon, or return None because another one serves. Blocks; raises `TimeoutError`."""
    calls.call_after(seconds, _too_late)
    try:
        make_private(place.folder)
        starting = take_lock(place.start_lock)
        try:
            if place.short:
                _shorten(place)
            lock = try_lock(place.lock)
            if lock is None:
                with suppress(NoDaemon):
                    with suppress(Busy):
                        connect(place, 1.0).close()
                    return None
                lock = take_lock(place.lock)
            where = listen_here(place) if sys.platform == "win32" else (listen(place), None)
            return DaemonClaim(place, lock, *where)
        finally:
            os.close(starting)
    finally:
        calls.call_after(0, _too_late)


def _shorten(place: DaemonPlace) -> None:
    """Make the folder of the socket. A neighbour may take any name in a folder that all share: then it is another."""
    with suppress(Unsafe):
        if place.socket_folder != place.folder:
            make_private(place.socket_folder)
            return
    from tempfile import mkdtemp  # costs as much as all of this module

    link = f"{place.short}.new"
    with suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink(mkdtemp(prefix="pilotfish-", dir=SHORT_FOLDER), link)
    os.replace(link, place.short)


def make_private(folder: str) -> None:
    """Make a private folder, or check the one that exists; raises `Unsafe` when it is another user's, or a link."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    try:
        descriptor = os.open(folder, os.O_RDONLY | calls.O_DIRECTORY | calls.O_NOFOLLOW)
    except OSError:
        raise Unsafe(f"{folder} is not a folder of this user") from None
    try:
        if os.fstat(descriptor).st_uid != calls.user():
            raise Unsafe(f"{folder} belongs to another user")
        calls.set_mode(descriptor, 0o700)
        calls.keep_others_out(folder)
    finally:
        os.close(descriptor)


def take_lock(path: str, *, wait: bool = True) -> int:
    """Lock the file at `path` and return its open descriptor. Blocks; without `wait` it raises `BlockingIOError` when
    another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | calls.O_NOFOLLOW, 0o600)
        try:
            calls.lock(descriptor, wait=wait)
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


def try_lock(path: str) -> int | None:
    """The same without blocking; None when another process holds it."""
    try:
        return take_lock(path, wait=False)
    except BlockingIOError:
        return None


def listen(place: DaemonPlace) -> socket.socket:
    """Return a listening socket. Only the holder of the lock may call this: it removes a dead daemon's socket."""
    assert sys.platform != "win32"
    try:
        check_socket(place.socket)
        os.unlink(place.socket)
    except NoDaemon:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(place.socket)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.setblocking(False)  # noqa: FBT003 - its only signature
    return listener


def listen_here(place: DaemonPlace) -> "tuple[socket.socket, Endpoint]":
    """The same where sockets have no place in a folder: a port, and in the folder a file with its secrets."""
    from pilotfish.ipc.loopback import HERE, new_endpoint, written
    from pilotfish.system.regular_files import replace_file

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        listener.bind((HERE, 0))
        listener.listen(BACKLOG)
        endpoint = new_endpoint(listener.getsockname()[1])
        replace_file(place.socket, written(endpoint), 0o600)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)  # noqa: FBT003 - its only signature
    return listener, endpoint


def _is_at(path: str, descriptor: int) -> bool:
    try:
        there, ours = os.stat(path, follow_symlinks=False), os.fstat(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _too_late(_number: int, _frame: object) -> Never:
    raise TimeoutError("another daemon neither answered nor ended in time")
