"""JSON-RPC 2.0: which answer belongs to which request, on either side of a connection.

`Peer` knows no roles: a client and the scripted server of the tests are the same class.
It makes whole frames and takes whole bodies; `decode_message` is the pure half of taking one, and may run elsewhere.

A request that we made ends exactly once: `Answered` or `Failed`, or its caller gives up (`cancel`). A response that
cannot be used still ends its call, as `Failed` with an `UnusableResponse`, wherever its id can be made out.
A request that we received is owed one reply: `reply` or `fail`, once.
The two directions have separate ids, so what has a `method` is never taken for a response.
Whatever fits nowhere is `Dropped` and counted by reason; it never raises and never ends the connection.

A `Raw` in an event is a window into the body: it keeps the body alive until it is decoded or copied.

Longer than most modules here because the closed union of events stands beside the class that makes them.
"""

import re
from collections import Counter
from enum import IntEnum, StrEnum

from msgspec import UNSET, Raw, Struct, UnsetType

from pilotfish.errors import Bug
from pilotfish.protocol.codec import Malformed, decode, encode
from pilotfish.protocol.frames import frame
from pilotfish.protocol.wire import CancelParams, Envelope, WireError

RequestId = int | str

LARGE_BODY = 1024 * 1024
"""Bytes above which a body should be decoded away from the event loop."""

ID_LIMIT = 2**31
"""Integer ids lie in [-2^31, 2^31), the `integer` of the protocol."""

MAX_DETAIL = 200
"""Characters of a message that cannot be read which we pass on for the log."""

NULL = Raw(b"null")
"""What an absent `params` or `result` reads as: the specification treats absent and null alike."""

CANCEL = "$/cancelRequest"


class ErrorCode(IntEnum):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_NOT_INITIALIZED = -32002
    UNKNOWN_ERROR = -32001
    REQUEST_FAILED = -32803
    SERVER_CANCELLED = -32802
    CONTENT_MODIFIED = -32801
    REQUEST_CANCELLED = -32800


class DropReason(StrEnum):
    INVALID_JSON = "invalid_json"
    BATCH = "batch"
    NOT_A_MESSAGE = "not_a_message"
    INVALID_ID = "invalid_id"
    NO_ID = "no_id"
    """A response without a receiver: the other side could not read the id of what it answers."""
    UNKNOWN_ID = "unknown_id"
    """A response to a request that was never made, was answered before, or was forgotten."""
    LATE = "late"
    """The response to a cancelled request."""
    DUPLICATE_REQUEST = "duplicate_request"
    UNKNOWN_CANCEL = "unknown_cancel"
    """The cancellation of a request that was answered already; both sides are right."""


class ResponseError(Struct, frozen=True):
    """What a request was answered with instead of a result."""

    code: int
    message: str
    data: Raw | None = None


class UnusableResponse(ResponseError, frozen=True):
    """Our own words, not the other side's: it answered, and the answer is not a response."""


class Outgoing(Struct, frozen=True):
    """A request on its way: the id that its answer will carry, and the frame to write."""

    id: RequestId
    data: bytes


class Requested(Struct, frozen=True):
    """The other side asks; a reply is owed."""

    id: RequestId
    method: str
    params: Raw


class Notified(Struct, frozen=True):
    method: str
    params: Raw


class Answered(Struct, frozen=True):
    id: RequestId
    method: str
    result: Raw


class Failed(Struct, frozen=True):
    id: RequestId
    method: str
    error: ResponseError


class CancelRequested(Struct, frozen=True):
    """The other side gives up a request that it made. It is still owed a reply."""

    id: RequestId
    method: str


class Dropped(Struct, frozen=True):
    reason: DropReason
    detail: str


Event = Requested | Notified | Answered | Failed | CancelRequested | Dropped


class Unreadable(Struct, frozen=True):
    """A body that is not a message. `id` is that of the request which it seems to answer."""

    reason: DropReason
    detail: str
    id: RequestId | None


Message = Envelope | Unreadable


def decode_message(body: bytes) -> Message:
    """Read one body. Pure, and never raises."""
    try:
        return decode(body, Envelope)
    except Malformed as malformed:
        return Unreadable(_reason(body), str(malformed), _answered_id(body))


class Peer:
    def __init__(self) -> None:
        self._next_id = 0
        self._closed = False
        self.waiting: dict[RequestId, str] = {}
        """Our requests that wait for their answer, with their methods."""
        self.abandoned: dict[RequestId, str] = {}
        """Those that were cancelled and have not been answered since."""
        self.owed: dict[RequestId, str] = {}
        """The requests that we received and owe a reply, with their methods, oldest first."""
        self.dropped: Counter[DropReason] = Counter()

    def request(self, method: str, params: object = UNSET) -> Outgoing:
        if self._closed:
            raise Bug(f"{method} after the connection was closed: it would never be answered")
        identifier = self._next_id
        data = _message({"id": identifier, "method": method}, "params", params)
        self._next_id += 1
        self.waiting[identifier] = method
        return Outgoing(identifier, data)

    def notify(self, method: str, params: object = UNSET) -> bytes:
        return _message({"method": method}, "params", params)

    def reply(self, identifier: RequestId, result: object) -> bytes:
        return self._settled(identifier, "result", result)

    def fail(self, identifier: RequestId, error: ResponseError) -> bytes:
        data = UNSET if error.data is None else error.data
        return self._settled(identifier, "error", WireError(error.code, error.message, data))

    def cancel(self, identifier: RequestId) -> bytes | None:
        """Give up waiting. Returns the cancellation to send, or None when there is nothing to cancel any more.

        The id stays known until the answer comes, which is then dropped, or until `forget`.
        """
        method = self.waiting.pop(identifier, None)
        if method is None:
            return None
        self.abandoned[identifier] = method
        return self.notify(CANCEL, CancelParams(identifier))

    def forget(self, identifier: RequestId) -> bool:
        """Give up an id for good, because its request never left or its answer is overdue; False if it was settled."""
        known = identifier in self.abandoned or identifier in self.waiting
        self.abandoned.pop(identifier, None)
        self.waiting.pop(identifier, None)
        return known

    def close(self) -> None:
        """The connection has ended: nothing is waited for or owed, and no more requests are made."""
        self._closed = True
        self.waiting.clear()
        self.abandoned.clear()
        self.owed.clear()

    def receive(self, body: bytes) -> Event:
        return self.accept(decode_message(body))

    def accept(self, message: Message) -> Event:
        if isinstance(message, Unreadable):
            return self._unreadable(message)
        params = NULL if message.params is UNSET else message.params
        if not isinstance(message.method, str):
            return self._response(message)
        if message.id is not UNSET:
            return self._request(message.id, message.method, params)
        if message.method == CANCEL:
            return self._cancellation(params)
        return Notified(message.method, params)

    def _settled(self, identifier: RequestId, member: str, value: object) -> bytes:
        if identifier not in self.owed:
            raise Bug(f"a reply to {identifier!r}, which is not owed one")
        # First the bytes: a result that cannot be encoded leaves the reply owed, so that `fail` can follow.
        data = _message({"id": identifier}, member, value)
        del self.owed[identifier]
        return data

    def _request(self, identifier: RequestId | None, method: str, params: Raw) -> Event:
        if identifier is None or not (isinstance(identifier, str) or -ID_LIMIT <= identifier < ID_LIMIT):
            return self._drop(DropReason.INVALID_ID, f"{method} with the id {identifier!r}")
        if identifier in self.owed:
            return self._drop(DropReason.DUPLICATE_REQUEST, f"{method} with the id {identifier!r}")
        self.owed[identifier] = method
        return Requested(identifier, method, params)

    def _cancellation(self, params: Raw) -> Event:
        try:
            identifier = decode(params, CancelParams).id
        except Malformed as malformed:
            return self._drop(DropReason.INVALID_ID, str(malformed))
        method = self.owed.get(identifier)
        if method is None:
            return self._drop(DropReason.UNKNOWN_CANCEL, f"id {identifier!r}")
        return CancelRequested(identifier, method)

    def _response(self, message: Envelope) -> Event:
        identifier = message.id
        error = None if message.error is UNSET or message.error == NULL else _response_error(message.error)
        if identifier is UNSET or identifier is None:
            if error is None and message.result is UNSET:
                return self._drop(DropReason.NOT_A_MESSAGE, "neither a method nor an id")
            return self._drop(DropReason.NO_ID, "a result without an id" if error is None else error.message)
        method = self.waiting.pop(identifier, None)
        if method is None:
            return self._drop_response(identifier)
        if error is not None:
            return Failed(identifier, method, error)
        return Answered(identifier, method, NULL if message.result is UNSET else message.result)

    def _unreadable(self, message: Unreadable) -> Event:
        if message.id is None:
            return self._drop(message.reason, message.detail)
        method = self.waiting.pop(message.id, None)
        if method is None:
            return self._drop_response(message.id)
        why = f"the response cannot be read: {message.detail}"
        return Failed(message.id, method, UnusableResponse(ErrorCode.PARSE_ERROR, why[:MAX_DETAIL]))

    def _drop_response(self, identifier: RequestId) -> Dropped:
        late = self.abandoned.pop(identifier, None)
        return self._drop(DropReason.LATE if late is not None else DropReason.UNKNOWN_ID, f"id {identifier!r}")

    def _drop(self, reason: DropReason, detail: str) -> Dropped:
        self.dropped[reason] += 1
        return Dropped(reason, detail[:MAX_DETAIL])


def _message(members: dict[str, object], name: str, value: object) -> bytes:
    """A whole frame; a member that is `UNSET` is left out, for several servers refuse `null` where nothing belongs."""
    message: dict[str, object] = {"jsonrpc": "2.0", **members}
    if value is not UNSET:
        message[name] = value
    return frame(encode(message))


def _response_error(raw: Raw) -> ResponseError:
    try:
        error = decode(raw, WireError)
    except Malformed:
        text = bytes(raw)[:MAX_DETAIL].decode("utf-8", "replace")
        return ResponseError(ErrorCode.UNKNOWN_ERROR, text)
    return ResponseError(error.code, error.message, None if isinstance(error.data, UnsetType) else error.data)


# --- What can be read of a body that is not a message -------------------------------------------------------------


def _reason(body: bytes) -> DropReason:
    try:
        decode(body, Raw)
    except Malformed:
        return DropReason.INVALID_JSON
    return DropReason.BATCH if body.lstrip().startswith(b"[") else DropReason.NOT_A_MESSAGE


def _answered_id(body: bytes) -> RequestId | None:
    """The id of a broken response, where it stands before or after everything else in it; our ids are integers."""
    found = _ID_FIRST.match(body) or (_RESULT_FIRST.match(body) and _ID_LAST.search(body[-MAX_DETAIL:]))
    return int(found[1]) if found else None


_VERSION = rb'"jsonrpc"\s*:\s*"[^"]{0,8}"\s*'
_ID = rb'"id"\s*:\s*(\d{1,10})\s*'
_OUTCOME = rb'"(?:result|error)"\s*:'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b,\s*(?:%b,\s*)?%b" % (_VERSION, _ID, _VERSION, _OUTCOME))
_RESULT_FIRST = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b" % (_VERSION, _OUTCOME))
_ID_LAST = re.compile(rb",\s*%b(?:,\s*%b)?\}\s*$" % (_ID, _VERSION))
