"""A wire in memory: what a surface reads and writes, and the other end for the test."""

import math

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pilotfish.system.ports import BrokenPipe


class MemoryWire:
    """The surface's end. `peer` is the test's."""

    def __init__(self) -> None:
        to_surface, self._incoming = anyio.create_memory_object_stream[bytes](math.inf)
        self._outgoing, from_surface = anyio.create_memory_object_stream[bytes](math.inf)
        self.peer = Peer(to_surface, from_surface)

    async def receive(self) -> bytes:
        try:
            return await self._incoming.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return b""

    async def send(self, data: bytes) -> None:
        if not self.peer.reading.is_set():
            await self.peer.reading.wait()
        try:
            await self._outgoing.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise BrokenPipe("the test is gone") from None

    def close(self) -> None:
        self._incoming.close()
        self._outgoing.close()
        self.peer.close()


class Peer:
    """The test's end: bytes as they are."""

    def __init__(
        self,
        to_surface: MemoryObjectSendStream[bytes],
        from_surface: MemoryObjectReceiveStream[bytes],
    ) -> None:
        self._to_surface = to_surface
        self._from_surface = from_surface
        self.reading = anyio.Event()
        """While it is not set, nothing that the surface says is taken."""
        self.reading.set()

    def say(self, data: bytes) -> None:
        self._to_surface.send_nowait(data)

    async def hear(self) -> bytes:
        """What the surface says next; empty at its end."""
        try:
            return await self._from_surface.receive()
        except anyio.EndOfStream:
            return b""

    @property
    def unread(self) -> int:
        """How many of the things said the surface has not taken yet."""
        return self._to_surface.statistics().current_buffer_used

    def stop_listening(self) -> None:
        """Close what the surface writes to."""
        self._from_surface.close()

    def hang_up(self) -> None:
        """End what the surface reads."""
        self._to_surface.close()

    def close(self) -> None:
        self._to_surface.close()
        self._from_surface.close()
