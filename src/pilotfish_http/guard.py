"""Around every request: admission, a bounded body, a bounded wait for it, security headers, and the one place where an
exception becomes an HTTP response.

The body is read whole before the request is handled, so that a slow sender occupies only its own connection (F85). A
request in progress when the server stops is cancelled, and its response ended properly.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import anyio

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Bug, Code, Failure, Refused, ServerFailed, Unavailable
from pilotfish.protocol.codec import encode
from pilotfish.sanitise import sanitised
from pilotfish_http.admission import MAX_BODY, AccessKeys, Objection, head_of, is_open, objection

logger = logging.getLogger(__name__)

AsgiMessage = MutableMapping[str, Any]
AsgiScope = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApplication = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]

BODY_SECONDS = 20.0
"""From the head of a request to the last byte of its body, over loopback."""

UNAUTHORIZED = 401

HEADERS = (
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
"""On every response. No header ever lets another origin read anything."""


MAX_MESSAGE = 1000

STATUSES = {Code.NOT_FOUND: 404, Code.ROOT_GONE: 409, Code.LIMIT_EXCEEDED: 413}
"""Where the code says more than the kind."""

KINDS: Mapping[type[Failure], int] = {Refused: 400, Unavailable: 503, ServerFailed: 502, Bug: 500}


def status_of(failure: Failure) -> int:
    return STATUSES.get(failure.code) or KINDS[type(failure)]


def body_of(failure: Failure) -> dict[str, str]:
    """What is wrong, and what to do."""
    body = {"error": sanitised(failure.message, MAX_MESSAGE), "code": str(failure.code)}
    return body if failure.hint is None else {**body, "hint": sanitised(failure.hint, MAX_MESSAGE)}


class Guard:
    """An ASGI application around another one. `names` are our own host names."""

    def __init__(self, application: AsgiApplication, keys: AccessKeys, names: tuple[str, ...]) -> None:
        self._application = application
        self._keys = keys
        self._names = names
        self._under_way: set[anyio.CancelScope] = set()
        self._left = Pulse()

    async def end(self) -> None:
        """Cancel the requests in progress, and wait until they have ended."""
        for life in tuple(self._under_way):
            life.cancel()
        while self._under_way:
            await self._left.wait()

    def is_from_owner(self, scope: AsgiScope) -> bool:
        """Whether a request has a key: nobody else may hold a connection for long."""
        head = head_of(scope["method"], scope["path"], scope["headers"])
        return not is_open(head) and objection(head, self._names, self._keys) is None

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] != "http":
            return
        answer, life = _Answer(send), anyio.CancelScope()
        self._under_way.add(life)
        try:
            with life:
                await self._answer(scope, receive, answer)
            if life.cancelled_caught:
                await answer.cut_short()
        finally:
            self._under_way.discard(life)
            self._left.notify()

    async def _answer(self, scope: AsgiScope, receive: AsgiReceive, answer: "_Answer") -> None:
        against = objection(head_of(scope["method"], scope["path"], scope["headers"]), self._names, self._keys)
        if against is not None:
            await answer.refuse(against)
            return
        body = await _whole_body(receive)
        if isinstance(body, Objection):
            await answer.refuse(body)
            return
        try:
            await self._application(scope, _replayed(body, receive), answer)
        except Failure as failure:
            await answer.fail(failure)
        except Exception as error:
            logger.exception("request failed path=%s", scope["path"])
            await answer.fail(Bug(f"{type(error).__name__} in {scope['method']} {scope['path']}"))


class _Answer:
    """The response to one request: begun once, ended once, with our headers."""

    def __init__(self, send: AsgiSend) -> None:
        self._send = send
        self._begun = False
        self._ended = False

    async def __call__(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            given = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in dict(HEADERS)]
            message = {**message, "headers": [*given, *HEADERS]}
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, against: Objection) -> None:
        await self._whole(against.status, encode({"error": against.error, "code": str(Code.UNTRUSTED)}))

    async def fail(self, failure: Failure) -> None:
        await self._whole(status_of(failure), encode(body_of(failure)))

    async def cut_short(self) -> None:
        """The server stops."""
        if not self._begun:
            await self._whole(503, encode({"error": "the server is stopping", "code": str(Code.SHUTTING_DOWN)}))
        elif not self._ended:
            await self({"type": "http.response.body", "body": b"", "more_body": False})

    async def _whole(self, status: int, body: bytes) -> None:
        if self._begun:
            # The response has begun, so its status is sent: it can only be ended.
            await self.cut_short()
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        # The rest of the body may be of any length: do not reuse the connection.
        headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": False})


async def _whole_body(receive: AsgiReceive) -> bytes | Objection:
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return Objection(400, "the connection closed before the end of the body")
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                return Objection(413, f"the body has more than {MAX_BODY} bytes")
            if not message.get("more_body", False):
                return bytes(body)
    return Objection(408, f"the body did not arrive within {BODY_SECONDS:g} s")


def _replayed(body: bytes, receive: AsgiReceive) -> AsgiReceive:
    """The body that was read; after it, the end of the connection."""
    messages: list[AsgiMessage] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> AsgiMessage:
        return messages.pop() if messages else await receive()

    return replay
