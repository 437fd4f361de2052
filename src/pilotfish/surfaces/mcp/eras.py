"""Clients that try the newest protocol first and then, on the same connection, begin with an older `initialize`.

The first request of a connection decides for the SDK which protocol it serves, and it refuses an `initialize` on a
connection that began without one. GitHub Copilot CLI sends one all the same when its first request was not answered in
time. So the SDK is started anew for it; what the client asked before is of no interest any more.
"""

from collections.abc import Awaitable, Callable

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from pilotfish.surfaces.mcp.streams import BUFFER, IncomingMessages, OutgoingMessages
from pilotfish.system.tasks import owned_tasks

_Serve = Callable[[IncomingMessages, OutgoingMessages], Awaitable[None]]

_Message = SessionMessage | Exception

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
"""In the `_meta` of each request, from 2026-07-28 on."""


async def serve_eras(incoming: IncomingMessages, outgoing: OutgoingMessages, serve: _Serve) -> None:
    """Call `serve` with the messages of the client, and once more from an `initialize` that follows another request."""
    opening = await _serve_era(None, incoming, outgoing, serve)
    if opening is not None:
        await _serve_era(opening, incoming, outgoing, serve)


async def _serve_era(
    opening: _Message | None, incoming: IncomingMessages, outgoing: OutgoingMessages, serve: _Serve
) -> _Message | None:
    """Serve from `opening` on; returns the message that begins a new era, if one does."""
    to_server, messages = anyio.create_memory_object_stream[_Message](BUFFER)
    following: list[_Message] = []

    async def forward() -> None:
        first = None if opening is None else _request(opening)
        with to_server:
            if opening is not None:
                await to_server.send(opening)
            async for message in incoming:
                request = _request(message)
                if request is not None and request.method == "initialize" and first is not None and _is_new(first):
                    following.append(message)
                    return
                first = first or request
                await to_server.send(message)

    async with owned_tasks() as tasks, messages:
        tasks.start_soon(forward)
        await serve(messages, outgoing.clone())
        tasks.cancel_scope.cancel()
    return following[0] if following else None


def _request(message: _Message) -> JSONRPCRequest | None:
    found = message.message if isinstance(message, SessionMessage) else None
    return found if isinstance(found, JSONRPCRequest) else None


def _is_new(request: JSONRPCRequest) -> bool:
    """Whether a request names its protocol itself, which only those without a handshake do."""
    meta = (request.params or {}).get("_meta")
    return request.method != "initialize" and isinstance(meta, dict) and PROTOCOL_VERSION in meta
