"""One end of a JSON-RPC connection over a stream of bytes: one reader, one ordered writer, whole messages in between.

Whoever owns it runs `read` and `write`, and says what each event means; how the connection ends is the owner's, too.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import UNSET

from pilotfish.protocol.frames import FrameDecoder, FrameError
from pilotfish.protocol.rpc import (
    LARGE_BODY,
    ErrorCode,
    Event,
    Peer,
    Requested,
    RequestId,
    ResponseError,
    decode_message,
)
from pilotfish.system.clock import current_time

# --- Whole frames on their way ----------------------------------------------------------------------------------------

# In the order they were made. Posting never waits, so that a state and the message about it change together, and a
# reader can answer while the other side is not reading. The price is a buffer, and it is bounded in bytes: a peer that
# lets it fill up has stopped reading (F74). An urgent frame leaves at once when nothing is before it; others are
# gathered, and leave together.

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
        self.unsent = 0
        """How many bytes wait to be written."""
        self._closed = False
        self._filled = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    def post(self, frame: bytes, *, urgent: bool = False) -> bool:
        """Queue a frame; False when there is no room for it. After `close`, frames are dropped."""
        if self._closed:
            return True
        if urgent and self._send_now is not None and self._idle.is_set():
            frame = frame[self._send_now(frame) :]
            if not frame:
                return True
        if self.unsent and self.unsent + len(frame) > self._limit:
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
            self.unsent -= sum(map(len, self._frames))
            self._frames.clear()
        if last:
            self._append(last)
        self._filled.set()

    async def run(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Write until closed or cancelled; what `send` raises ends it."""
        while True:
            while self._frames:
                batch = [self._frames.popleft()]
                size = len(batch[0])
                while self._frames and size + len(self._frames[0]) <= WRITE_TOGETHER_BYTES:
                    batch.append(self._frames.popleft())
                    size += len(batch[-1])
                await send(batch[0] if len(batch) == 1 else b"".join(batch))
                self.unsent -= size
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
        self.unsent += len(frame)
        self._filled.set()
        if self._idle.is_set():
            self._idle = anyio.Event()


# --- The connection ---------------------------------------------------------------------------------------------------


class RpcChannel:
    """`take` gets every event in the order of the stream; `overflowed` is called when the other side does not read.

    `hear` gets every body that comes, `say` every frame that leaves.
    """

    def __init__(
        self,
        take: Callable[[Event], Awaitable[None]],
        overflowed: Callable[[], None],
        *,
        queue: SendQueue | None = None,
        hear: Callable[[bytes], None] = lambda _: None,
        say: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        self.peer = Peer()
        self.queue = queue or SendQueue()
        self._take = take
        self._overflowed = overflowed
        self._hear = hear
        self._say = say
        self._decoder = FrameDecoder()
        self.last_received = self._begun = current_time()
        """When the last bytes came."""

    @property
    def incomplete_since(self) -> float | None:
        """When the message began that is not complete yet."""
        return self._begun if self._decoder.incomplete else None

    @property
    def has_junk(self) -> bool:
        """Whether anything came that is no message."""
        return bool(self._decoder.junk_size)

    def notify(self, method: str, params: object = UNSET) -> None:
        self.post(self.peer.notify(method, params))

    def answer(self, identifier: RequestId, reply: object) -> None:
        failed = isinstance(reply, ResponseError)
        self.post(self.peer.fail(identifier, reply) if failed else self.peer.reply(identifier, reply))

    def post(self, frame: bytes, *, urgent: bool = False) -> None:
        self._say(frame)
        if not self.queue.post(frame, urgent=urgent):
            self._overflowed()

    async def read(self, receive: Callable[[], Awaitable[bytes]]) -> FrameError | None:
        """Take messages until the stream ends; returns the fault of the other side that ended it, if it was one."""
        fault = None
        while fault is None and (data := await receive()):
            self.last_received = current_time()
            was_incomplete = self._decoder.incomplete
            try:
                bodies = self._decoder.feed(data)
            except FrameError as error:
                # What came whole before the fault still counts.
                bodies, fault = error.bodies, error
            if bodies or not was_incomplete:
                self._begun = self.last_received
            for body in bodies:
                self._hear(body)
                # A worker thread for a large body: smaller ones decode faster than a thread starts.
                large = len(body) > LARGE_BODY
                message = await anyio.to_thread.run_sync(decode_message, body) if large else decode_message(body)
                await self._take(self.peer.accept(message))
        return fault


# --- The calls of one client ------------------------------------------------------------------------------------------

MAX_AT_WORK = 16
"""An agent makes a handful of calls at once; a flood from one client must leave room for the others."""

MAX_WAITING = 1024
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""How many calls may wait, and how large they may be together: as large as one message may be."""


class Turns:
    """A bounded number of calls running, a bounded number waiting, in the order of arrival.

    The first bound keeps clients fair to each other; the second keeps a flood of calls from filling memory. `work`
    answers a call; one that was cancelled before that is answered with `cancelled`.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        channel: RpcChannel,
        work: Callable[[Requested], Awaitable[None]],
        cancelled: str,
        most: int = MAX_AT_WORK,
        most_waiting: int = MAX_WAITING,
    ) -> None:
        self._tasks = tasks
        self._channel = channel
        self._work = work
        self._cancelled = ResponseError(ErrorCode.REQUEST_CANCELLED, cancelled)
        self._most = most
        self._most_waiting = most_waiting
        self._at_work: dict[RequestId, anyio.CancelScope] = {}
        self._waiting: deque[Requested] = deque()

    @property
    def busy(self) -> bool:
        return bool(self._at_work or self._waiting)

    def admit(self, request: Requested) -> bool:
        """Run or queue a call; False when there are too many."""
        if len(self._at_work) < self._most:
            self._begin(request)
        elif len(self._waiting) >= self._most_waiting or self._size(request, *self._waiting) > MAX_WAITING_BYTES:
            return False
        else:
            self._waiting.append(request)
        return True

    def cancel(self, identifier: RequestId) -> None:
        """Cancel a call, running or waiting; one that was answered stays so."""
        if identifier in self._at_work:
            self._at_work[identifier].cancel()
            return
        for request in self._waiting:
            if request.id == identifier:
                self._waiting.remove(request)
                self._channel.answer(identifier, self._cancelled)
                return

    def cancel_all(self) -> None:
        self._waiting.clear()
        for scope in self._at_work.values():
            scope.cancel()

    def _begin(self, request: Requested) -> None:
        scope = self._at_work[request.id] = anyio.CancelScope()
        self._tasks.start_soon(self._run, request, scope)

    async def _run(self, request: Requested, scope: anyio.CancelScope) -> None:
        with scope:
            await self._work(request)
        del self._at_work[request.id]
        if scope.cancelled_caught:
            self._channel.answer(request.id, self._cancelled)
        if self._waiting:
            self._begin(self._waiting.popleft())

    @staticmethod
    def _size(*requests: Requested) -> int:
        return sum(len(memoryview(request.params)) for request in requests)
