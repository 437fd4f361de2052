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
    slot: Slot
    changed: Pulse = field(default_factory=Pulse)
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
    """It has answered at least one request since it was started."""
    leases: set[str] = field(default_factory=set[str])
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
    recipe: "Recipe | None" = None
    """How it was started last."""
    outdated: bool = False
    """The configuration that it was started with does not hold any more."""

    @property
    def usable(self) -> bool:
        """It runs, and its connection has not ended: the pool hears of an end a moment after the connection does."""
        return isinstance(self.slot, Running) and self.session is not None and self.session.failure is None

    def start(self, now: float) -> None:
        self.slot = Starting(now)
        self.life = anyio.CancelScope()
        self.stopping_for = None
        self.outdated = False
        self.healthy = False
        self.starts += 1
        self.changed.notify()

    def mark_running(self, session: Session, now: float) -> None:
        self.session = session
        self.running_since = self.last_used = now
        self._update()
        self.changed.notify()

    def begin(self) -> None:
        """A piece of work starts to use the session."""
        self.works += 1
        self._update()

    def end(self, now: float) -> None:
        self.works -= 1
        self.last_used = now
        self._update()
        self._leave_if_outdated()

    def mark_healthy(self) -> None:
        """A success resets the back-off; the crash window stays, or a server that dies after each answer would loop."""
        self.healthy = True

    def lease(self, lease: str) -> None:
        """A client session asks for this server."""
        self.leases.add(lease)
        self._update()

    def release(self, lease: str) -> None:
        self.leases.discard(lease)
        self._update()

    def set_memory(self, memory_mib: float | None) -> None:
        self.memory_mib = memory_mib
        self.proven = self.healthy and memory_mib is not None
        self._update()

    def stop(self, why: Why) -> None:
        """Begin to stop; the pool's task for this entry walks the ladder."""
        if isinstance(self.slot, Starting | Running):
            self.stopping_for = why
            self.slot = Stopping(why)
            self.life.cancel()
            self.changed.notify()

    def mark_outdated(self, now: float) -> None:
        """Its configuration has changed: stop it, after what it is answering, and remember nothing of it."""
        if isinstance(self.slot, Rested | Broken | Missing):
            self.slot = Rested(Why.CONFIG, now, len(self.leases))
            self.changed.notify()
            return
        self.outdated = True
        self._update()
        self._leave_if_outdated()

    def mark_stopped(self, now: float) -> None:
        """It was stopped on purpose and is gone."""
        self._drop_session()
        self.slot = Rested(self.stopping_for or Why.ASKED, now, len(self.leases))
        self.changed.notify()

    def mark_failed(self, failure: Failure, *, now: float, jitter: float, fingerprint: str) -> None:
        self._drop_session()
        if failure.code is Code.SERVER_MISSING:
            self.slot = Missing(failure, fingerprint, now, len(self.leases))
        else:
            self.breakage = setback(self.breakage, failure, healthy=self.healthy, now=now, jitter=jitter)
            self.witnesses = frozenset(self.leases)
            self.slot = replace(self.breakage, leases=len(self.leases), witnesses=len(self.witnesses))
        self.changed.notify()

    def forgive(self, now: float) -> None:
        """Forget past failures: the configuration changed, or a person asked for a restart."""
        self.breakage = None
        if isinstance(self.slot, Broken | Missing):
            self.slot = Rested(Why.ASKED, now, len(self.leases))
            self.changed.notify()

    def _drop_session(self) -> None:
        if self.session is not None:
            self.documents = self.session.documents
            self.session = None
        self.sidecar = None
        self.memory_mib = None
        self.proven = False

    def _update(self) -> None:
        """The planner's view follows the facts."""
        if isinstance(self.slot, Broken):
            still = len(self.witnesses & self.leases)
            self.slot = replace(self.slot, leases=len(self.leases), witnesses=still)
        elif isinstance(self.slot, Rested | Missing):
            self.slot = replace(self.slot, leases=len(self.leases))
        elif self.session is not None and not isinstance(self.slot, Stopping):
            facts = (self.running_since, self.last_used, self.works, len(self.leases), self.memory_mib, self.outdated)
            self.slot = Running(*facts, self.proven, self.process)

    def _leave_if_outdated(self) -> None:
        if self.outdated and isinstance(self.slot, Running) and not self.works:
            self.stop(Why.CONFIG)


class Recipe(Struct, frozen=True):
    """How to make the session of a key: read only when a start is really needed."""

    key: Key
    options: Callable[[], SessionOptions]
    """May raise `Unavailable` or `ServerFailed` with `server_missing`."""
    restore: Restore
    fingerprint: str = ""
    sidecar: SidecarRequest = lambda: None
