"""When a server asks us to ask again, and how often we do. Pure."""

from collections.abc import Collection
from typing import Any

from pilotfish.protocol.capabilities import RETRY_ON_CONTENT_MODIFIED
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.rpc import ErrorCode, ResponseError

DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each further try: a document that just changed settles within the first three, a server that is
loading within the last three, and one that always refuses is asked seven times in 3.2 s, not for ever."""


def retry_delay(method: str, error: ResponseError, tries: int, *, cancels_on_change: bool = False) -> float | None:
    """How long to wait before asking again after `tries` refusals; None when the error is final.

    `cancels_on_change`: the server says that we cancelled a question when a document changed meanwhile.
    """
    modified = {ErrorCode.CONTENT_MODIFIED, *([ErrorCode.REQUEST_CANCELLED] if cancels_on_change else [])}
    if tries > len(DELAYS) or not _asks_again(method, error, modified):
        return None
    return DELAYS[tries - 1]


def _asks_again(method: str, error: ResponseError, modified: Collection[int]) -> bool:
    if error.code in modified:
        return method in RETRY_ON_CONTENT_MODIFIED
    return error.code == ErrorCode.SERVER_CANCELLED and _retrigger(error)


def _retrigger(error: ResponseError) -> bool:
    """No data means yes: only an explicit false is final."""
    try:
        data = decode(error.data, dict[str, Any]) if error.data is not None else {}
    except Malformed:
        return True
    return data.get("retriggerRequest") is not False
