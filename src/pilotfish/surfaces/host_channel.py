"""JSON-RPC with the host that started us: its requests run in parallel, each answered once.

Framed by `Content-Length`, as the host's own library does. Notifications are taken in the order in which they come;
one that nobody listens to is ignored. A malformed stream ends the connection. The end of the stream means that the host
is gone.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

import anyio
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw

from pilotfish.errors import Failure, Refused
from pilotfish.protocol.frames import FrameDecoder, FrameError
from pilotfish.protocol.rpc import (
    Answered,
    CancelRequested,
    Dropped,
    ErrorCode,
    Event,
    Failed,
    Notified,
    Peer,
    Requested,
    RequestId,
    ResponseError,
)
from pilotfish.system.ports import BrokenPipe, ByteStream, Stalled
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"""Requests in progress; a host makes one for each file of an edit, and some while it waits."""

MethodTable = Mapping[str, Callable[[Raw], Awaitable[object]]]

NotificationTable = Mapping[str, Callable[[Raw], None]]

Notify = Callable[[str, object], Awaitable[None]]
"""As `HostChannel.notify`."""


class HostChannel:
    """One host. `run` owns the tasks; `notify` may be called from any of them."""

    def __init__(self, stream: ByteStream, last_method: str) -> None:
        self._stream = stream
        self._last_method = last_method
        """The connection ends after the answer to this request, or with this notification."""
        self._peer = Peer()
        self._writing = anyio.Lock()
        self._scopes: dict[RequestId, anyio.CancelScope] = {}

    async def run(self, methods: MethodTable, notifications: NotificationTable | None = None) -> None:
        """Serve until the host is gone or has sent the last method; then cancel what is in progress."""
        listeners = notifications or {}
        decoder = FrameDecoder()
        async with owned_tasks() as tasks:
            try:
                while data := await self._stream.receive():
                    for body in decoder.feed(data):
                        self._take(self._peer.receive(body), methods, listeners, tasks)
            except FrameError as error:
                logger.warning("malformed message from the host: %s", error)
            tasks.cancel_scope.cancel()

    async def notify(self, method: str, params: object = UNSET) -> None:
        await self._write(self._peer.notify(method, params))

    def _take(self, event: Event, methods: MethodTable, listeners: NotificationTable, tasks: TaskGroup) -> None:
        match event:
            case Requested(identifier, method, params):
                self._scopes[identifier] = anyio.CancelScope()
                crowded = len(self._scopes) > MAX_AT_ONCE
                handler = _overloaded if crowded else methods.get(method, _unknown(method))
                tasks.start_soon(self._answer, identifier, method, handler, params, tasks)
            case CancelRequested(identifier):
                self._scopes[identifier].cancel()
            case Notified(method, params):
                _listen(method, listeners, params)
                if method == self._last_method:
                    tasks.cancel_scope.cancel()
            case Answered() | Failed() | Dropped():
                # We ask nothing; the peer counts the rest.
                pass

    async def _answer(
        self,
        identifier: RequestId,
        method: str,
        handler: Callable[[Raw], Awaitable[object]],
        params: Raw,
        tasks: TaskGroup,
    ) -> None:
        reply: object = ResponseError(ErrorCode.REQUEST_CANCELLED, f"{method} was cancelled")
        try:
            with self._scopes[identifier]:
                reply = await _replied(method, handler, params)
        finally:
            del self._scopes[identifier]
        failed = isinstance(reply, ResponseError)
        await self._write(self._peer.fail(identifier, reply) if failed else self._peer.reply(identifier, reply))
        if method == self._last_method:
            tasks.cancel_scope.cancel()

    async def _write(self, frame: bytes) -> None:
        async with self._writing:
            try:
                await self._stream.send(frame)
            except (BrokenPipe, Stalled) as error:
                # The host is gone; the end of its stream follows.
                logger.info("the host does not read: %s", error)


async def _replied(method: str, handler: Callable[[Raw], Awaitable[object]], params: Raw) -> object:
    try:
        return await handler(params)
    except Failure as failure:
        code = ErrorCode.INVALID_PARAMS if isinstance(failure, Refused) else ErrorCode.REQUEST_FAILED
        return ResponseError(code, failure.message)
    except Exception as error:
        logger.exception("a request failed method=%s", method)
        return ResponseError(ErrorCode.INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def _listen(method: str, listeners: NotificationTable, params: Raw) -> None:
    try:
        if method in listeners:
            listeners[method](params)
    except Refused as refusal:
        # A notification has no answer.
        logger.warning("ignored a notification method=%s: %s", method, refusal.message)


async def _overloaded(_: Raw) -> object:
    return ResponseError(ErrorCode.REQUEST_FAILED, f"overloaded: {MAX_AT_ONCE} requests are in progress")


def _unknown(method: str) -> Callable[[Raw], Awaitable[object]]:
    async def unknown(_: Raw) -> object:
        return ResponseError(ErrorCode.METHOD_NOT_FOUND, f"no such method: {method}")

    return unknown
