"""The calls of one client: a bounded number running, a bounded number waiting, in the order of arrival.

The first bound keeps clients fair to each other; the second keeps a flood of calls from filling memory.
"""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from pilotfish.protocol.rpc import Requested, RequestId

MAX_AT_WORK = 16
"""An agent makes a handful of calls at once; a flood from one client must leave room for the others."""

MAX_WAITING = 1024
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""How many calls may wait, and how large they may be together: as large as one message may be."""


class Turns(Struct, eq=False):
    """`work` answers one call; `cancelled` is called for one that was cancelled before it was answered."""

    _tasks: TaskGroup
    _work: Callable[[Requested], Awaitable[None]]
    _cancelled: Callable[[RequestId], None]
    _most: int = MAX_AT_WORK
    _most_waiting: int = MAX_WAITING
    _at_work: dict[RequestId, anyio.CancelScope] = field(default_factory=dict[RequestId, anyio.CancelScope])
    _waiting: deque[Requested] = field(default_factory=deque[Requested])
    _waiting_bytes: int = 0

    @property
    def busy(self) -> bool:
        return bool(self._at_work or self._waiting)

    def admit(self, request: Requested) -> bool:
        """Run or queue a call; False when there are too many."""
        if len(self._at_work) < self._most:
            self._begin(request)
            return True
        size = _size(request)
        if len(self._waiting) >= self._most_waiting or self._waiting_bytes + size > MAX_WAITING_BYTES:
            return False
        self._waiting.append(request)
        self._waiting_bytes += size
        return True

    def cancel(self, identifier: RequestId) -> None:
        """Cancel a call, running or waiting; one that was answered stays so."""
        if identifier in self._at_work:
            self._at_work[identifier].cancel()
            return
        for request in self._waiting:
            if request.id == identifier:
                self._waiting.remove(request)
                self._waiting_bytes -= _size(request)
                self._cancelled(identifier)
                return

    def cancel_all(self) -> None:
        self._waiting.clear()
        for scope in self._at_work.values():
            scope.cancel()

    def _begin(self, request: Requested) -> None:
        scope = self._at_work[request.id] = anyio.CancelScope()
        self._tasks.start_soon(self._run, request, scope)

    async def _run(self, request: Requested, scope: anyio.CancelScope) -> None:
        with scope:
            await self._work(request)
        del self._at_work[request.id]
        if scope.cancelled_caught:
            self._cancelled(request.id)
        if self._waiting:
            following = self._waiting.popleft()
            self._waiting_bytes -= _size(following)
            self._begin(following)


def _size(request: Requested) -> int:
    return len(memoryview(request.params))
