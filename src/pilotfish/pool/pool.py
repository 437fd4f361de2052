"""The servers that run, shared by all who ask. `plan` decides; this carries it out.

Each session lives in a task of the pool, never in that of a request: a cancelled request harms no other.
A key has one entry from the first moment, so a hundred demands at once make one start.
"""

import logging
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session
from pilotfish.client.tap import Tap
from pilotfish.config.schema import RestartPolicy
from pilotfish.errors import Bug, Code, Failure, Unavailable
from pilotfish.model import AbsPath
from pilotfish.pool.counters import Counters
from pilotfish.pool.entry import Entry, Recipe
from pilotfish.pool.mirror import Unshareable
from pilotfish.pool.monitor import Monitor
from pilotfish.pool.plan import (
    Broken,
    Decision,
    Demand,
    Evict,
    Join,
    Key,
    Limits,
    Missing,
    Refuse,
    Slot,
    Start,
    Starting,
    Stopping,
    Wait,
    WaitForRoom,
    Why,
    admission,
    of_process,
    room_to_spare,
)
from pilotfish.pool.sharing import Sharing
from pilotfish.pool.sidecar import running_sidecar
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.wire import Json
from pilotfish.servers.spec import Relay
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Spawner, Vitals
from pilotfish.system.tasks import owned_tasks, side_by_side

logger = logging.getLogger(__name__)

T = TypeVar("T")

OPENING_SECONDS = 2.0
"""How long a question about a file that the other server does not know waits until it has it."""

STOP_ALL_SECONDS = 8.0
"""Bound of stopping everything side by side: one ladder takes 5 s at most."""


class Pool:
    def __init__(
        self,
        spawn: Spawner,
        vitals: Vitals,
        *,
        limits: Limits | None = None,
        left: Callable[[AbsPath], None] = lambda _root: None,
        jitter: Callable[[], float] = lambda: random.uniform(-1, 1),  # noqa: S311 -- not a secret
    ) -> None:
        self.limits = limits or Limits()
        self.counters = Counters()
        self.changed = Pulse()
        """Notified whenever an entry changes its state."""
        self._freed = Pulse()
        """Notified when a server has answered, or is gone: there may be room for another."""
        self._spawn = spawn
        self._left = left
        """Called with a root that no client session uses any more and of which no server is remembered."""
        self._jitter = jitter
        self._entries: dict[Key, Entry] = {}
        self._taps: dict[str, Tap] = {}
        self._served: Counter[str] = Counter()
        """Client sessions that wait for something, each as often as it does."""
        self._tasks: TaskGroup | None = None
        self._sharing = Sharing(spawn, is_wanted=self.limits.share_worktrees)
        self._monitor = Monitor(self._entries, vitals, self.limits, self._forget)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Pool"]:
        """The pool's life; at its end every server is stopped, all side by side."""
        async with owned_tasks() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._monitor.watch)
            try:
                yield self
            finally:
                self._tasks = None
                with anyio.move_on_after(STOP_ALL_SECONDS, shield=True):
                    await self.stop_all()
                tasks.cancel_scope.cancel()

    def tap(self, server: str) -> Tap:
        """Where to listen to the traffic of a server, in all its roots."""
        return self._taps.setdefault(server, Tap())

    def entries(self) -> Mapping[Key, Entry]:
        """For status: read, never change."""
        return self._entries

    async def use(
        self,
        recipe: Recipe,
        work: Callable[[Session], Awaitable[T]],
        *,
        lease: str,
        restart: RestartPolicy = "backoff",
    ) -> T:
        """Run `work` on the session of a key, starting it if need be.

        A server whose inputs have changed since it started is started anew first. `work` must be safe to do twice: when
        the server dies or is replaced under it, it is done once more on the next one. The caller bounds the time;
        cancelling it cancels the work and nothing else.
        """
        demand = Demand(restart, recipe.fingerprint)
        entry = await self._admit(recipe, demand, lease)
        try:
            return await self._work(entry, work)
        except Failure as failed:
            renewed = entry.stopping_for is Why.INPUTS
            crashed = failed.code in {Code.SERVER_CRASHED, Code.SERVER_HUNG} and restart != "never"
            if not (renewed or crashed):
                raise
            entry = await self._admit(recipe, demand, lease)
            return await self._work(entry, work)

    @property
    def room_to_spare(self) -> int:
        """How many servers may be started that nobody has asked for yet."""
        return room_to_spare({key: entry.slot for key, entry in self._entries.items()}, self.limits)

    @contextmanager
    def serving(self, lease: str) -> Generator[None]:
        """While the block runs, a client waits: its worktree goes before those for which nobody does."""
        self._served[lease] += 1
        self._sharing.look_again()
        try:
            yield
        finally:
            self._served[lease] -= 1
            self._served = +self._served
            self._sharing.look_again()

    def release(self, lease: str) -> None:
        """A client session has ended: what only it used is stopped after a while."""
        for entry in self._entries.values():
            entry.release(lease)
        self._monitor.look_again()

    async def stop(self, key: Key, why: Why) -> None:
        """Stop one server and wait until it is gone."""
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.stop(why)
        while isinstance(entry.slot, Stopping):
            await entry.changed.wait()

    def retire(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Begin to stop the servers of some roots, also while they answer: they may not run as they are."""
        for entry in self._entries.values():
            if is_meant(entry.key.root):
                entry.stop(Why.CONFIG)

    def leave(self, is_outdated: Callable[[Key], bool]) -> None:
        """Stop and forget the servers of a configuration that has changed; what they are answering is answered."""
        for entry in self._entries.values():
            if is_outdated(entry.key):
                entry.mark_outdated(current_time())
        self._monitor.look_again()

    async def stop_all(self, why: Why = Why.ASKED) -> None:
        async with owned_tasks() as tasks:
            for key in self._entries:
                tasks.start_soon(self.stop, key, why)

    def forgive(self, key: Key) -> None:
        if key in self._entries:
            self._entries[key].forgive(current_time())
            self._monitor.look_again()

    def _forget(self, key: Key) -> None:
        logger.info("forgotten key=%s", key)
        entry = self._entries.pop(key)
        if not entry.leases and not any(other.root == key.root for other in self._entries):
            self._sharing.left(key.root)
            self._left(key.root)
        self.changed.notify()

    async def _work(self, entry: Entry, work: Callable[[Session], Awaitable[T]]) -> T:
        session = entry.session
        if session is None:
            raise Bug(f"{entry.key} was admitted without a session")
        entry.begin()
        self._monitor.note_request(current_time())
        try:
            async with entry.turn():
                result = await work(session)
            entry.mark_healthy()
            if self._monitor.budgeted and not entry.proven:
                # Before it counts as idle: who waits for room would stop it instead of learning how small it is.
                await self._monitor.measure(entry)
        except Unshareable as why:
            logger.info("shares no more key=%s why=%s", entry.key, why)
            entry.stop(Why.INPUTS)
            raise Unavailable(Code.SHUTTING_DOWN, f"{entry.key.server} is started for this worktree alone") from why
        finally:
            entry.end(current_time())
            if not entry.works:
                self._freed.notify()
        return result

    def _leave_older(self, key: Key, lease: str) -> None:
        """A client that asks for a key has left the server of its older configuration; unused, that one stops."""
        for other in self._entries.values():
            same = (other.key.server, other.key.root) == (key.server, key.root) and other.key != key
            if same and lease in other.leases:
                other.release(lease)
                if not other.leases and not other.works:
                    other.stop(Why.CONFIG)

    def _lease(self, entry: Entry, lease: str) -> None:
        if lease not in entry.leases:
            self._leave_older(entry.key, lease)
            entry.lease(lease)

    async def _admit(self, recipe: Recipe, demand: Demand, lease: str) -> Entry:
        """Wait until the key has a session; the entry then has one without a wait in between."""
        joined = False
        while True:
            entry = self._entries.get(recipe.key)
            if entry is not None:
                self._lease(entry, lease)
            if joined and entry is not None and isinstance(entry.slot, Broken | Missing):
                # The start that we shared failed: its own failure says more than the back-off does.
                raise entry.slot.failure
            slots = {key: known.slot for key, known in self._entries.items()}
            match self._decision(recipe, slots, demand):
                case Join() if entry is not None and entry.usable:
                    if _is_current(entry):
                        return entry
                    entry.stop(Why.INPUTS)
                case Start():
                    entry, joined = self._start(recipe), True
                    self._lease(entry, lease)
                case Join() | Wait():
                    joined = joined or (entry is not None and isinstance(entry.slot, Starting))
                case Evict(key):
                    await side_by_side(partial(self.stop, why=Why.CROWDED), of_process(key, slots))
                    continue
                case WaitForRoom():
                    await self._freed.wait()
                    continue
                case Refuse(failure):
                    raise failure
            if entry is not None:
                await entry.changed.wait()

    def _decision(self, recipe: Recipe, slots: Mapping[Key, Slot], demand: Demand) -> Decision:
        decision = admission(recipe.key, slots, demand, self.limits, current_time(), self._monitor.sizes)
        if isinstance(decision, Evict | WaitForRoom):
            with suppress(Failure):
                # Where it joins a process that is there, it needs no room.
                return Start() if self._sharing.may_join(recipe.options()) else decision
        return decision

    def _required_tasks(self) -> TaskGroup:
        if self._tasks is None:
            raise Bug("the pool is not running")
        return self._tasks

    def _start(self, recipe: Recipe) -> Entry:
        now = current_time()
        entry = self._entries.setdefault(recipe.key, Entry(recipe.key, Starting(now), Pulse(self.changed)))
        entry.recipe = recipe
        entry.start(now)
        self.counters.starts[recipe.key.server] += 1
        self._required_tasks().start_soon(self._live, entry, recipe)
        return entry

    async def _live(self, entry: Entry, recipe: Recipe) -> None:
        """One session from start to end, and what its end means."""
        try:
            failure = await self._session(entry, recipe)
        except Failure as failed:
            failure = failed
        except Exception as error:
            logger.exception("session failed key=%s", entry.key)
            failure = Bug(f"{type(error).__name__}: {error}")
        except BaseException:
            # The pool itself was cancelled: tasks that wait for this server must see that it is gone.
            entry.mark_stopped(current_time())
            raise
        self._end_life(entry, recipe, failure)
        self._freed.notify()
        self._monitor.look_again()

    def _end_life(self, entry: Entry, recipe: Recipe, failure: Failure | None) -> None:
        now = current_time()
        if failure is None or entry.stopping_for is not None:
            logger.info("stopped key=%s why=%s", entry.key, entry.stopping_for)
            entry.mark_stopped(now)
            return
        logger.warning("failed key=%s code=%s message=%s", entry.key, failure.code, failure.message)
        self.counters.failures[entry.key.server, failure.code] += 1
        entry.mark_failed(failure, now=now, jitter=self._jitter(), fingerprint=recipe.fingerprint)

    async def _session(self, entry: Entry, recipe: Recipe) -> Failure | None:

        def is_served() -> bool:
            return not self._served.keys().isdisjoint(entry.leases)

        with entry.life:
            options = self._options(recipe)
            entry.inputs = options.inputs
            async with (
                self._sharing.session(options, self._required_tasks(), is_served) as shared,
                running_sidecar(recipe.sidecar, self._spawn, self._jitter) as entry.sidecar,
            ):
                session, entry.turn, entry.process = shared
                await recipe.restore(session, entry.documents)
                entry.mark_running(session, current_time())
                self._monitor.look_again()
                return await session.ended()
        return None

    def _options(self, recipe: Recipe) -> SessionOptions:
        options = recipe.options()
        return replace(options, tap=self.tap(recipe.key.server), relayed=partial(self._relayed, options))

    async def _relayed(self, options: SessionOptions, request: str, arguments: Json) -> Json:
        """What another server answers to one that has questions for it; None where there is no answer in time."""
        relay, root = options.relay, options.root
        if relay is None:
            return None
        with anyio.move_on_after(options.request_seconds), suppress(Failure, Malformed):
            while entry := next((one for one in self._entries.values() if _may_answer(one, root, relay)), None):
                if not entry.usable:
                    await entry.changed.wait()
                    continue
                return await self._work(entry, partial(_asked, relay.command, request, arguments))
        return None


def _may_answer(entry: Entry, root: AbsPath, relay: Relay) -> bool:
    fits = entry.key.root == root and entry.key.server in relay.to
    return fits and (entry.usable or isinstance(entry.slot, Starting))


async def _asked(command: str, request: str, arguments: Json, session: Session) -> Json:
    """The answer of a session. Of a file that it does not know it has none before it has that file: both check it."""
    path = AbsPath(file) if isinstance(arguments, dict) and isinstance(file := arguments.get("file"), str) else None

    async def ask() -> Json:
        answer = await session.request("workspace/executeCommand", asked)
        return decode(answer, dict[str, Any]).get("body")

    asked = {"command": command, "arguments": [request, arguments]}
    is_open = path is None or session.documents.is_open(path)
    found = await ask()
    if found is not None or is_open or path is None:
        return found
    with anyio.move_on_after(OPENING_SECONDS):
        while not session.documents.is_open(path):
            await session.changed.wait()
    return await ask()


def _is_current(entry: Entry) -> bool:
    inputs = None if entry.session is None else entry.session.inputs
    return inputs is None or inputs.holds()
