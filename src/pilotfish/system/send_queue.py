"""Whole frames on their way through a pipe, in the order they were made.

Posting never waits, so that a state and the message about it change together, and a reader can answer while the other
side is not reading. The price is a buffer, and it is bounded in bytes: a peer that lets it fill up has stopped reading
(F74).
An urgent frame leaves at once when nothing is before it; others are gathered, and leave together.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

WRITE_TOGETHER_BYTES = 64 * 1024
"""Small frames leave in one write up to the size of a pipe: a system call each would cost more than the join."""

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""As much as the largest message."""


class SendQueue:
    """`run` is the only writer of the pipe, apart from urgent frames while it is idle."""

    def __init__(self, limit: int = MAX_UNSENT_BYTES, send_now: Callable[[bytes], int] | None = None) -> None:
        self._limit = limit
        self._send_now = send_now
        self._frames: deque[bytes] = deque()
        self._unsent = 0
        self._closed = False
        self._filled = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def unsent(self) -> int:
        """How many bytes wait to be written."""
        return self._unsent

    def post(self, frame: bytes, *, urgent: bool = False) -> bool:
        """Queue a frame; False when there is no room for it. After `close`, frames are dropped."""
        if self._closed:
            return True
        if urgent and self._send_now is not None and self._idle.is_set():
            frame = frame[self._send_now(frame) :]
            if not frame:
                return True
        if self._unsent and self._unsent + len(frame) > self._limit:
            return False
        self._append(frame)
        return True

    def close(self, last: bytes = b"", *, drop: bool = False) -> None:
        """Let `run` return after what is queued, and after `last`; with `drop`, what has not begun to leave never does.

        Only the first call counts.
        """
        if self._closed:
            return
        self._closed = True
        if drop:
            self._unsent -= sum(map(len, self._frames))
            self._frames.clear()
        if last:
            self._append(last)
        self._filled.set()

    async def run(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Write until closed or cancelled; what `send` raises ends it."""
        while True:
            while self._frames:
                batch = self._next()
                await send(batch)
                self._unsent -= len(batch)
            self._idle.set()
            if self._closed:
                return
            self._filled = anyio.Event()
            await self._filled.wait()

    async def flush(self) -> None:
        """Wait until everything posted so far was accepted by the pipe."""
        await self._idle.wait()

    def _append(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._unsent += len(frame)
        self._filled.set()
        if self._idle.is_set():
            self._idle = anyio.Event()

    def _next(self) -> bytes:
        batch = [self._frames.popleft()]
        size = len(batch[0])
        while self._frames and size + len(self._frames[0]) <= WRITE_TOGETHER_BYTES:
            batch.append(self._frames.popleft())
            size += len(batch[-1])
        return batch[0] if len(batch) == 1 else b"".join(batch)
