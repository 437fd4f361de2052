"""The servers that run, shared by all who ask. `plan` decides; this carries it out.

Each session lives in a task of the pool, never in that of a request: a cancelled request harms no other.
A key has one entry from the first moment, so a hundred demands at once make one start.

What time alone changes (servers that no client uses, that use too much, or that hang) is not polled: `_watch` sleeps
until the plan says that something may be due, and a question moves that forward only when it is due sooner than
anything else.
"""

import logging
import math
import random
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from pilotfish.client.connection import Tap
from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session
from pilotfish.config.schema import RestartPolicy
from pilotfish.errors import Bug, Code, Failure, Unavailable
from pilotfish.model import AbsPath
from pilotfish.pool.counters import Counters
from pilotfish.pool.entry import Entry, Recipe
from pilotfish.pool.mirror import Unshareable
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
    Running,
    Slot,
    Start,
    Starting,
    Stopping,
    Wait,
    WaitForRoom,
    Why,
    admission,
    forgettable,
    next_upkeep,
    of_process,
    room_to_spare,
    upkeep,
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

SUSPICION_SECONDS = 3.0
"""A request of this age, to a server that has sent nothing since, makes us check whether the server works at all."""

SIGN_OF_LIFE_SECONDS = 2.0
"""How long a suspected server may use no processor time before it counts as hung."""

IDLE_CPU_SECONDS = 0.01
"""Less processor time than this over `SIGN_OF_LIFE_SECONDS` counts as idle: timers alone cost that much."""

MEASURE_SECONDS = 30.0
"""How often the memory of running servers is measured while a budget is set."""


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
        self._vitals = vitals
        self._left = left
        """Called with a root that no client session uses any more and of which no server is remembered."""
        self._jitter = jitter
        self._entries: dict[Key, Entry] = {}
        self.taps: defaultdict[str, Tap] = defaultdict(Tap)
        """Where to listen to the traffic of a server, in all its roots."""
        self._served: Counter[str] = Counter()
        """Client sessions that wait for something, each as often as it does."""
        self._tasks: TaskGroup | None = None
        self._sharing = Sharing(spawn, is_wanted=self.limits.share_worktrees)
        self._is_budgeted = self.limits.memory_mib is not None or self.limits.memory_mib_per_server is not None
        self._sizes: dict[str, float] = {}
        """The largest that a server of each id was, in MiB: what another one is expected to need."""
        self._woken = Pulse()
        self._next_look = math.inf
        self._suspects: dict[Key, tuple[float, float]] = {}
        """Since when a server is suspected, and the processor time that it had used by then."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Pool"]:
        """The pool's life; at its end every server is stopped, all side by side."""
        async with owned_tasks() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._watch)
            try:
                yield self
            finally:
                self._tasks = None
                with anyio.move_on_after(STOP_ALL_SECONDS, shield=True):
                    await self.stop_all()
                tasks.cancel_scope.cancel()

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
        return room_to_spare(self._slots(), self.limits)

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
            entry.leases.discard(lease)
        self._woken.notify()

    async def stop(self, key: Key, why: Why) -> None:
        """Stop one server and wait until it is gone."""
        if (entry := self._entries.get(key)) is not None:
            entry.stop(why)
            while isinstance(entry.state, Stopping):
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
        self._woken.notify()

    async def stop_all(self) -> None:
        async with owned_tasks() as tasks:
            for key in self._entries:
                tasks.start_soon(self.stop, key, Why.ASKED)

    def forgive(self, key: Key) -> None:
        if key in self._entries:
            self._entries[key].forgive(current_time())
            self._woken.notify()

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
        entry.works += 1
        if current_time() + SUSPICION_SECONDS < self._next_look:
            self._woken.notify()
        try:
            async with entry.turn():
                result = await work(session)
            entry.healthy = True
            if self._is_budgeted and not entry.proven:
                # Before it counts as idle: who waits for room would stop it instead of learning how small it is.
                await self._measure(entry)
        except Unshareable as why:
            logger.info("shares no more key=%s why=%s", entry.key, why)
            entry.stop(Why.INPUTS)
            raise Unavailable(Code.SHUTTING_DOWN, f"{entry.key.server} is started for this worktree alone") from why
        finally:
            entry.end_work(current_time())
            if not entry.works:
                self._freed.notify()
        return result

    def _lease(self, entry: Entry, lease: str) -> None:
        """A client that asks for a key has left the server of its older configuration; unused, that one stops."""
        if lease in entry.leases:
            return
        for other in self._entries.values():
            same = (other.key.server, other.key.root) == (entry.key.server, entry.key.root) and other is not entry
            if same and lease in other.leases:
                other.leases.discard(lease)
                if not other.leases and not other.works:
                    other.stop(Why.CONFIG)
        entry.leases.add(lease)

    async def _admit(self, recipe: Recipe, demand: Demand, lease: str) -> Entry:
        """Wait until the key has a session; the entry then has one without a wait in between."""
        joined = False
        while True:
            entry = self._entries.get(recipe.key)
            if entry is not None:
                self._lease(entry, lease)
            if joined and entry is not None and isinstance(entry.state, Broken | Missing):
                # The start that we shared failed: its own failure says more than the back-off does.
                raise entry.state.failure
            slots = self._slots()
            match self._decision(recipe, slots, demand):
                case Join() if entry is not None and entry.usable:
                    inputs = None if entry.session is None else entry.session.inputs
                    if inputs is None or inputs.holds():
                        return entry
                    entry.stop(Why.INPUTS)
                case Start():
                    entry, joined = self._start(recipe), True
                    self._lease(entry, lease)
                case Join() | Wait():
                    joined = joined or (entry is not None and isinstance(entry.state, Starting))
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
        decision = admission(recipe.key, slots, demand, self.limits, current_time(), self._sizes)
        if isinstance(decision, Evict | WaitForRoom):
            with suppress(Failure):
                # Where it joins a process that is there, it needs no room.
                return Start() if self._sharing.may_join(recipe.options()) else decision
        return decision

    def _slots(self) -> dict[Key, Slot]:
        return {key: entry.slot for key, entry in self._entries.items()}

    def _required_tasks(self) -> TaskGroup:
        if self._tasks is None:
            raise Bug("the pool is not running")
        return self._tasks

    def _start(self, recipe: Recipe) -> Entry:
        now = current_time()
        entry = self._entries.setdefault(recipe.key, Entry(recipe.key, Starting(now), recipe, Pulse(self.changed)))
        entry.recipe = recipe
        entry.start(now)
        self.counters.starts[recipe.key.server] += 1
        self._required_tasks().start_soon(self._live, entry)
        return entry

    async def _live(self, entry: Entry) -> None:
        """One session from start to end, and what its end means."""
        try:
            failure = await self._session(entry, entry.recipe)
        except Failure as failed:
            failure = failed
        except Exception as error:
            logger.exception("session failed key=%s", entry.key)
            failure = Bug(f"{type(error).__name__}: {error}")
        except BaseException:
            # The pool itself was cancelled: tasks that wait for this server must see that it is gone.
            entry.mark_stopped(current_time())
            raise
        if failure is None or entry.stopping_for is not None:
            logger.info("stopped key=%s why=%s", entry.key, entry.stopping_for)
            entry.mark_stopped(current_time())
        else:
            logger.warning("failed key=%s code=%s message=%s", entry.key, failure.code, failure.message)
            self.counters.failures[entry.key.server, failure.code] += 1
            entry.mark_failed(failure, current_time(), self._jitter())
        self._freed.notify()
        self._woken.notify()

    async def _session(self, entry: Entry, recipe: Recipe) -> Failure | None:
        def is_served() -> bool:
            return not self._served.keys().isdisjoint(entry.leases)

        with entry.life:
            options = recipe.options()
            relayed = partial(self._relayed, options.relay, options.root, options.request_seconds)
            options = replace(options, tap=self.taps[recipe.key.server], relayed=relayed)
            entry.inputs = options.inputs
            async with (
                self._sharing.session(options, self._required_tasks(), is_served) as shared,
                running_sidecar(recipe.sidecar, self._spawn, self._jitter) as entry.sidecar,
            ):
                session, entry.turn, entry.process = shared
                await recipe.restore(session, entry.documents)
                entry.run(session, current_time())
                self._woken.notify()
                return await session.ended()
        return None

    # --- What time alone changes -------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            now = current_time()
            await self._stop_hung(now)
            for entry in tuple(self._entries.values()) if self._is_budgeted else ():
                await self._measure(entry)
            slots = self._slots()
            for retire in upkeep(slots, self.limits, now):
                for key in of_process(retire.key, slots) if retire.why is Why.MEMORY else (retire.key,):
                    self._entries[key].stop(retire.why)
            for key in forgettable(slots, self.limits, now):
                self._forget(key)
            self._next_look = self._due(now)
            with anyio.CancelScope(deadline=self._next_look):
                await self._woken.wait()

    async def _stop_hung(self, now: float) -> None:
        silent = {key: session for key, entry in self._entries.items() if (session := _silent(entry, now)) is not None}
        self._suspects = {key: since for key, since in self._suspects.items() if key in silent}
        for key, session in silent.items():
            used = await self._vitals.cpu_seconds(session.pid)
            if used is None:
                continue
            since, used_then = self._suspects.setdefault(key, (now, used))
            if now - since < SIGN_OF_LIFE_SECONDS:
                continue
            if used - used_then < IDLE_CPU_SECONDS:
                session.fail(f"has neither answered nor used the processor for {now - since + SUSPICION_SECONDS:.0f} s")
            self._suspects[key] = (now, used)

    async def _measure(self, entry: Entry) -> None:
        """Of a server that has answered, the size is what another one of its id is expected to need."""
        if entry.session is None:
            return
        entry.memory_mib = whole = await self._vitals.memory_mib(entry.session.pid)
        entry.proven = entry.healthy and whole is not None
        if entry.proven:
            server = entry.key.server
            self._sizes[server] = max(self._sizes.get(server, 0.0), whole or 0.0)

    def _due(self, now: float) -> float:
        due = [next_upkeep(self._slots(), self.limits)]
        for key, entry in self._entries.items():
            if key in self._suspects:
                due.append(self._suspects[key][0] + SIGN_OF_LIFE_SECONDS)
            elif entry.works:
                due.append(now + SUSPICION_SECONDS)
            if self._is_budgeted and isinstance(entry.state, Running):
                due.append(now + MEASURE_SECONDS)
        return min(due)

    # --- Questions of one server for another -------------------------------------------------------------------------

    async def _relayed(self, relay: Relay | None, root: AbsPath, seconds: float, request: str, arguments: Json) -> Json:
        """What another server answers to one that has questions for it; None where there is no answer in time."""

        def may_answer(entry: Entry) -> bool:
            fits = relay is not None and entry.key.root == root and entry.key.server in relay.to
            return fits and (entry.usable or isinstance(entry.state, Starting))

        with anyio.move_on_after(seconds), suppress(Failure, Malformed):
            while relay and (entry := next(filter(may_answer, self._entries.values()), None)):
                if entry.usable:
                    return await self._work(entry, partial(_asked, relay.command, request, arguments))
                await entry.changed.wait()
        return None


def _silent(entry: Entry, now: float) -> Session | None:
    """The session, if it has owed an answer for long and sent nothing since; reported progress excuses it."""
    session = entry.session
    if session is None or session.readiness.busy or (entry.process and not entry.works):
        # Or what it owes waits for its turn.
        return None
    since = session.connection.silent_since
    return session if since is not None and now - since >= SUSPICION_SECONDS else None


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
