"""A client of the daemon in memory: the stream that a `Connection` serves, and the test's end of it."""

import math
from typing import Any

import anyio
import msgspec

from pilotfish.client.pulse import Pulse
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from pilotfish.protocol.frames import FrameDecoder
from pilotfish.protocol.rpc import Answered, Failed, Notified, Outgoing, Peer, RequestId, ResponseError
from pilotfish.system.pipes import STALL_SECONDS
from pilotfish.system.ports import BrokenPipe, Stalled


class Refusal(Exception):
    """The daemon answered with an error."""

    def __init__(self, error: ResponseError) -> None:
        super().__init__(error.message)
        self.rpc_code = error.code
        self.data: Any = None if error.data is None else msgspec.json.decode(error.data)

    @property
    def code(self) -> str:
        return str(self.data["code"])


class MemoryLine:
    """Both ends of a connection. `receive`, `send` and `close` are the daemon's, everything else is the test's."""

    def __init__(self) -> None:
        self._to_daemon, self._heard = anyio.create_memory_object_stream[bytes](math.inf)
        self._peer = Peer()
        self._decoder = FrameDecoder()
        self._arrivals = Pulse()
        self._answers: dict[RequestId, Any] = {}
        self.raw = b""
        """What came since frames were over."""
        self.upgraded = False
        self.taking = True
        """While it is False, nothing that the daemon says is taken."""
        self.took = Pulse()
        self.closed = anyio.Event()
        self.closing: dict[str, str] | None = None
        """The daemon's last word."""

    # --- The daemon's end -------------------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        try:
            return await self._heard.receive()
        except anyio.EndOfStream:
            return b""

    async def send(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        with anyio.move_on_after(STALL_SECONDS):
            while not self.taking:
                await self.took.wait()
        if not self.taking:
            raise Stalled("nothing was taken")
        if self.closed.is_set():
            raise BrokenPipe("closed")
        if self.upgraded:
            self.raw += data
        else:
            for body in self._decoder.feed(data):
                self._take(self._peer.receive(body))
        self._arrivals.notify()

    def close(self) -> None:
        self._heard.close()
        self._to_daemon.close()
        self.closed.set()
        self._arrivals.notify()

    # --- The test's end ---------------------------------------------------------------------------------------------

    def say(self, data: bytes) -> None:
        self._to_daemon.send_nowait(data)

    def hang_up(self) -> None:
        self._to_daemon.close()

    def prepared(self, method: str, params: object = msgspec.UNSET) -> Outgoing:
        """A request that is still to be said."""
        return self._peer.request(method, params)

    def ask(self, method: str, params: object = msgspec.UNSET) -> RequestId:
        outgoing = self.prepared(method, params)
        self.say(outgoing.data)
        return outgoing.id

    def cancel(self, identifier: RequestId) -> None:
        self.say(self._peer.notify("$/cancelRequest", {"id": identifier}))

    async def answer(self, identifier: RequestId) -> Any:
        """The result; raises `Refusal` for an error."""
        while identifier not in self._answers:
            assert not self.closed.is_set(), f"closed: {self.closing}"
            await self._arrivals.wait()
        answer = self._answers[identifier]
        if isinstance(answer, ResponseError):
            raise Refusal(answer)
        return answer

    async def request(self, method: str, params: object = msgspec.UNSET) -> Any:
        return await self.answer(self.ask(method, params))

    async def hello(self, **said: Any) -> Any:
        return await self.request("hello", {"protocol": PROTOCOL, "build": BUILD, **said})

    async def until_raw(self, count: int) -> bytes:
        while len(self.raw) < count:
            await self._arrivals.wait()
        return self.raw

    def is_answered(self, identifier: RequestId) -> bool:
        return identifier in self._answers

    def _take(self, event: object) -> None:
        match event:
            case Answered(identifier, _, result):
                self._answers[identifier] = msgspec.json.decode(result)
            case Failed(identifier, _, error):
                self._answers[identifier] = error
            case Notified("closing", params):
                self.closing = msgspec.json.decode(params)
            case _:
                raise AssertionError(f"the daemon said something odd: {event}")
