"""What carries the bytes of one client, and what waits to be written to it.

A queue is bounded in bytes. A client that lets it fill up has stopped reading: what has not begun to leave is dropped
for a last word that says so, and nobody else waits for it (F74).
"""

from collections import deque
from typing import Protocol

import anyio

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""As much as the largest message. Answers are capped far below; a client that is this far behind does not read."""

STALL_SECONDS = 30.0
"""A client that takes nothing for this long is gone, or might as well be."""

WRITE_TOGETHER_BYTES = 64 * 1024
"""Small frames leave in one write: a system call each would cost more than the join."""


class Stream(Protocol):
    """`host.pipes.End`, or its like in memory."""

    async def read(self) -> bytes:
        """What comes next; empty at the end."""
        ...

    async def write(self, data: bytes, stall_seconds: float) -> None:
        """Write all; raises `Stalled` when nothing is taken for so long, `BrokenPipe` when either end is closed."""

    def close(self) -> None:
        """Close; harmless when it is closed already."""


class SendQueue:
    """Whole frames on their way to a client, in the order they were made."""

    def __init__(self, limit: int = MAX_UNSENT_BYTES) -> None:
        self._limit = limit
        self._frames: deque[bytes] = deque()
        self._unsent = 0
        self._ended = False
        self._stirred = anyio.Event()

    def post(self, frame: bytes) -> bool:
        """Queue a frame; False when there is no room for it. After the last word, nothing is wanted any more."""
        if self._ended:
            return True
        if self._unsent and self._unsent + len(frame) > self._limit:
            return False
        self._frames.append(frame)
        self._unsent += len(frame)
        self._stirred.set()
        return True

    def last_word(self, frame: bytes, *, drop: bool) -> None:
        """Send this and end; with `drop`, what has not begun to leave never does."""
        if not self._ended:
            self._ended = True
            if drop:
                self._frames.clear()
            self._frames.append(frame)
            self._stirred.set()

    def end(self) -> None:
        """Send what is queued, and end."""
        self._ended = True
        self._stirred.set()

    async def run(self, stream: Stream) -> None:
        """Write until the end; what `Stream.write` raises ends it."""
        while True:
            while self._frames:
                batch = self._next()
                await stream.write(batch, STALL_SECONDS)
                self._unsent -= len(batch)
            if self._ended:
                return
            self._stirred = anyio.Event()
            await self._stirred.wait()

    def _next(self) -> bytes:
        batch = [self._frames.popleft()]
        size = len(batch[0])
        while self._frames and size + len(self._frames[0]) <= WRITE_TOGETHER_BYTES:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        return batch[0] if len(batch) == 1 else b"".join(batch)
