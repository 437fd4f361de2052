"""Our standard input and output as a wire that nobody else can touch (F83).

Whatever prints in this process, and whatever it starts, would otherwise write into the protocol. So the two are moved
to descriptors that no child inherits; in their place stand nothing to read, and standard error or nothing to write to.
"""

import fcntl
import os
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import IO

import anyio

from pilotfish.system.pipes import End
from pilotfish.system.tasks import owned_tasks

STDIN, STDOUT, STDERR = 0, 1, 2

STALL_SECONDS = 60.0
"""A host that takes nothing for this long has stopped reading for good."""

FIRST_PRIVATE = 10
"""Above the standard streams and above 3 and 4, which one host uses as a wire of its own."""


class PipeWire:
    """A wire over two open files, which their owner closes."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._file = source
        self._source = End(source)
        self._sink = End(sink)

    async def receive(self) -> bytes:
        try:
            return await self._source.read()
        except PermissionError:
            # A regular file or a device like /dev/null cannot be waited for, and never needs to be.
            return os.read(self._file.fileno(), 65536)

    async def send(self, data: bytes) -> None:
        await self._sink.write(data, STALL_SECONDS)


@contextmanager
def standard_wire(*, prints: int | None = STDERR) -> Generator[PipeWire]:
    """Take standard input and output for the block. What is printed in it goes to `prints`, or nowhere."""
    source, sink = _moved(STDIN, os.O_RDONLY, None), _moved(STDOUT, os.O_WRONLY, prints)
    with os.fdopen(source, "rb", buffering=0) as incoming, os.fdopen(sink, "wb", buffering=0) as outgoing:
        try:
            yield PipeWire(incoming, outgoing)
        finally:
            # The descriptions are shared with whoever started us: a terminal must not stay as we needed it.
            os.set_blocking(source, True)
            os.set_blocking(sink, True)


async def until_signalled(serving: Callable[[], Awaitable[None]]) -> None:
    """Serve until the end, or until a host, or a person, ends this program by a signal."""
    async with owned_tasks() as tasks:

        async def listen() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        await serving()
        tasks.cancel_scope.cancel()


def _moved(descriptor: int, flags: int, instead: int | None) -> int:
    """A private copy of a descriptor, which itself becomes a copy of `instead`, or leads nowhere."""
    private = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE)
    if instead is None:
        nowhere = os.open(os.devnull, flags | os.O_CLOEXEC)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    else:
        os.dup2(instead, descriptor)
    return private
