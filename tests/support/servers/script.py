"""A language server by script: our own `Peer` with the roles swapped.

A *scenario* is a function that takes a `Script` and says what the server does. The same scenario runs in memory
(`support.servers.scripted`, virtual time) and as a real child process (`support.servers.fakels`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotfish.protocol.frames import FrameDecoder
from pilotfish.protocol.rpc import (
    Answered,
    CancelRequested,
    Dropped,
    DropReason,
    ErrorCode,
    Event,
    Failed,
    Notified,
    Peer,
    Requested,
    RequestId,
    ResponseError,
    decode_message,
)

Handler = Callable[[Any], Any]

SILENCE = object()
"""Returned by a handler that does not answer (yet)."""


class Fail(Exception):
    """Raised by a handler that answers with an error."""

    def __init__(self, code: int, message: str = "scripted failure", data: Any = None) -> None:
        super().__init__(message)
        self.error = ResponseError(code, message, None if data is None else msgspec.Raw(msgspec.json.encode(data)))


@dataclass(frozen=True)
class Message:
    """What the client sent, decoded."""

    method: str
    params: Any
    id: RequestId | None = None


@dataclass
class Script:
    """The server's side. Subclasses carry bytes: they call `feed` and implement `send`."""

    capabilities: dict[str, Any] = field(default_factory=dict[str, Any])
    received: list[Message] = field(default_factory=list[Message])
    answers: dict[RequestId, Any] = field(default_factory=dict[RequestId, Any])
    unexpected: list[Message] = field(default_factory=list[Message])
    cancelled: list[RequestId] = field(default_factory=list[RequestId])

    def __post_init__(self) -> None:
        self.peer = Peer()
        self._decoder = FrameDecoder()
        self._handlers: dict[str, Handler] = {
            "initialize": lambda params: {"capabilities": self.capabilities, "serverInfo": {"name": "scripted"}},
            "initialized": lambda params: None,
            "workspace/didChangeConfiguration": lambda params: None,
            "shutdown": lambda params: None,
            "exit": lambda params: self.leave(0),
        }

    # --- What a scenario says ------------------------------------------------------------------------------------

    def on(self, method: str, handler: Handler) -> None:
        """Answer `method` with what `handler(params)` returns; it may return `SILENCE` or raise `Fail`."""
        self._handlers[method] = handler

    def ignore(self, *methods: str) -> None:
        """Expect these notifications and do nothing about them."""
        for method in methods:
            self.on(method, lambda params: None)

    def notify(self, method: str, params: Any) -> None:
        self.send(self.peer.notify(method, params))

    def ask(self, method: str, params: Any = msgspec.UNSET) -> RequestId:
        """Send a request of the server; the client's answer lands in `answers`."""
        outgoing = self.peer.request(method, params)
        self.send(outgoing.data)
        return outgoing.id

    def reply(self, identifier: RequestId, result: Any) -> None:
        self.send(self.peer.reply(identifier, result))

    def publish(self, uri: str, messages: list[str], version: int | None = None) -> None:
        """Publish one error per message, each on a line of its own."""
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        items = [{"range": place, "severity": 1, "message": message} for message in messages]
        params: dict[str, Any] = {"uri": uri, "diagnostics": items}
        if version is not None:
            params["version"] = version
        self.notify("textDocument/publishDiagnostics", params)

    # --- What the carrier does -----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        raise NotImplementedError

    def leave(self, code: int) -> None:
        """End the server's process."""
        raise NotImplementedError

    def arrived(self, message: Message) -> None:
        """Called for each message once it is recorded."""

    def feed(self, data: bytes) -> None:
        for body in self._decoder.feed(data):
            self._take(self.peer.accept(decode_message(body)))

    def _take(self, event: Event) -> None:
        match event:
            case Requested(identifier, method, params):
                self._requested(Message(method, _plain(params), identifier))
            case Notified(method, params):
                self._notified(Message(method, _plain(params)))
            case Answered(identifier, _, result):
                self.answers[identifier] = _plain(result)
            case Failed(identifier, _, error):
                self.answers[identifier] = error
            case CancelRequested(identifier):
                self.cancelled.append(identifier)
            case Dropped(DropReason.UNKNOWN_ID | DropReason.UNKNOWN_CANCEL):
                # The answer to a request that a test wrote by hand; a cancellation that crossed the answer on its way.
                pass
            case _:
                raise AssertionError(f"the client sent something malformed: {event}")

    def _requested(self, message: Message) -> None:
        assert message.id is not None
        self._record(message)
        handler = self._handlers.get(message.method)
        try:
            result = handler(message.params) if handler else SILENCE
        except Fail as fail:
            self.send(self.peer.fail(message.id, fail.error))
            return
        if handler is None:
            self.send(self.peer.fail(message.id, ResponseError(ErrorCode.METHOD_NOT_FOUND, message.method)))
        elif result is not SILENCE:
            self.reply(message.id, result)

    def _notified(self, message: Message) -> None:
        self._record(message)
        if handler := self._handlers.get(message.method):
            handler(message.params)

    def _record(self, message: Message) -> None:
        self.received.append(message)
        if message.method not in self._handlers:
            self.unexpected.append(message)
        self.arrived(message)


def _plain(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw) if bytes(raw) else None
