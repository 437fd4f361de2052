"""One slot of the pool at work: the only writer of what the planner sees of it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure
from pilotfish.pool.plan import Broken, Key, Missing, Rested, Running, Slot, Starting, Stopping, Why, setback
from pilotfish.pool.sidecar import Sidecar, SidecarRequest
from pilotfish.protocol.documents import Documents
from pilotfish.servers.inputs import InputEvidence

Restore = Callable[[Session, Documents | None], Awaitable[None]]
"""Runs after a start, before anyone asks: given the documents of the session before, it opens them again."""


class Entry(Struct):
    """The life of one key. `changed` is notified of every move, so that waiting tasks decide again."""

    key: Key
    state: Slot
    """Its numbers of client sessions, and those of a running server, are in `slot`."""
    recipe: "Recipe"
    """How it was started last."""
    changed: Pulse
    session: Session | None = None
    inputs: InputEvidence | None = None
    """What the session that was started last goes by: known before it runs."""
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Waits until the server sees this worktree, and keeps it so."""
    process: str = ""
    """The same for all worktrees that share its process."""
    sidecar: Sidecar | None = None
    """What runs beside the session, if anything is to."""
    documents: Documents | None = None
    """What was open when the last session ended; the next one opens it again."""
    breakage: Broken | None = None
    """The last failure, kept while it runs again: its crash window outlives a restart."""
    healthy: bool = False
    """It has answered at least one request since it was started, which resets the back-off; the crash window stays, or
    a server that dies after each answer would loop."""
    leases: set[str] = field(default_factory=set[str])
    """The client sessions that ask for this server."""
    witnesses: frozenset[str] = frozenset()
    """The leases at the last failure."""
    works: int = 0
    """Pieces of work in flight."""
    last_used: float = 0.0
    running_since: float = 0.0
    starts: int = 0
    memory_mib: float | None = None
    """Of its process, with all that is below it."""
    proven: bool = False
    """It was measured after an answer."""
    life: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    stopping_for: Why | None = None
    outdated: bool = False
    """The configuration that it was started with does not hold any more."""

    @property
    def usable(self) -> bool:
        """It runs, and its connection has not ended: the pool hears of an end a moment after the connection does."""
        return isinstance(self.state, Running) and self.session is not None and self.session.failure is None

    @property
    def slot(self) -> Slot:
        leases = len(self.leases)
        match self.state:
            case Running():
                facts = (self.running_since, self.last_used, self.works, leases, self.memory_mib, self.outdated)
                return Running(*facts, self.proven, self.process)
            case Broken() as broken:
                return replace(broken, leases=leases, witnesses=len(self.witnesses & self.leases))
            case Rested() | Missing() as resting:
                return replace(resting, leases=leases)
            case other:
                return other

    def move(self, state: Slot) -> None:
        self.state = state
        self.changed.notify()

    def start(self, now: float) -> None:
        self.life = anyio.CancelScope()
        self.stopping_for = None
        self.outdated = self.healthy = False
        self.starts += 1
        self.move(Starting(now))

    def run(self, session: Session, now: float) -> None:
        self.session = session
        self.running_since = self.last_used = now
        self.move(Running(now, now))

    def stop(self, why: Why) -> None:
        """Begin to stop; the pool's task for this entry walks the ladder."""
        if isinstance(self.state, Starting | Running):
            self.stopping_for = why
            self.life.cancel()
            self.move(Stopping(why))

    def end_work(self, now: float) -> None:
        self.works -= 1
        self.last_used = now
        self._leave_if_outdated()

    def mark_outdated(self, now: float) -> None:
        """Its configuration has changed: stop it, after what it is answering, and remember nothing of it."""
        if isinstance(self.state, Rested | Broken | Missing):
            self.move(Rested(Why.CONFIG, now))
        else:
            self.outdated = True
            self._leave_if_outdated()

    def mark_stopped(self, now: float) -> None:
        """It was stopped on purpose and is gone."""
        self._drop_session()
        self.move(Rested(self.stopping_for or Why.ASKED, now))

    def mark_failed(self, failure: Failure, now: float, jitter: float) -> None:
        self._drop_session()
        if failure.code is Code.SERVER_MISSING:
            self.move(Missing(failure, self.recipe.fingerprint, now))
        else:
            self.breakage = setback(self.breakage, failure, healthy=self.healthy, now=now, jitter=jitter)
            self.witnesses = frozenset(self.leases)
            self.move(self.breakage)

    def forgive(self, now: float) -> None:
        """Forget past failures: the configuration changed, or a person asked for a restart."""
        self.breakage = None
        if isinstance(self.state, Broken | Missing):
            self.move(Rested(Why.ASKED, now))

    def _drop_session(self) -> None:
        if self.session is not None:
            self.documents = self.session.documents
        self.session = self.sidecar = self.memory_mib = None
        self.proven = False

    def _leave_if_outdated(self) -> None:
        if self.outdated and isinstance(self.state, Running) and not self.works:
            self.stop(Why.CONFIG)


class Recipe(Struct, frozen=True):
    """How to make the session of a key: read only when a start is really needed."""

    key: Key
    options: Callable[[], SessionOptions]
    """May raise `Unavailable` or `ServerFailed` with `server_missing`."""
    restore: Restore
    fingerprint: str = ""
    sidecar: SidecarRequest = lambda: None
