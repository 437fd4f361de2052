"""What is on its way to the server: whole frames, in the order they were made.

Posting never waits, so a document and its notification change together, and the reader can answer the server's
requests while the server is not reading. The price is a buffer, and it is bounded.
A frame that somebody waits for leaves at once when nothing is before it; others are gathered, and leave together.
"""

from collections import deque

import anyio

from pilotfish.system.ports import Process

MAX_WAITING_BYTES = 128 * 1024 * 1024
"""Twice the largest message. A server that lets this pile up has stopped reading."""

WRITE_TOGETHER_BYTES = 64 * 1024
"""Small frames leave in one write up to the size of a pipe: a system call each would cost more than the join."""


class Overflow(Exception):
    """The server has stopped reading: nothing more can wait."""


class Outbox:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._frames: deque[bytes] = deque()
        self._waiting = 0
        self._filled = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    def post(self, frame: bytes, *, urgent: bool = False) -> None:
        if urgent and self._idle.is_set():
            frame = frame[self._process.send_now(frame) :]
            if not frame:
                return
        if self._waiting + len(frame) > MAX_WAITING_BYTES:
            raise Overflow(f"{self._waiting} bytes wait for the server to read them")
        self._frames.append(frame)
        self._waiting += len(frame)
        self._filled.set()
        if self._idle.is_set():
            self._idle = anyio.Event()

    async def run(self) -> None:
        """Write until cancelled; what `Process.send` raises ends it."""
        while True:
            if not self._frames:
                self._idle.set()
                self._filled = anyio.Event()
                await self._filled.wait()
            batch = self._next()
            await self._process.send(batch)
            self._waiting -= len(batch)

    async def flushed(self) -> None:
        """Wait until everything posted so far was accepted by the pipe."""
        await self._idle.wait()

    def _next(self) -> bytes:
        batch = [self._frames.popleft()]
        size = len(batch[0])
        while self._frames and size + len(self._frames[0]) <= WRITE_TOGETHER_BYTES:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        return batch[0] if len(batch) == 1 else b"".join(batch)
