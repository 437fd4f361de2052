"""The interfaces of the shell: all that the layers above may know of processes, files and time.

Implementations stand beside this file and are seen by composition roots only.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pilotfish.model import AbsPath


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `argv[0]` is absolute; `environment` is the whole environment, but for the tag of the tree."""

    argv: Sequence[str]
    cwd: AbsPath
    environment: Mapping[str, str]
    name: str
    """The server's id, for messages and for the process list."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: `code` is negative for a signal, as `subprocess` has it."""

    code: int

    @property
    def signal(self) -> int | None:
        return -self.code if self.code < 0 else None


class Process(Protocol):
    """A running program whose whole process tree is ours to end."""

    @property
    def pid(self) -> int: ...

    async def send(self, data: bytes) -> None:
        """Write all of `data`; raise `BrokenPipe` when the other end is gone, `Stalled` when it takes nothing."""

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


class Spawner(Protocol):
    """Starts programs."""

    def __call__(self, launch: Launch) -> AbstractAsyncContextManager[Process]:
        """Run `launch` for as long as the block lasts; leaving it, however, leaves no process behind.

        Raises `ServerFailed` (`server_missing`, `server_start_failed`) when it cannot be started, `Unavailable`
        (`root_gone`) when its folder is not there.
        """
        ...


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


@dataclass(frozen=True, slots=True)
class FileText:
    """A text file as read: `text` without its byte-order mark, `bom` says whether there was one."""

    path: AbsPath
    text: str
    bom: bool
    identity: Identity
    content: bytes = field(repr=False)


class Files(Protocol):
    """Reads regular text files."""

    async def read_text(self, path: AbsPath) -> FileText:
        """Read a UTF-8 text file.

        Raises `Refused` with `file_missing`, `file_unreadable`, `not_a_file` (folder, FIFO, device, socket),
        `limit_exceeded` (too large) or `unsupported` (binary, or not UTF-8).
        """
        ...

    async def identity(self, path: AbsPath) -> Identity | None:
        """What is at `path` now, or None when nothing is."""
        ...


class Clock(Protocol):
    """Wall time, for people only: deadlines use `anyio.current_time()`."""

    def wall(self) -> float: ...


class Vitals(Protocol):
    """What the operating system knows of a process tree; None when it is gone."""

    async def memory_mib(self, pid: int) -> float | None: ...

    async def cpu_seconds(self, pid: int) -> float | None: ...
