"""JSON-RPC with the host that started us: its requests run in parallel, each answered once.

Framed by `Content-Length`, as the host's own library does. Notifications are taken in the order in which they come;
one that nobody listens to is ignored. A malformed stream ends the connection. The end of the stream means that the host
is gone.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

import anyio
from msgspec import Raw

from pilotfish.errors import Failure, Refused
from pilotfish.protocol.rpc import CancelRequested, ErrorCode, Event, Notified, Requested, ResponseError
from pilotfish.system.channel import RpcChannel, Turns
from pilotfish.system.ports import BrokenPipe, ByteStream, Stalled

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"""Requests in progress; a host makes one for each file of an edit, and some while it waits."""

MethodTable = Mapping[str, Callable[[Raw], Awaitable[object]]]

NotificationTable = Mapping[str, Callable[[Raw], None]]

Notify = Callable[[str, object], None]
"""As `HostChannel.notify`: it never waits, and leaves after everything posted before it."""


class HostChannel:
    """One host. `run` owns the tasks; `notify` may be called from any of them."""

    def __init__(self, stream: ByteStream, last_method: str) -> None:
        self._stream = stream
        self._last_method = last_method
        """The connection ends after the answer to this request, or with this notification."""
        self._channel = RpcChannel(self._take, self._end)
        self._tasks = anyio.create_task_group()
        cancelled = "the request was cancelled"
        self._turns = Turns(self._tasks, self._channel, self._answer, cancelled, MAX_AT_ONCE, 0)
        self._methods: MethodTable = {}
        self._listeners: NotificationTable = {}
        self.notify = self._channel.notify

    async def serve(self, methods: MethodTable, notifications: NotificationTable | None = None) -> None:
        """Serve until the host is gone or has sent the last method; then cancel what is in progress."""
        self._methods, self._listeners = methods, notifications or {}
        async with self._tasks:
            self._tasks.start_soon(self._write)
            fault = await self._channel.read(self._stream.receive)
            if fault is not None:
                logger.warning("malformed message from the host: %s", fault)
            self._end()

    async def _take(self, event: Event) -> None:
        match event:
            case Requested(identifier, method):
                if method not in self._methods:
                    self._channel.answer(
                        identifier, ResponseError(ErrorCode.METHOD_NOT_FOUND, f"no such method: {method}")
                    )
                elif not self._turns.admit(event):
                    overloaded = f"overloaded: {MAX_AT_ONCE} requests are in progress"
                    self._channel.answer(identifier, ResponseError(ErrorCode.REQUEST_FAILED, overloaded))
            case CancelRequested(identifier):
                self._turns.cancel(identifier)
            case Notified(method, params):
                try:
                    if method in self._listeners:
                        self._listeners[method](params)
                except Refused as refusal:
                    # A notification has no answer.
                    logger.warning("ignored a notification method=%s: %s", method, refusal.message)
                if method == self._last_method:
                    self._end()
            case _:
                # We ask nothing; the peer counts the rest.
                pass

    async def _answer(self, request: Requested) -> None:
        try:
            reply = await self._methods[request.method](request.params)
        except Failure as failure:
            code = ErrorCode.INVALID_PARAMS if isinstance(failure, Refused) else ErrorCode.REQUEST_FAILED
            reply = ResponseError(code, failure.message)
        except Exception as error:
            logger.exception("a request failed method=%s", request.method)
            reply = ResponseError(ErrorCode.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        self._channel.answer(request.id, reply)
        if request.method == self._last_method:
            await self._channel.queue.flush()
            self._end()

    async def _write(self) -> None:
        try:
            await self._channel.queue.run(self._stream.send)
        except (BrokenPipe, Stalled) as error:
            logger.info("the host does not read: %s", error)
            self._end()

    def _end(self) -> None:
        self._tasks.cancel_scope.cancel()
