"""The far end of an upgraded connection to the daemon, for programs that only carry bytes there and back.

async with far_wire(Introduction(cwd=os.getcwd()), "mcp", {"tools": "lsp"}) as far:
    await relay(standard_wire, far, far.end)
"""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread

from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.ipc.streams import STALL_SECONDS
from pilotfish.system.pipes import End


@asynccontextmanager
async def far_wire(
    introduction: Introduction, method: str, params: object = None, terms: Terms | None = None
) -> AsyncGenerator["FarWire"]:
    """Connect, say hello, upgrade; the connection ends with the block. Raises `Failure`."""
    connection = await anyio.to_thread.run_sync(_upgraded, introduction, method, params, terms)
    wire = FarWire(connection)
    try:
        yield wire
    finally:
        wire.close()


class FarWire:
    """One reader and one writer at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._end = End(connection)

    async def receive(self) -> bytes:
        """What comes next; empty at the end."""
        return await self._end.read()

    async def send(self, data: bytes) -> None:
        """Write all of `data`; raises `BrokenPipe` when the daemon is gone, `Stalled` when it takes nothing."""
        await self._end.write(data, STALL_SECONDS)

    async def end(self) -> None:
        """Nothing more will be sent; what is still to come is waited for."""
        with suppress(OSError):  # it has gone by itself
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._end.close()


def _upgraded(introduction: Introduction, method: str, params: object, terms: Terms | None) -> socket.socket:
    return open_link(introduction, terms).upgraded(method, params)
