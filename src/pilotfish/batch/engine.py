"""The port: who judges the patches of a batch, and the order in which they are handed out."""

import hashlib
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import State
from pilotfish.batch.copies import Bases, duplicate
from pilotfish.batch.judge import JudgedPatch, JudgeSettings, PatchJudge, open_judge
from pilotfish.batch.patches import Judgement, Patch, unjudged
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.service.patch_checks import BaseStates, SharedStates
from pilotfish.service.recent import Recent
from pilotfish.service.service import System
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import owned_tasks

MAX_TRIES = 7
"""How often a patch is judged whose judge was lost on the way. Whoever takes it next may have lost its own servers to
the same thing, so that one accident may cost several tries."""

MAX_KNOWN = 1_000
"""Judgements that are kept for patches with the same content."""

Tell = Callable[[Judgement], Awaitable[None]]


class Engine(Protocol):
    async def judge_all(self, patches: AsyncIterator[Patch], tell: Tell) -> None:
        """Judge each patch once, and tell each judgement as soon as it is known, in any order.

        Whatever happens to a judge, none is lost and none is told twice; whoever fails for good says so in the
        judgement. When this ends, or is cancelled, nothing that it started is left.
        """
        ...


class PatchQueue:
    """Patches that wait for a judge. Every judge takes the next one when it is free.

    Of several samples, some are often the same: a patch that was judged under another name is told without a judge.
    """

    def __init__(self, patches: AsyncIterator[Patch], tell: Tell) -> None:
        self._patches = patches
        self._tell = tell
        self._known: Recent[bytes, Judgement] = Recent(MAX_KNOWN)
        self._again: deque[Patch] = deque()
        self._tries: dict[object, int] = {}
        self._under_way = 0
        self._is_reading = False
        self._is_read = False
        self._returned = anyio.Event()

    async def next_patch(self) -> Patch | None:
        """The next patch; None when all are judged. While others judge the last ones, it waits: one may come back."""
        while True:
            patch = await self._next()
            if patch is not None:
                self._under_way += 1
                return patch
            if self._is_read and not self._under_way:
                return None
            if not self._again:
                await self._returned.wait()

    async def _next(self) -> Patch | None:
        """One that came back, or the next of the input; None while another judge waits for that.

        Whoever writes the input may wait for an answer first: nobody who waits for it keeps others from what came back.
        """
        if self._again:
            return self._again.popleft()
        if self._is_reading:
            return None
        self._is_reading = True
        try:
            return await self._read()
        finally:
            self._is_reading = False
            self._wake()

    async def _read(self) -> Patch | None:
        while not self._is_read:
            try:
                patch = await anext(self._patches)
            except StopAsyncIteration:
                self._is_read = True
                return None
            known = self._known.get(_content(patch))
            if known is None:
                return patch
            await self._tell(replace(known, id=patch.id, ms=0))
        return None

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

    async def settle(self, patch: Patch, judged: JudgedPatch) -> None:
        if judged.may_pass and self.give_back(patch):
            return
        if judged.judgement.state is State.FRESH:
            self._known.put(_content(patch), judged.judgement)
        await self.end(judged.judgement)

    async def end(self, judgement: Judgement) -> None:
        await self._tell(judgement)
        self._under_way -= 1
        self._wake()

    def _wake(self) -> None:
        self._returned.set()
        self._returned = anyio.Event()


def _content(patch: Patch) -> bytes:
    content = (patch.base, patch.diff, sorted(patch.files.items()))
    # Not as JSON: the text of a file need not be valid Unicode.
    return hashlib.sha256(repr(content).encode()).digest()


# --- Judges in this process, each with a copy of the workspace and language servers of its own ------------------------


class LocalEngine(Struct, frozen=True):
    _settings: JudgeSettings
    _shell: System
    _jobs: int
    _states: dict[str | None, SharedStates] = field(default_factory=dict[str | None, SharedStates])
    """By base: what any judge has found of its files."""

    async def judge_all(self, patches: AsyncIterator[Patch], tell: Tell) -> None:
        """As the port says."""
        queue = PatchQueue(patches, tell)
        with tempfile.TemporaryDirectory(prefix="pilotfish-bases-", ignore_cleanup_errors=True) as folder:
            bases = Bases(self._settings.root, self._settings.git, AbsPath(real_path(folder)))
            async with owned_tasks() as tasks:
                for number in range(self._jobs):
                    tasks.start_soon(self._work, queue, bases, number)

    async def _work(self, queue: PatchQueue, bases: Bases, number: int) -> None:
        """One judge after the other, each of the base that the next patch has."""
        patch = await queue.next_patch()
        while patch is not None:
            async with AsyncExitStack() as opened:
                try:
                    judge = await self._judge(opened, bases, patch.base, number)
                except Failure as failure:
                    # There is no such base, or no room for a copy of it.
                    await queue.end(unjudged(patch, failure.message))
                    patch = await queue.next_patch()
                    continue
                base, is_sound = patch.base, True
                # A judge whose servers fail is given up for a new one: its pool would wait before it tries them again.
                while patch is not None and patch.base == base and is_sound:
                    judged = await judge.judge(patch)
                    is_sound = not judged.may_pass
                    await queue.settle(patch, judged)
                    patch = await queue.next_patch()

    async def _judge(self, opened: AsyncExitStack, bases: Bases, base: str | None, number: int) -> PatchJudge:
        copy = await bases.copy_of(base)
        shared = self._states.setdefault(base, SharedStates())
        states = BaseStates(shared, (number, self._jobs), is_long=self._settings.is_long)
        opening = open_judge(self._settings, self._shell, states, partial(duplicate, copy))
        return await opened.enter_async_context(opening)
