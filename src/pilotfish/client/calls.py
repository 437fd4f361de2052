"""The requests that wait for a server's answer. Each ends exactly once: answered, failed, or given up by its caller."""

from collections import deque
from typing import Literal

import anyio
from msgspec import Raw, Struct

from pilotfish.errors import Failure
from pilotfish.protocol.rpc import RequestId, ResponseError

CallResult = Raw | ResponseError | Failure

MAX_EXCHANGES = 50
"""Of the requests that have ended, so many are kept for people to look at."""


class EndedCall(Struct, frozen=True):
    """A request that has ended, and how: without its content."""

    method: str
    asked_at: float
    seconds: float
    end: Literal["answered", "failed", "given up"]


class Call(Struct):
    """One request under way."""

    id: RequestId
    method: str
    asked_at: float
    outcome: CallResult | None = None
    ended: anyio.Event | None = None
    """Made by who waits for it."""

    def end(self, outcome: CallResult) -> None:
        self.outcome = outcome
        if self.ended is not None:
            self.ended.set()


class Calls:
    def __init__(self) -> None:
        self._waiting: dict[RequestId, Call] = {}
        self.exchanges: deque[EndedCall] = deque(maxlen=MAX_EXCHANGES)
        """The last ones that have ended, newest last."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, call: Call) -> bool:
        return call.id in self._waiting

    @property
    def oldest(self) -> Call | None:
        """The call that has waited longest."""
        return next(iter(self._waiting.values()), None)

    def begin(self, identifier: RequestId, method: str, now: float) -> Call:
        call = self._waiting[identifier] = Call(identifier, method, now)
        return call

    def end(self, identifier: RequestId, outcome: CallResult) -> None:
        """Settle a call; one that its caller gave up is not here any more, which is normal."""
        call = self._waiting.pop(identifier, None)
        if call is not None:
            call.end(outcome)

    def give_up(self, identifier: RequestId) -> None:
        self._waiting.pop(identifier, None)

    def note(self, call: Call, now: float) -> None:
        """Remember how a call ended."""
        answered = isinstance(call.outcome, Raw)
        end = "answered" if answered else "given up" if call.outcome is None else "failed"
        self.exchanges.append(EndedCall(call.method, call.asked_at, now - call.asked_at, end))

    def end_all(self, outcome: Failure) -> None:
        waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            call.end(outcome)
