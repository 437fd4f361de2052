"""Judges in this process, each with a copy of the workspace and language servers of its own."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

from pilotfish.batch.copies import Bases, duplicate
from pilotfish.batch.engine import PatchQueue, Tell
from pilotfish.batch.judge import JudgeSettings, PatchJudge, open_judge
from pilotfish.batch.patches import Patch, unjudged
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.service.patch_checks import BaseStates, SharedStates
from pilotfish.service.service import System
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import owned_tasks


class LocalEngine:
    def __init__(self, settings: JudgeSettings, shell: System, jobs: int) -> None:
        self._settings = settings
        self._shell = shell
        self._jobs = jobs
        self._states: dict[str | None, SharedStates] = {}
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
