"""The requests that wait for a server's answer. Each ends exactly once: answered, failed, or given up by its caller."""

from dataclasses import dataclass, field

import anyio
from msgspec import Raw

from pilotfish.errors import Failure
from pilotfish.protocol.rpc import RequestId, ResponseError

Outcome = Raw | ResponseError | Failure


@dataclass(slots=True)
class Call:
    """One request under way."""

    method: str
    asked_at: float
    outcome: Outcome | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)

    def end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.ended.set()


class Calls:
    def __init__(self) -> None:
        self._waiting: dict[RequestId, Call] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest(self) -> Call | None:
        """The call that has waited longest."""
        return next(iter(self._waiting.values()), None)

    def begin(self, identifier: RequestId, method: str, now: float) -> Call:
        call = self._waiting[identifier] = Call(method, now)
        return call

    def end(self, identifier: RequestId, outcome: Outcome) -> None:
        """Settle a call; one that its caller gave up is not here any more, and that is no fault."""
        call = self._waiting.pop(identifier, None)
        if call is not None:
            call.end(outcome)

    def give_up(self, identifier: RequestId) -> None:
        self._waiting.pop(identifier, None)

    def end_all(self, outcome: Failure) -> None:
        waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            call.end(outcome)
