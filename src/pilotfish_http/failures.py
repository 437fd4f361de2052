"""A failure on the HTTP wire: its status, and a body that says what is wrong and what to do."""

from collections.abc import Mapping

from pilotfish.errors import Bug, Code, Failure, Refused, ServerFailed, Unavailable
from pilotfish.sanitise import sanitised

MAX_MESSAGE = 1000

_STATUS = {Code.NOT_FOUND: 404, Code.ROOT_GONE: 409, Code.LIMIT_EXCEEDED: 413}
"""Where the code says more than the kind."""


_OF_KIND: Mapping[type[Failure], int] = {Refused: 400, Unavailable: 503, ServerFailed: 502, Bug: 500}


def status_of(failure: Failure) -> int:
    return _STATUS.get(failure.code) or _OF_KIND[type(failure)]


def body_of(failure: Failure) -> dict[str, str]:
    body = {"error": sanitised(failure.message, MAX_MESSAGE), "code": str(failure.code)}
    return body if failure.hint is None else {**body, "hint": sanitised(failure.hint, MAX_MESSAGE)}
