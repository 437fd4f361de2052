"""The SDK's own client on the far end of a wire in memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import TextContent, jsonrpc_message_adapter

from pilotfish.operations.tools import McpOptions
from pilotfish.surfaces.mcp.server import serve
from support.clients.wires import MemoryWire, Peer
from support.services.scripted import ScriptedService

READABLE = McpOptions(structured=True)
"""For tests, which read the envelope; by default there is none."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


def text_of(result: Any) -> str:
    """All that a model is given of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def client_on(
    scripted: ScriptedService, options: McpOptions | None = None, **settings: Any
) -> AsyncGenerator[Client]:
    """A client of a server that runs in this loop."""
    async with peer_on(scripted, options) as peer, Client(transport(peer), **settings) as client:
        yield client


@asynccontextmanager
async def peer_on(scripted: ScriptedService, options: McpOptions | None = None) -> AsyncGenerator[Peer]:
    """The bare bytes of a server that runs in this loop; it must have ended when the test has."""
    wire, ended = MemoryWire(), anyio.Event()

    async def run() -> None:
        await serve(wire, scripted.service, scripted.session, options or READABLE)
        ended.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            yield wire.peer
            wire.peer.hang_up()
            await ended.wait()
    finally:
        wire.close()


class Line(Protocol):
    """Where a client says and hears bytes."""

    def say(self, data: bytes) -> None: ...

    async def hear(self) -> bytes: ...


@asynccontextmanager
async def transport(peer: Line) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """The client's side of a wire, a line per message."""
    to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, from_client = anyio.create_memory_object_stream[SessionMessage]()

    async def read() -> None:
        rest = b""
        with to_client:
            while data := await peer.hear():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def write() -> None:
        with from_client:
            async for message in from_client:
                peer.say(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async with anyio.create_task_group() as tasks, incoming, outgoing:
        tasks.start_soon(read)
        tasks.start_soon(write)
        yield incoming, outgoing
        tasks.cancel_scope.cancel()
