"""System calls that are not the same everywhere, one function each.

Only a comparison of `sys.platform` tells a type-checker what runs where, so it stands here, and in the few modules that
may import nothing. Descriptors are never inherited: Python opens them so.
"""

import os
import signal
import stat
import sys
from collections.abc import Callable
from operator import attrgetter

if sys.platform == "win32":
    import msvcrt

    from pilotfish.system import windows_os
    from pilotfish.system.windows_os import FOLDER as O_DIRECTORY
    from pilotfish.system.windows_os import NO_FOLLOW as O_NOFOLLOW

    O_NOCTTY = O_NONBLOCK = 0
    """Nothing that is opened as a file blocks there."""
else:
    import fcntl
    import resource
    import select
    from os import O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK

__all__ = ["O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK"]

O_PATH = os.O_PATH if sys.platform == "linux" else windows_os.PINNED if sys.platform == "win32" else os.O_RDONLY
"""Opens what it may not read, where the system knows such a thing."""


ENDING = (signal.SIGTERM, signal.SIGINT) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""How people, shells and hosts tell a program to end."""


changed_ns: Callable[[os.stat_result], int] = attrgetter("st_mtime_ns" if sys.platform == "win32" else "st_ctime_ns")
"""When a file was last changed; for Windows, `st_ctime_ns` is when it was made."""


def user() -> int:
    """This user, as the owner of a file: on Windows that is 0 for every file, and lists of access keep others out."""
    return 0 if sys.platform == "win32" else os.geteuid()


def mode_of(status: os.stat_result) -> int:
    """Who may do what with a file: Windows says the same of every file, and keeps others out of a user's folders."""
    return status.st_mode & ~0o077 if sys.platform == "win32" else status.st_mode


def set_mode(descriptor: int, mode: int) -> None:
    """Who may do what with an open file; Windows takes that from the folder."""
    if sys.platform != "win32":
        os.fchmod(descriptor, mode)


def keep_others_out(folder: str) -> None:
    """The same for a folder and what is made in it, where a list of access says it."""
    if sys.platform == "win32":
        windows_os.keep_others_out(folder)


def lives(pid: int) -> bool:
    """Whether such a process runs."""
    if sys.platform == "win32":
        import psutil  # the call below would end it there

        return psutil.pid_exists(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # somebody else's
    return True


def set_blocking(descriptor: int, *, blocking: bool = True) -> None:
    """Windows' pipes always block: they are read in threads there."""
    if sys.platform != "win32":
        os.set_blocking(descriptor, blocking)


def duplicate(descriptor: int, lowest: int) -> int:
    """A copy with a number that is not below this one, which nothing that is started inherits."""
    return os.dup(descriptor) if sys.platform == "win32" else fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


def widen_pipe(descriptor: int, size: int) -> None:
    """Let a pipe hold so many bytes, where it can; raises `OSError` for what is none."""
    if sys.platform == "linux":
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)


def lock(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file for as long as it is open; raises `BlockingIOError` when another process has it."""
    if sys.platform == "win32":
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            windows_os.lock_folder(descriptor)
            return
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            except OSError:  # it waits for ten seconds at a time
                if not wait:
                    raise BlockingIOError from None
            else:
                return
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


LOCKED_BYTE = 1 << 30
"""Windows locks bytes, which nobody else can read then: one where no file has any."""


def open_process(pid: int) -> int:
    """A descriptor that is readable when that process has ended.

    Raises `ProcessLookupError` when it has already, and `OSError` where the system has no such descriptors.
    """
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):  # some Pythons are built for older kernels
        return os.pidfd_open(pid)
    if sys.platform == "darwin":
        queue = select.kqueue()
        ended = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT)
        try:
            queue.control([ended], 0)
            return os.dup(queue.fileno())
        finally:
            queue.close()
    raise OSError


def call_after(seconds: float, act: Callable[[int, object], None]) -> None:
    """Interrupt the main thread then; 0 takes that back. Windows cannot: there the limits of sockets must do."""
    if sys.platform != "win32":
        if seconds:
            signal.signal(signal.SIGALRM, act)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def allow_descriptors(wanted: int) -> None:
    """Raise our own limit, as far as the system lets us; shells set it to 1024 or 256. Windows has none."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def give_back_memory() -> None:
    """Have the system get back what is freed; only with glibc is there something to say.

    It keeps a heap for each thread, and frees a heap from its end alone: worker threads that read whole projects left
    two thirds of 54 MB unused, which nobody else could have. One Python thread runs at a time: one heap is enough.
    """
    import ctypes  # for the daemon alone

    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for parameter, value in ((M_ARENA_MAX, 1), (M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, KEPT_BYTES)):
            libc.mallopt(parameter, value)


M_ARENA_MAX, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -8, -1, -3
"""Of glibc's `malloc.h`."""

KEPT_BYTES = 128 * 1024
"""Its own first values, which it raises up to 64 MB for good when something so large is freed."""
