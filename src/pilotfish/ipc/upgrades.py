"""How a connection to the daemon becomes something else: a surface with a protocol of its own over the same socket.

A client asks with a request that bears the upgrade's name. When the answer has come, frames are over, and every byte
in either direction belongs to the surface until one side closes. The client speaks first.
"""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Raw, Struct

from pilotfish.ipc.client_sessions import ClientSessions, OpenSession
from pilotfish.ipc.streams import STALL_SECONDS, Stream
from pilotfish.service.service import Service


class Wire:
    """The bytes of an upgraded connection. One reader and one writer at a time."""

    def __init__(self, stream: Stream, used: Callable[[], None]) -> None:
        self._stream = stream
        self._used = used

    async def receive(self) -> bytes:
        """What comes next; empty at the end."""
        data = await self._stream.read()
        self._used()
        return data

    async def send(self, data: bytes) -> None:
        """Write all of `data`; raises `BrokenPipe` when the client is gone, `Stalled` when it takes nothing."""
        await self._stream.write(data, STALL_SECONDS)

    def close(self) -> None:
        self._stream.close()


class Upgraded(Struct, frozen=True):
    """What a surface gets: the bytes, the service, and a way to sessions, which end with the connection."""

    wire: Wire
    service: Service
    sessions: ClientSessions
    session: OpenSession
    params: Raw


Upgrade = Callable[[Upgraded], Awaitable[None]]
"""Serves the connection until it is over."""

Upgrades = Mapping[str, Upgrade]
"""By the name of the method that asks for it."""
