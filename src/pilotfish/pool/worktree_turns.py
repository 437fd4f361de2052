"""Whose turn it is, where several take turns at one thing.

A turn lasts as long as anybody works in it, and from the begin to the end of what a client waits for. Those for whom
a client waits go first; work in the background gives way to them after the piece that it is at.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

import anyio
from msgspec import Struct

from pilotfish.client.pulse import Pulse
from pilotfish.system.clock import current_time

PATIENCE_SECONDS = 2.0
"""While others wait for longer than this, no more work joins the turn that is going on."""

HEAD_START_SECONDS = 4.0
"""So much earlier than work in the background comes that for which a client waits. What an edit owes is found in three
pieces of such work, and told within half a minute also where all others edit all the time."""


class Party(Protocol):
    @property
    def is_served(self) -> Callable[[], bool]:
        """Whether a client waits for it."""
        ...


P = TypeVar("P", bound=Party)


class _Waiting(Struct, frozen=True, eq=False):
    party: Party
    since: float

    def due(self) -> float:
        return self.since - _head_start(self.party)


class WorktreeTurns(Generic[P]):
    def __init__(self) -> None:
        self._moved = Pulse()
        self._queue: deque[_Waiting] = deque()
        self._holder: P | None = None
        self._turn = object()
        """Another one for each turn."""
        self._works = 0

    def is_working(self, party: P) -> bool:
        return self._holder is party and self._works > 0

    def look_again(self) -> None:
        """A client waits for somebody, or does not any more; or there is nothing more to wait for."""
        if not self._works and self._holder is not None and not self._holder.is_served():
            self._holder = None
        self._moved.notify()

    def leave(self, party: P) -> None:
        if self._holder is party:
            self._holder = None
        self._moved.notify()

    @asynccontextmanager
    async def turn(self, party: P, look: Callable[[], None], *, is_part: bool = False) -> AsyncGenerator[object]:
        """Wait for a turn, or join the one that is going on; yields what stands for it. `look` may raise meanwhile.

        `is_part`: of work that has its turn, if any has, and that would wait for this for ever.
        """
        waiting = _Waiting(party, current_time())
        self._queue.append(waiting)
        try:
            while look() or not ((is_part and self.is_working(party)) or self._may_work(waiting)):
                left = waiting.since + PATIENCE_SECONDS - current_time()
                with anyio.move_on_after(left if left > 0 else None):
                    await self._moved.wait()
            if self._holder is not party:
                self._holder, self._turn = party, object()
            self._works += 1
        finally:
            self._queue.remove(waiting)
            self._moved.notify()
        try:
            yield self._turn
        finally:
            self._works -= 1
            self.look_again()

    def _may_work(self, waiting: _Waiting) -> bool:
        holder = self._holder
        if holder is not None and not any(_ends_turn(one, holder) for one in self._queue):
            return waiting.party is holder
        return not self._works and min(self._queue, key=_Waiting.due) is waiting


def _ends_turn(waiting: _Waiting, holder: Party) -> bool:
    """Whether nothing more of the holder's may begin before this."""
    patience = PATIENCE_SECONDS + _head_start(holder) - _head_start(waiting.party)
    return waiting.party is not holder and current_time() - waiting.since >= patience


def _head_start(party: Party) -> float:
    return HEAD_START_SECONDS if party.is_served() else 0.0
