"""Our standard input and output as one byte stream that nothing else in this process can write to (F83).

Whatever prints in this process, and whatever it starts, would otherwise write into the protocol. So the two are moved
to descriptors that no child inherits; in their place stand nothing to read, and standard error or nothing to write to.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import IO

import anyio

from pilotfish.system import calls
from pilotfish.system.tasks import first_of

if sys.platform == "win32":
    from pilotfish.system.pipes import ThreadedEnd as PipeEnd
else:
    from pilotfish.system.pipes import End as PipeEnd

STDIN, STDOUT, STDERR = 0, 1, 2

STALL_SECONDS = 60.0
"""A host that takes nothing for this long has stopped reading for good."""

FIRST_PRIVATE = 10
"""Above the standard streams and above 3 and 4, which one host uses as a wire of its own."""


class PipePair:
    """The `ByteStream` of two open files: one to read, one to write."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._files = source, sink
        self._source, self._sink = PipeEnd(source), PipeEnd(sink, STALL_SECONDS)

    async def receive(self) -> bytes:
        try:
            return await self._source.receive()
        except PermissionError:
            # A regular file or a device like /dev/null cannot be waited for, and never needs to be.
            return os.read(self._files[0].fileno(), 65536)

    async def send(self, data: bytes) -> None:
        await self._sink.send(data)

    def close(self) -> None:
        self.restore()
        self._source.close()
        self._sink.close()

    def restore(self) -> None:
        """Make open files blocking again: the program that started us shares them, and a terminal must stay usable."""
        for file in self._files:
            if not file.closed:
                calls.set_blocking(file.fileno())


@contextmanager
def take_standard_streams(*, prints: int | None = STDERR) -> Generator[PipePair]:
    """Take standard input and output for the block. What is printed in it goes to `prints`, or nowhere."""
    source, sink = _moved(STDIN, os.O_RDONLY, None), _moved(STDOUT, os.O_WRONLY, prints)
    with os.fdopen(source, "rb", buffering=0) as incoming, os.fdopen(sink, "wb", buffering=0) as outgoing:
        pair = PipePair(incoming, outgoing)
        try:
            yield pair
        finally:
            pair.restore()


async def until_signalled(serving: Callable[[], Awaitable[None]]) -> None:
    """Serve until the end, or until a host, or a person, ends this program by a signal."""

    async def listen() -> None:
        if sys.platform == "win32":  # there, hosts close the streams or end the process, and Ctrl-C is Python's
            await anyio.sleep_forever()
        else:
            with anyio.open_signal_receiver(*calls.ENDING) as signals:
                await anext(aiter(signals))

    await first_of(listen, serving)


def _moved(descriptor: int, flags: int, instead: int | None) -> int:
    """A private copy of a descriptor, which itself becomes a copy of `instead`, or leads nowhere."""
    private = calls.duplicate(descriptor, FIRST_PRIVATE)
    if instead is None:
        nowhere = os.open(os.devnull, flags)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    else:
        os.dup2(instead, descriptor)
    return private
