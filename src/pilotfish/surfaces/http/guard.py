"""Around every request: admission, a bounded body, a bounded wait for it, harmless headers, and the one place where an
exception becomes an answer of this wire.

The body is read whole before anybody acts on it, so that a slow sender holds nothing but its own connection (F85). A
request that is under way when the listening ends is cancelled, and its answer ended properly.
"""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Bug, Code, Failure
from pilotfish.protocol.codec import encode
from pilotfish.surfaces.http.admission import MAX_BODY, Objection, head_of, objection
from pilotfish.surfaces.http.failures import body_of, status_of
from pilotfish.surfaces.http.keys import AccessKeys

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
"""On every answer. There is no header that lets another origin read anything, and there never is one."""


class Guard:
    """An ASGI application around another one. `names` are the hosts that we answer to."""

    def __init__(self, application: AsgiApplication, keys: AccessKeys, names: tuple[str, ...]) -> None:
        self._application = application
        self._keys = keys
        self._names = names
        self._under_way: set[anyio.CancelScope] = set()
        self._left = Pulse()

    async def end(self) -> None:
        """Cancel what is under way, and wait until it is gone."""
        for life in tuple(self._under_way):
            life.cancel()
        while self._under_way:
            await self._left.wait()

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] != "http":
            return
        answer, life = _Answer(send), anyio.CancelScope()
        self._under_way.add(life)
        try:
            with life:
                await self._answered(scope, receive, answer)
            if life.cancelled_caught:
                await answer.cut_short()
        finally:
            self._under_way.discard(life)
            self._left.beat()

    async def _answered(self, scope: AsgiScope, receive: AsgiReceive, answer: "_Answer") -> None:
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
    """What is sent for one request: begun once, ended once, our headers on it."""

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
        said = {"error": against.error, "code": str(Code.UNTRUSTED)}
        await self._whole(against.status, encode(said if against.hint is None else {**said, "hint": against.hint}))

    async def fail(self, failure: Failure) -> None:
        await self._whole(status_of(failure), encode(body_of(failure)))

    async def cut_short(self) -> None:
        """The listening ends."""
        if not self._begun:
            await self._whole(503, encode({"error": "the daemon stops listening", "code": str(Code.SHUTTING_DOWN)}))
        elif not self._ended:
            await self({"type": "http.response.body", "body": b"", "more_body": False})

    async def _whole(self, status: int, body: bytes) -> None:
        if self._begun:
            # Half an answer is out, and its status with it: all that is left is to end it.
            await self.cut_short()
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        # A body that was not read may be as long as it likes: the connection is not used again.
        headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": False})


async def _whole_body(receive: AsgiReceive) -> bytes | Objection:
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return Objection(400, "the connection ended within the body")
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                return Objection(413, f"a body has at most {MAX_BODY} bytes")
            if not message.get("more_body", False):
                return bytes(body)
    return Objection(408, f"the body did not come within {BODY_SECONDS:g} s")


def _replayed(body: bytes, receive: AsgiReceive) -> AsgiReceive:
    """The body once more; after it, whatever comes, which is the end of the connection."""
    messages: list[AsgiMessage] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> AsgiMessage:
        return messages.pop() if messages else await receive()

    return replay
