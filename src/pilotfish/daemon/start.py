"""Becoming the daemon: detach, take the lock, listen, say so. Only then is the rest of the program imported.

Two locks, both `flock`, so that they end with their process however it ends:

- `daemon` is held for life. Whoever has it is the daemon; a socket file or a pid never decides that (F68, F69).
- `start` is held from before the first is tried until the socket listens. So whoever finds `daemon` taken while
  holding `start` knows that its owner listens already, or is ending; nobody mistakes one that is about to listen for
  a dead one.

A lock file is never deleted: one who waits for the old file and one who opens a new one would both win.
"""

import fcntl
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Never

from pilotfish.ipc.rendezvous import Busy, NoDaemon, Place, Unsafe, check_socket, connected

START_SECONDS = 30
"""How long to wait for one that is starting (milliseconds) or ending (10 s at most)."""

BACKLOG = 256
"""Clients that may knock before the event loop runs: as many as may be connected at all."""


class Claim:
    """What makes this process the daemon."""

    # A dataclass would cost as much as everything else that is imported before the daemon listens.
    __slots__ = ("listener", "lock", "place")

    def __init__(self, place: Place, lock: int, listener: socket.socket) -> None:
        self.place = place
        self.lock = lock
        self.listener = listener

    def holds(self) -> bool:
        """Whether the lock is still the one that others look at: somebody may have deleted the whole folder."""
        return _is_at(self.place.lock, self.lock)


def main(saying: int) -> Never:
    """Be the program that `surfaces.starter` runs. `saying` is the pipe on which a client waits for word."""
    if os.fork():
        os._exit(0)
    os.set_inheritable(saying, False)  # noqa: FBT003 - its only signature
    place = Place(os.environ)
    try:
        settle(place)
        claim = claimed(place)
    except Exception as error:  # noqa: BLE001 -- whoever waits must hear of anything, and nobody else is there to
        _say(saying, f"failed {error}")
        os._exit(1)
    _say(saying, "ready" if claim else "running")
    if claim is not None:
        from pilotfish.daemon.main import run

        run(claim)
    os._exit(0)


def settle(place: Place) -> None:
    """Leave what was inherited behind: signals, folder and standard streams; what is printed goes to the log."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir("/")
    make_private(place.folder)
    make_private(os.path.dirname(place.log))
    log = os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def claimed(place: Place, seconds: int = START_SECONDS) -> Claim | None:
    """Become the one daemon, or return None because another serves. Blocks, and raises `TimeoutError` at the end."""
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(seconds)
    try:
        make_private(place.folder)
        make_private(place.socket_folder)
        starting = locked(place.start_lock)
        try:
            lock = maybe_locked(place.lock)
            if lock is None:
                if _is_served(place):
                    return None
                lock = locked(place.lock)
            return Claim(place, lock, listening(place))
        finally:
            os.close(starting)
    finally:
        signal.alarm(0)


def make_private(folder: str) -> None:
    """Make a folder, or make sure of one that is there; raises `Unsafe` when it is another's, or a link."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise Unsafe(f"{folder} is no folder of ours") from None
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise Unsafe(f"{folder} belongs to another user")
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def locked(path: str) -> int:
    """An open descriptor that holds the lock on what is at `path`. Blocks."""
    while True:
        descriptor = _flocked(path, fcntl.LOCK_EX)
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


def maybe_locked(path: str) -> int | None:
    """The same without waiting; None when another has it."""
    while True:
        try:
            descriptor = _flocked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)


def listening(place: Place) -> socket.socket:
    """A listening socket; only the holder of the lock may call this, for it removes what a dead daemon left there."""
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


def _is_served(place: Place) -> bool:
    try:
        connected(place, 1.0).close()
    except NoDaemon:
        return False
    except Busy:
        return True
    return True


def _flocked(path: str, operation: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, operation)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(path: str, descriptor: int) -> bool:
    try:
        there, ours = os.stat(path, follow_symlinks=False), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _too_late(_number: int, _frame: object) -> Never:
    raise TimeoutError("another daemon is neither here nor gone")


def _say(saying: int, word: str) -> None:
    line = " ".join(word.split())
    try:
        os.write(saying, line.encode(errors="replace")[:1000])
    except BrokenPipeError:
        # The client has given up. The next one finds us.
        print(line, file=sys.stderr)  # noqa: T201 -- standard error is the log
    os.close(saying)
