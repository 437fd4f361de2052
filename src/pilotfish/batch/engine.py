"""The port: who judges the patches of a batch, and the order in which they are handed out."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import anyio

from pilotfish.batch.judge import JudgedPatch
from pilotfish.batch.patches import Judgement, Patch

MAX_TRIES = 7
"""How often a patch is judged whose judge was lost on the way. Whoever takes it next may have lost its own servers to
the same thing, so that one accident may cost several tries."""

Tell = Callable[[Judgement], Awaitable[None]]


class Engine(Protocol):
    async def run(self, patches: AsyncIterator[Patch], tell: Tell) -> None:
        """Judge each patch once, and tell each judgement as soon as it is known, in any order.

        Whatever happens to a judge, none is lost and none is told twice; whoever fails for good says so in the
        judgement. When this ends, or is cancelled, nothing that it started is left.
        """
        ...


class PatchQueue:
    """Patches that wait for a judge. Every judge takes the next one when it is free."""

    def __init__(self, patches: AsyncIterator[Patch]) -> None:
        self._patches = patches
        self._again: deque[Patch] = deque()
        self._tries: dict[object, int] = {}
        self._taking = anyio.Lock()
        self._under_way = 0
        self._is_read = False
        self._returned = anyio.Event()

    async def take(self) -> Patch | None:
        """The next patch; None when all are judged. While others judge the last ones, it waits: one may come back."""
        while True:
            async with self._taking:
                patch = self._again.popleft() if self._again else await self._read()
            if patch is not None:
                self._under_way += 1
                return patch
            if not self._under_way:
                return None
            await self._returned.wait()

    async def _read(self) -> Patch | None:
        if self._is_read:
            return None
        try:
            return await anext(self._patches)
        except StopAsyncIteration:
            self._is_read = True
            return None

    def done(self) -> None:
        """A patch that was taken is judged."""
        self._under_way -= 1
        self._wake()

    def give_back(self, patch: Patch) -> bool:
        """The judge of this patch was lost; False when that has happened too often."""
        tries = self._tries.get(patch.id, 1)
        self._tries[patch.id] = tries + 1
        if tries >= MAX_TRIES:
            return False
        self._under_way -= 1
        self._again.append(patch)
        self._wake()
        return True

    async def settle(self, patch: Patch, judged: JudgedPatch, tell: Tell) -> None:
        """Tell a judgement, unless another try is worth it."""
        if judged.may_pass and self.give_back(patch):
            return
        await tell(judged.judgement)
        self.done()

    def _wake(self) -> None:
        self._returned.set()
        self._returned = anyio.Event()
