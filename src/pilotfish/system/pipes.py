"""Our ends of the pipes and sockets between us and a process: read, write and close without blocking the loop.

Writing is tried here and now, and the loop is asked only when that would block. For reading it listens all the time.

Invariant: after every wait the end is looked at again. It may have been closed between becoming ready and the waiting
task running on, and its number may by then be another file's.
"""

import asyncio
import os
import socket
from contextlib import suppress
from typing import IO

import anyio

from pilotfish.system import calls
from pilotfish.system.ports import BrokenPipe, Stalled

READ_BYTES = 256 * 1024
"""What one read may bring, and what a pipe holds where the system allows it: a 5 MB answer then costs half the CPU
that it costs in steps of 64 KiB. More would eat into the 64 MiB that all pipes of a user share."""


STALL_SECONDS = 30.0
"""A reader that takes nothing for this long is gone, or might as well be."""


class End:
    """The `ByteStream` of one descriptor, and the only place that knows its number."""

    def __init__(self, file: IO[bytes] | socket.socket, stall_seconds: float = STALL_SECONDS) -> None:
        self._file = file
        self._stall_seconds = stall_seconds
        self._descriptor = file.fileno()
        self.closed = False
        self._reader: asyncio.Future[bytes] | None = None
        self._listening = False
        calls.set_blocking(self._descriptor, blocking=False)
        with suppress(OSError):  # no pipe, or the user's share of pipe memory is used up: it works as it is
            calls.widen_pipe(self._descriptor, READ_BYTES)

    async def receive(self) -> bytes:
        """Return the next bytes, empty at the end. Other tasks run first: a flood must not occupy the loop."""
        if self.closed:
            return b""
        if self._reader is not None and not self._reader.done():
            raise anyio.BusyResourceError("reading from")  # the one before would wait for ever
        loop = asyncio.get_running_loop()
        if not self._listening:
            loop.add_reader(self._descriptor, self._on_readable)
            self._listening = True
        self._reader = loop.create_future()
        # Nothing is lost by a cancelled scope: it leaves a task alone for which the data is there already.
        return await self._reader

    def _on_readable(self) -> None:
        """Called by the loop, which goes on listening between reads: to register for each costs more than the read."""
        if self._reader is None or self._reader.done():
            # No task reads: the data stays in the pipe, and the writer has to wait.
            self._stop_listening()
            return
        try:
            self._reader.set_result(os.read(self._descriptor, READ_BYTES))
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
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await self._until_writable()
            except (BrokenPipeError, ConnectionResetError):
                raise BrokenPipe("the other end is closed") from None

    def send_now(self, data: bytes) -> int:
        """Write what is taken at once and return how much; whatever is in the way is for `send` to report."""
        try:
            return 0 if self.closed else os.write(self._descriptor, data)
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
