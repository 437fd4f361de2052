"""One end of a JSON-RPC connection over a stream of bytes: one reader, one ordered writer, whole messages in between.

Whoever owns it runs `read` and `write`, and says what each event means; how the connection ends is the owner's, too.
"""

from collections.abc import Awaitable, Callable, Sequence

import anyio
import anyio.to_thread
from msgspec import UNSET

from pilotfish.protocol.frames import FrameDecoder, FrameError
from pilotfish.protocol.rpc import LARGE_BODY, Event, Peer, RequestId, ResponseError, decode_message
from pilotfish.system.clock import current_time
from pilotfish.system.send_queue import SendQueue


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
        """Answer a request, with a result or a `ResponseError`."""
        failed = isinstance(reply, ResponseError)
        self.post(self.peer.fail(identifier, reply) if failed else self.peer.reply(identifier, reply))

    def post(self, frame: bytes, *, urgent: bool = False) -> None:
        self._say(frame)
        if not self.queue.post(frame, urgent=urgent):
            self._overflowed()

    async def read(self, receive: Callable[[], Awaitable[bytes]]) -> FrameError | None:
        """Take messages until the stream ends; returns the fault of the other side that ended it, if it was one."""
        try:
            while data := await receive():
                self.last_received = current_time()
                was_incomplete = self._decoder.incomplete
                whole = self._decoder.feed(data)
                if whole or not was_incomplete:
                    self._begun = self.last_received
                await self._take_all(whole)
        except FrameError as error:
            # What came whole before the fault still counts.
            await self._take_all(error.bodies)
            return error
        return None

    async def _take_all(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self._hear(body)
            # A worker thread for a large body: smaller ones decode faster than a thread starts.
            large = len(body) > LARGE_BODY
            message = await anyio.to_thread.run_sync(decode_message, body) if large else decode_message(body)
            await self._take(self.peer.accept(message))
