"""A byte stream as the pair of message streams that the SDK serves.

Rules:
- What is not a message is answered with an error, and the connection goes on: not JSON, too long, a batch (the protocol
  had batches for three months, and no client is known to send any).
- A bounded number of requests may be unanswered; beyond it nothing is read until answers have left, so that a client
  that does not read is held back by its own pipe.
- A stream that takes nothing, or is broken, ends the connection.

Some clients try the newest protocol first and then, on the same connection, begin with an older `initialize`. The first
request of a connection decides for the SDK which protocol it serves, and it refuses an `initialize` on a connection
that began without one. GitHub Copilot CLI sends one all the same when its first request was not answered in time. So
the SDK is started anew for it; what the client asked before is of no interest any more.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from msgspec import Raw
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from pilotfish.client.pulse import Pulse
from pilotfish.protocol.codec import member
from pilotfish.protocol.frames import LineDecoder
from pilotfish.system.ports import BrokenPipe, ByteStream, Stalled
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)


MAX_LINE = 4 * 1024 * 1024
"""Bytes of one message, the limit that the SDK has for HTTP. The longest argument is the text of a file to check."""

MAX_OWED = 1_000
"""Unanswered requests. Far more than run at once, so that overload is answered and not waited out."""

BUFFER = 16
"""Messages between the stream and the server: without a buffer, each costs two more turns of the loop."""

IncomingMessages = MemoryObjectReceiveStream[SessionMessage | Exception]
OutgoingMessages = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def message_streams(stream: ByteStream) -> AsyncGenerator[tuple[IncomingMessages, OutgoingMessages]]:
    """Incoming messages and a stream for outgoing ones, for as long as the block lasts."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](BUFFER)
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](BUFFER)
    pump = _Pump(stream, to_server, outgoing.clone())
    async with owned_tasks() as tasks, incoming, outgoing:
        reading = anyio.CancelScope()
        tasks.start_soon(pump.read, reading)
        tasks.start_soon(pump.write, to_client, tasks.cancel_scope)
        yield incoming, outgoing
        reading.cancel()


class _Pump:
    """Reads, writes, and counts the answers that are owed."""

    def __init__(
        self, stream: ByteStream, to_server: MemoryObjectSendStream[SessionMessage | Exception], own: OutgoingMessages
    ) -> None:
        self._stream = stream
        self._to_server = to_server
        self._own = own
        """For our own error responses, among the server's answers."""
        self._owed = 0
        self._settled = Pulse()

    async def read(self, scope: anyio.CancelScope) -> None:
        lines = LineDecoder(MAX_LINE)
        with scope, self._to_server, self._own:
            while data := await self._stream.receive():
                for line in lines.feed(data):
                    await self._take(line)

    async def write(self, to_client: MemoryObjectReceiveStream[SessionMessage], everything: anyio.CancelScope) -> None:
        with to_client:
            try:
                async for message in to_client:
                    await self._stream.send(_encoded(message) + b"\n")
                    if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                        self._settle()
            except (BrokenPipe, Stalled) as error:
                logger.info("an MCP client is gone: %s", error)
                everything.cancel()

    async def _take(self, body: bytes | None) -> None:
        if body is None:
            await self._refuse(None, INVALID_REQUEST, f"a message has at most {MAX_LINE} bytes")
            return
        try:
            message = jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValidationError:
            await self._refuse(*_fault(body))
            return
        if isinstance(message, JSONRPCNotification) and _has_id(body):
            # The SDK takes a request with an invalid id for a notification, and its sender would wait for ever.
            await self._refuse(None, INVALID_REQUEST, "an id must be a string or an integer")
            return
        if isinstance(message, JSONRPCRequest):
            while self._owed >= MAX_OWED:
                await self._settled.wait()
            self._owed += 1
        metadata = ServerMessageMetadata(on_request_unanswered=self._unanswered)
        with suppress(anyio.BrokenResourceError):  # the server has ended before its client: drop what still comes
            await self._to_server.send(SessionMessage(message, metadata))

    async def _refuse(self, identifier: RequestId | None, code: int, why: str) -> None:
        self._owed += 1
        error = JSONRPCError(jsonrpc="2.0", id=identifier, error=ErrorData(code=code, message=why))
        await self._own.send(SessionMessage(error))

    async def _unanswered(self) -> None:
        """A request was cancelled: it gets no answer."""
        self._settle()

    def _settle(self) -> None:
        self._owed -= 1
        self._settled.notify()


def _has_id(body: bytes) -> bool:
    return b'"id"' in body and "id" in msgspec.json.decode(body, type=dict[str, Raw])


def _fault(body: bytes) -> tuple[RequestId | None, int, str]:
    """What is wrong with a message, and its id if it has a valid one."""
    try:
        identifier = member(msgspec.json.decode(body), "id")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, PARSE_ERROR, "not JSON"
    if not isinstance(identifier, int | str) or isinstance(identifier, bool):
        identifier = None
    return identifier, INVALID_REQUEST, "not a JSON-RPC message"


def _encoded(message: SessionMessage) -> bytes:
    try:
        return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        # A string that cannot be encoded as UTF-8: the client gets an error, and the connection goes on.
        logger.exception("an MCP message cannot be written")
        identifier = message.message.id if isinstance(message.message, JSONRPCResponse) else None
        failed = ErrorData(code=INTERNAL_ERROR, message="the answer cannot be written")
        return JSONRPCError(jsonrpc="2.0", id=identifier, error=failed).model_dump_json(by_alias=True).encode()


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
