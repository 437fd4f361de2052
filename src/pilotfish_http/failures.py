"""A failure on the HTTP wire: its status, and a body that says what is wrong and what to do."""

from pilotfish.errors import Bug, Code, Failure, Refused, ServerFailed
from pilotfish.sanitise import sanitised

MAX_MESSAGE = 1000

_STATUS = {
    Code.NOT_FOUND: 404,
    Code.ROOT_GONE: 409,
    Code.LIMIT_EXCEEDED: 413,
}
"""Where the code says more than the kind."""


def status_of(failure: Failure) -> int:
    if failure.code in _STATUS:
        return _STATUS[failure.code]
    match failure:
        case Refused():
            return 400
        case ServerFailed():
            return 502
        case Bug():
            return 500
        case _:
            return 503


def body_of(failure: Failure) -> dict[str, str]:
    body = {"error": sanitised(failure.message, MAX_MESSAGE), "code": str(failure.code)}
    return body if failure.hint is None else {**body, "hint": sanitised(failure.hint, MAX_MESSAGE)}
