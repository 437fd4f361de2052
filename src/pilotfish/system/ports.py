"""The interfaces of the shell: all that the layers above may know of processes, files, their changes and time.

Implementations stand beside this file and are seen by composition roots only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import PathChange, WatchRegistration


class Confinement(Struct, frozen=True):
    """What a program may do, as far as the system can hold it to that. All folders are real."""

    sealed: tuple[AbsPath, ...]
    """Folders below which it executes nothing."""
    writable: tuple[AbsPath, ...] = ()
    """All that it may change."""
    private: tuple[AbsPath, ...] = ()
    """Folders whose files it does not read, """
    readable: tuple[AbsPath, ...] = ()
    """but for these."""
    network: bool = False
    """Whether it may connect to other machines."""
    required: bool = False
    """It does not start where the system cannot hold it to its files."""


HELD = {
    "privileges": "no new privileges",
    "files": "nothing is changed, nothing below the workspace is executed, the home is not read",
    "network": "no network",
}
"""What a system may hold a confined program to, in words."""


def confinement_text(held: Iterable[str]) -> str:
    return ", ".join(HELD[word] for word in HELD if word in set(held))


class Launch(Struct, frozen=True):
    """What to start. `argv[0]` is absolute; `environment` is the whole environment, but for the tag of the tree."""

    argv: Sequence[str]
    cwd: AbsPath
    environment: Mapping[str, str]
    name: str
    """The server's id, for messages and for the process list."""
    confinement: Confinement | None = None


class Exit(Struct, frozen=True):
    """How a process ended: `code` is negative for a signal, as `subprocess` has it."""

    code: int

    @property
    def signal(self) -> int | None:
        return -self.code if self.code < 0 else None


class ByteStream(Protocol):
    """Bytes to and from another program: a pipe pair, a socket, or its like in memory. One reader, one writer."""

    async def receive(self) -> bytes:
        """Return the next bytes; empty at the end of the stream."""
        ...

    async def send(self, data: bytes) -> None:
        """Write all of `data`; raise `BrokenPipe` when either end is closed, `Stalled` when nothing is taken."""

    def close(self) -> None:
        """Close both directions and wake the reader; harmless when it is closed already."""


class Process(Protocol):
    """A running program whose whole process tree is ours to end."""

    @property
    def pid(self) -> int: ...

    @property
    def held(self) -> tuple[str, ...]:
        """What of its confinement the system holds it to: `privileges`, `files`, `network`."""
        ...

    async def send(self, data: bytes) -> None:
        """Write all of `data`; raise `BrokenPipe` when the other end is gone, `Stalled` when it takes nothing."""

    def send_now(self, data: bytes) -> int:
        """Write as much of `data` as is taken without waiting, and say how much; never while `send` is at it."""
        ...

    async def receive(self) -> bytes:
        """Return what came next on standard output; empty at its end."""
        ...

    async def close_input(self) -> None:
        """Close standard input; harmless when it is closed already."""

    async def terminate(self) -> None:
        """Ask the whole tree to end (SIGTERM)."""

    async def kill(self) -> None:
        """End the whole tree now (SIGKILL), whatever it does."""

    async def wait(self) -> Exit:
        """Wait until the program has ended and nothing of its tree is left."""
        ...

    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines of standard error, decoded with replacement; always being drained."""
        ...


Spawner = Callable[[Launch], AbstractAsyncContextManager[Process]]
"""Runs a program for as long as the block lasts; leaving it, however, leaves no process behind.

Raises `ServerFailed` (`server_missing`, `server_start_failed`) when it cannot be started, `Unavailable` (`root_gone`)
when its folder is not there.
"""


class BrokenPipe(Exception):
    """The process closed its standard input or is gone."""


class Stalled(Exception):
    """The process took no byte for the whole write-progress deadline."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells that a file is still the one that was read."""

    device: int
    inode: int
    mtime_ns: int
    size: int
    ctime_ns: int = field(default=0, compare=False)
    """When it was last changed or moved, also where its own time was set back; our own moves change it, too."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A text file as read: `text` without its byte-order mark, `bom` says whether there was one."""

    path: AbsPath
    text: str
    bom: bool
    identity: Identity
    content: bytes = field(repr=False)
    encoding: str = "utf-8"


class Files(Protocol):
    async def read_text(self, path: AbsPath) -> FileText:
        """Read a UTF-8 text file.

        Raises `Refused` with `file_missing`, `file_unreadable`, `not_a_file` (folder, FIFO, device, socket),
        `limit_exceeded` (too large) or `unsupported` (binary, or not UTF-8).
        """
        ...

    async def identity(self, path: AbsPath) -> Identity | None:
        """What is at `path` now, or None when nothing is."""
        ...


class EditableFiles(Files, Protocol):
    """Files that a change is about to be written to."""

    def read_opened(self, path: AbsPath, descriptor: int) -> FileText:
        """Read a file that is open, and leave it open. Blocks: use a worker thread. Raises as `read_text` does."""
        ...


class Clock(Protocol):
    """Wall time, for people only: deadlines use `system.clock.current_time`."""

    def wall(self) -> float: ...


class Memory(Protocol):
    """Small things that are kept from one run to the next. Losing them costs time and nothing else."""

    def get(self, kind: str, key: str) -> bytes | None: ...

    def put(self, kind: str, key: str, value: bytes) -> None: ...


class Vitals(Protocol):
    """What the operating system knows of a process tree; None when it is gone."""

    async def memory_mib(self, pid: int) -> float | None: ...

    async def cpu_seconds(self, pid: int) -> float | None: ...


class Interest(Struct, frozen=True):
    """Which changes on disk a session wants to know of: what is registered, and what lies in `folders` (not deeper)."""

    roots: tuple[AbsPath, ...]
    """The folders of the workspace, which registered globs without a base are relative to."""
    registrations: tuple[WatchRegistration, ...] = ()
    folders: frozenset[AbsPath] = frozenset()


class WatchHealth(Struct, frozen=True):
    """How changes are noticed. `degraded` says why not all of them are events; None when all are."""

    watched: int = 0
    """Folders whose changes the system reports."""
    polled: int = 0
    """Folders that are looked at again and again instead."""
    overflows: int = 0
    """How often the system dropped events; all folders were looked at again each time."""
    degraded: str | None = None
    behind: str | None = None
    """Why some change until the last `drain` may not be known; None when all are."""


class Watcher(Protocol):
    """Notices what changes below the folders of one root."""

    async def cover(self, interest: Interest) -> None:
        """From now on notice what `interest` says, and nothing else."""

    async def drain(self) -> tuple[PathChange, ...]:
        """What has changed since the last call, as far as the system can tell now; waits for nothing to happen."""
        ...

    def drain_now(self) -> tuple[PathChange, ...] | None:
        """The same where it can be said without waiting; None where only `drain` can."""
        ...

    def aliases(self, found: Sequence[PathChange]) -> tuple[PathChange, ...]:
        """What `drain` has found, under the other names that links inside the root give it. To be called after each."""
        ...

    async def wait_for_changes(self) -> None:
        """Wait until `drain` may have something."""

    def recent(self, since: float, folders: frozenset[AbsPath] | None = None) -> tuple[PathChange, ...]:
        """The files, all or those in `folders`, that changed at wall time `since` or later, as if just created."""
        ...

    @property
    def health(self) -> WatchHealth: ...


OpenWatcher = Callable[[], AbstractAsyncContextManager[Watcher]]
"""Makes a watcher that covers nothing yet, for as long as the block lasts."""
