"""Our ends of pipes and sockets, and of our own standard streams: read, write and close without blocking the loop.

Writing is tried here and now, and the loop is asked only when that would block. For reading it listens all the time.

Invariant: after every wait the end is looked at again. It may have been closed between becoming ready and the waiting
task running on, and its number may by then be another file's.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, TypeVar

import anyio
import anyio.to_thread

from pilotfish.system import calls
from pilotfish.system.ports import BrokenPipe, ByteStream, Stalled
from pilotfish.system.tasks import first_of

READ_BYTES = 256 * 1024
"""What one read may bring, and what a pipe holds where the system allows it: a 5 MB answer then costs half the CPU
that it costs in steps of 64 KiB. More would eat into the 64 MiB that all pipes of a user share."""


STALL_SECONDS = 30.0
"""A reader that takes nothing for this long is gone, or might as well be."""


Result = TypeVar("Result")


class End:
    """The `ByteStream` of one descriptor, and the only place that knows its number."""

    def __init__(self, file: IO[bytes] | socket.socket, stall_seconds: float = STALL_SECONDS) -> None:
        self._file = file
        self._stall_seconds = stall_seconds
        self._descriptor = file.fileno()
        if isinstance(file, socket.SocketType):
            self._take, self._give = file.recv, file.send
            file.setblocking(False)  # noqa: FBT003 - its only signature
        else:
            self._take, self._give = partial(os.read, self._descriptor), partial(os.write, self._descriptor)
            calls.set_blocking(self._descriptor, blocking=False)
        self.closed = False
        self._reader: asyncio.Future[bytes] | None = None
        self._listening = False
        with suppress(OSError):  # no pipe, or the user's share of pipe memory is used up: it works as it is
            calls.widen_pipe(self._descriptor, READ_BYTES)

    async def receive(self) -> bytes:
        """Return the next bytes, empty at the end. Other tasks run first: a flood must not occupy the loop."""
        if self.closed:
            return b""
        if self._reader is not None and not self._reader.done():
            raise anyio.BusyResourceError("reading from")  # the one before would wait for ever
        if sys.platform == "win32":
            return await self._received()
        loop = asyncio.get_running_loop()
        if not self._listening:
            loop.add_reader(self._descriptor, self._on_readable)
            self._listening = True
        self._reader = loop.create_future()
        # Nothing is lost by a cancelled scope: it leaves a task alone for which the data is there already.
        return await self._reader

    async def _received(self) -> bytes:
        """The usual loop of Windows has no `add_reader`, and anyio knows how to do without."""
        while not self.closed:
            try:
                return self._take(READ_BYTES)
            except BlockingIOError:
                with suppress(anyio.ClosedResourceError):
                    await anyio.wait_readable(self._descriptor)
            except OSError:
                break
        return b""

    def _on_readable(self) -> None:
        """Called by the loop, which goes on listening between reads: to register for each costs more than the read."""
        if self._reader is None or self._reader.done():
            # No task reads: the data stays in the pipe, and the writer has to wait.
            self._stop_listening()
            return
        try:
            self._reader.set_result(self._take(READ_BYTES))
        except BlockingIOError:
            pass
        except OSError:
            self._reader.set_result(b"")

    async def send(self, data: bytes) -> None:
        """Write all; each part must be taken within the stall limit, however many parts it takes.

        Raises `Stalled`, or `BrokenPipe` when either end is closed.
        """
        rest = memoryview(data)
        while rest:
            if self.closed:
                raise BrokenPipe("our end is closed")
            try:
                rest = rest[self._give(rest) :]
            except BlockingIOError:
                await self._until_writable()
            except ConnectionError:
                raise BrokenPipe("the other end is closed") from None

    def send_now(self, data: bytes) -> int:
        """Write what is taken at once and return how much; whatever is in the way is for `send` to report."""
        try:
            return 0 if self.closed else self._give(data)
        except OSError:
            return 0

    def close(self) -> None:
        """Close, and wake the reader; harmless when it is closed already."""
        if not self.closed:
            self._stop_listening()
            anyio.notify_closing(self._descriptor)
            self.closed = True
            self._file.close()
            if self._reader is not None and not self._reader.done():
                self._reader.set_result(b"")

    def _stop_listening(self) -> None:
        if self._listening:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._listening = False

    async def _until_writable(self) -> None:
        try:
            with anyio.fail_after(self._stall_seconds):
                await anyio.wait_writable(self._descriptor)
        except TimeoutError:
            raise Stalled(f"nothing was taken for {self._stall_seconds:g} s") from None
        except anyio.ClosedResourceError:
            raise BrokenPipe("our end was closed") from None


class SourcedStream:
    """A `ByteStream` whose bytes come another way."""

    def __init__(self, stream: ByteStream, receive: Callable[[], Awaitable[bytes]]) -> None:
        self._receive = receive
        self.send = stream.send
        self.close = stream.close

    async def receive(self) -> bytes:
        return await self._receive()


class ThreadedEnd:
    """The same for a pipe that nothing can wait for, as all are on Windows: a thread reads it, and one writes."""

    def __init__(self, file: IO[bytes], stall_seconds: float = STALL_SECONDS) -> None:
        self._file = file
        self._stall_seconds = stall_seconds
        self._threads = anyio.CapacityLimiter(2)

    async def receive(self) -> bytes:
        try:
            return await self._in_thread(lambda: os.read(self._file.fileno(), READ_BYTES))
        except (OSError, ValueError):  # the other end is gone, or ours is closed
            return b""

    async def send(self, data: bytes) -> None:
        try:
            with anyio.fail_after(self._stall_seconds):
                await self._in_thread(lambda: self._write(data))
        except TimeoutError:
            raise Stalled(f"nothing was taken for {self._stall_seconds:g} s") from None
        except (OSError, ValueError):
            raise BrokenPipe("the other end is closed") from None

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file.fileno(), rest) :]

    async def _in_thread(self, act: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(act, abandon_on_cancel=True, limiter=self._threads)


# --- Our standard input and output ------------------------------------------------------------------------------------

# As one byte stream that nothing else in this process can write to (F83). Whatever prints in this process, and whatever
# it starts, would otherwise write into the protocol. So the two are moved to descriptors that no child inherits; in
# their place stand nothing to read, and standard error or nothing to write to.

PipeEnd = ThreadedEnd if sys.platform == "win32" else End

STDIN, STDOUT, STDERR = 0, 1, 2

HOST_STALL_SECONDS = 60.0
"""A host that takes nothing for this long has stopped reading for good."""

FIRST_PRIVATE = 10
"""Above the standard streams and above 3 and 4, which one host uses as a wire of its own."""


class PipePair:
    """The `ByteStream` of two open files: one to read, one to write."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._files = source, sink
        self._source, self._sink = PipeEnd(source), PipeEnd(sink, HOST_STALL_SECONDS)

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
