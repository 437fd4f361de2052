"""Judges on a Ray cluster, each an actor with a warm copy of the workspace.

Ray is only asked for actors and for calls of them: which actor judges which patch is decided by whoever is free, and
the patch of an actor that died goes back to the others. What an actor said after that nobody hears, so a judgement is
told once. Ray and its hundred megabytes are imported here alone, when this engine is asked for.
"""

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from typing import Any

import anyio.to_thread
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from msgspec import Struct, field

from pilotfish.batch.copies import Bases, packed, unpack
from pilotfish.batch.engine import MAX_TRIES, PatchQueue, Tell
from pilotfish.batch.judge import JudgedPatch, JudgeSettings, PatchJudge, open_judge
from pilotfish.batch.patches import Patch, unjudged
from pilotfish.errors import Code, Failure, Unavailable
from pilotfish.feedback.delta import CheckedText
from pilotfish.model import AbsPath
from pilotfish.servers.install import extra_command
from pilotfish.service.patch_checks import BaseStates, SharedStates
from pilotfish.service.service import System
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import owned_tasks

CLOSE_SECONDS = 15.0
"""For an actor to stop its servers; they end without it, too."""

States = Mapping[str, CheckedText]
"""What was found of files at a base, by path below the root."""

_Known = dict[tuple[str, str | None], dict[str, CheckedText]]
"""By node and base: what any actor has found there. Another node may have other servers."""

MakeSystem = Callable[[Mapping[str, str]], System]
"""The computer that an actor runs on."""


class JudgeActor:
    """What runs in a worker process of Ray. Its judge is opened for the base of the first patch."""

    def __init__(self, settings: bytes, make_system: MakeSystem, part: tuple[int, int]) -> None:
        """`part`: its number, and of how many."""
        self._settings = msgspec.json.decode(settings, type=JudgeSettings)
        self._make_system = make_system
        self._part = part
        self._opened = ExitStack()
        self._judge: tuple[BlockingPortal, PatchJudge] | None = None
        self._states: dict[str, CheckedText] = {}
        """At the base."""

    def begin(self, patch: bytes, piece: bytes) -> States:
        """Open a judge with this copy for the patch's base. Returns what was found there before the first judgement."""
        self.close()
        shell, self._states = self._make_system(os.environ), {}
        states = BaseStates(SharedStates(self._states), self._part, is_long=self._settings.is_long)
        opening = open_judge(self._settings, shell, states, partial(unpack, piece))
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            judge = stack.enter_context(portal.wrap_async_context_manager(opening))
            self._opened, self._judge = stack.pop_all(), (portal, judge)
        portal.call(judge.begin, msgspec.json.decode(patch, type=Patch))
        return self._states

    def judge(self, patch: bytes, known: States) -> tuple[bytes, States]:
        """`known`: what others have found at the base. Returns the judgement, and what is new of the base."""
        assert self._judge is not None
        portal, judge = self._judge
        self._states.update(known)
        before = frozenset(self._states)
        judged = portal.call(judge.judge, msgspec.json.decode(patch, type=Patch))
        found = {path: state for path, state in self._states.items() if path not in before}
        return msgspec.json.encode(judged), found

    def node(self) -> str:
        return _ray().get_runtime_context().get_node_id()

    def close(self) -> None:
        self._opened.close()
        self._judge = None


class _Judge:
    """A `JudgeActor` of Ray, and what it has been told of the base that it is at."""

    def __init__(self, actor: Any, known: _Known, node: str) -> None:
        self.actor = actor
        self._known = known
        self._node = node
        self._base: str | None = None
        self._has_copy = False
        self._told = set[str]()

    async def judge(self, patch: Patch, piece: object) -> JudgedPatch:
        if patch.base != self._base:
            self.begin_anew()
        known = self._known.setdefault((self._node, patch.base), {})
        asked = msgspec.json.encode(patch)
        if not self._has_copy:
            found = await self.actor.begin.remote(asked, piece)
            self._base, self._has_copy = patch.base, True
            self._learn(known, found)
        new = {path: state for path, state in known.items() if path not in self._told}
        answer, found = await self.actor.judge.remote(asked, new)
        self._learn(known, {**new, **found})
        return msgspec.json.decode(answer, type=JudgedPatch)

    def _learn(self, known: dict[str, CheckedText], found: States) -> None:
        known.update(found)
        self._told |= found.keys()

    def begin_anew(self) -> None:
        """It has no copy any more, or one of another base, and does not know what it was told."""
        self._has_copy = False
        self._told.clear()


class RayEngine(Struct, frozen=True):
    _settings: JudgeSettings
    _make_system: MakeSystem
    _jobs: int
    _address: str
    """Of a cluster, `auto` for the one of this machine, `local` for a new one that ends with us."""
    _known: _Known = field(default_factory=_Known)

    async def judge_all(self, patches: AsyncIterator[Patch], tell: Tell) -> None:
        """As the port says."""
        ray = _ray()
        # Not in a thread: it takes the signals of a program for its own only in the main one, and says so elsewhere.
        self._connect(ray)
        try:
            with tempfile.TemporaryDirectory(prefix="pilotfish-bases-", ignore_cleanup_errors=True) as folder:
                pieces = _Pieces(ray, Bases(self._settings.root, self._settings.git, AbsPath(real_path(folder))))
                queue = PatchQueue(patches, tell)
                async with owned_tasks() as tasks:
                    for number in range(self._jobs):
                        tasks.start_soon(self._work, ray, queue, pieces, (number, self._jobs))
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(ray.shutdown)

    def _connect(self, ray: Any) -> None:
        given = {"num_cpus": self._jobs} if self._address == "local" else {"address": self._address}
        try:
            ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False, **given)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise Unavailable(Code.NOT_FOUND, f"no Ray cluster at {self._address}: {error}") from error

    async def _work(self, ray: Any, queue: PatchQueue, pieces: "_Pieces", part: tuple[int, int]) -> None:
        """One actor, and another one when it is lost."""
        judge: _Judge | None = None
        try:
            while (patch := await queue.next_patch()) is not None:
                try:
                    piece = await pieces.of(patch.base)
                except Failure as failure:
                    await queue.end(unjudged(patch, failure.message))
                    continue
                try:
                    judge = judge or await self._begun(ray, part)
                    judged = await judge.judge(patch, piece)
                except ray.exceptions.RayError as error:
                    await anyio.to_thread.run_sync(_kill, ray, judge)
                    judge = None
                    if not queue.give_back(patch):
                        reason = f"{MAX_TRIES} workers were lost with this patch, the last by: {error}"
                        await queue.end(unjudged(patch, reason))
                    continue
                if judged.may_pass:
                    # Its pool would wait before it tries the servers again: the next patch has new ones.
                    with suppress(ray.exceptions.RayError):
                        await judge.actor.close.remote()
                    judge.begin_anew()
                await queue.settle(patch, judged)
        finally:
            if judge is not None:
                with anyio.CancelScope(shield=True):
                    await self._end(ray, judge)

    async def _begun(self, ray: Any, part: tuple[int, int]) -> _Judge:
        made = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(JudgeActor)
        actor = made.remote(msgspec.json.encode(self._settings), self._make_system, part)
        return _Judge(actor, self._known, await actor.node.remote())

    @staticmethod
    async def _end(ray: Any, judge: _Judge) -> None:
        """Let it stop its servers; those of one that does not end with it, by their supervisors."""
        with anyio.move_on_after(CLOSE_SECONDS):
            with suppress(ray.exceptions.RayError):
                await judge.actor.close.remote()
        await anyio.to_thread.run_sync(_kill, ray, judge)


class _Pieces:
    """Copies of bases in the cluster's memory, which every node reads once."""

    def __init__(self, ray: Any, bases: Bases) -> None:
        self._ray = ray
        self._bases = bases
        self._put: dict[str | None, object] = {}
        self._putting = anyio.Lock()

    async def of(self, base: str | None) -> object:
        async with self._putting:
            if base not in self._put:
                piece = await anyio.to_thread.run_sync(packed, await self._bases.copy_of(base))
                self._put[base] = await anyio.to_thread.run_sync(self._ray.put, piece)
            return self._put[base]


def _kill(ray: Any, judge: _Judge | None) -> None:
    if judge is not None:
        ray.kill(judge.actor, no_restart=True)


def _ray() -> Any:
    try:
        import_module("ray.exceptions")
        return import_module("ray")
    except ImportError as error:
        message = f"Ray is not installed; it comes with: {extra_command('ray')}"
        raise Unavailable(Code.NOT_FOUND, message) from error
