"""One file, one server: send the text, and wait until what the server says is about it.

`feedback.settle` decides; this gathers the facts, asks what can be asked, and waits for the session's pulse.
Nothing is polled, and nothing is waited for longer than the deadline.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure
from pilotfish.feedback.learned import Habits, observed, traits_of
from pilotfish.feedback.settle import Asked, Behind, Facts, Fresh, GaveUp, Published, Verdict, Waiting, verdict
from pilotfish.host.tasks import owned_tasks
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.protocol.diagnostics import Pull, Push, Report, diagnostics_of, merged
from pilotfish.protocol.uris import uri_of
from pilotfish.servers.spec import Freshness, Phases
from pilotfish.servers.spec import Pull as Offer
from pilotfish.service.on_demand import ON_DEMAND, ask_on_demand


@dataclass(frozen=True, slots=True)
class FileAtHand:
    """A file to check. `saved` says that this text is what is on disk."""

    path: AbsPath
    language_id: str
    text: str
    saved: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one server said about one file. Without `diagnostics` there is no verdict, and `why` says so."""

    server: str
    diagnostics: tuple[Diagnostic, ...] | None
    assumed: bool = False
    why: str | None = None
    failure: Failure | None = None
    seconds: float = 0.0
    skipped: int = 0
    """Items that were not diagnostics: the list is incomplete."""

    @property
    def is_fresh(self) -> bool:
        return self.diagnostics is not None and not self.assumed and not self.skipped


@dataclass(slots=True)
class Standing:
    """What we know about our own dealings with one session, beyond what the session keeps."""

    answered: bool = False
    """It has settled once: work that it tells of now is no longer its loading."""
    settled: dict[AbsPath, tuple[int, int]] = field(default_factory=dict[AbsPath, tuple[int, int]])
    """File → the version and the change count at which it was last fresh."""
    changes: int = 0
    """How many texts were sent."""
    changed_at: float = 0.0
    sent_at: dict[AbsPath, float] = field(default_factory=dict[AbsPath, float])
    """When the text that a file has at the server was sent."""
    habits: Habits = field(default_factory=Habits)
    _previewing: anyio.Lock = field(default_factory=anyio.Lock)
    _checks: int = 0
    _no_checks: anyio.Event = field(default_factory=anyio.Event)

    @asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """An ordinary check: many at once, but none while a proposed text is at the server."""
        async with self._previewing:
            self._checks += 1
        try:
            yield
        finally:
            self._checks -= 1
            if not self._checks:
                self._no_checks.set()
                self._no_checks = anyio.Event()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """A preview: after the checks under way, and before any other."""
        async with self._previewing:
            while self._checks:
                await self._no_checks.wait()
            yield


class Check:
    """One check at work."""

    def __init__(self, session: Session, standing: Standing, freshness: Freshness, file: FileAtHand) -> None:
        self._session = session
        self._standing = standing
        self._freshness = freshness
        self._file = file
        self._asked = Asked.IMPOSSIBLE
        self._barrier = Behind.NONE
        self._started = anyio.current_time()
        self._publishes: list[float] = []

    async def run(self, deadline: float) -> Outcome:
        """Raises what the session raises when the server dies or fails."""
        self._send()
        if self._stands():
            return self._outcome(Fresh())
        self._finished_before = self._session.readiness.ended
        async with owned_tasks() as tasks:
            tasks.start_soon(self._inquire, deadline)
            said = await self._verdict(deadline)
            tasks.cancel_scope.cancel()
        self._learn(said)
        return self._outcome(said)

    def _send(self) -> None:
        documents, path = self._session.documents, self._file.path
        before = documents.version(path) if documents.is_open(path) else None
        arrival = self._push()
        self._arrival_before = arrival.arrival if arrival else 0
        self._version = self._session.sync(path, self._file.language_id, self._file.text)
        if self._version != before:
            now = anyio.current_time()
            self._standing.changes += 1
            self._standing.changed_at = self._standing.sent_at[path] = now
            if self._file.saved:
                self._session.save(path)
        self._sent_at = self._standing.sent_at.get(path, 0.0)

    def _stands(self) -> bool:
        """The text is the one that was settled last, and nothing was sent since."""
        return self._standing.settled.get(self._file.path) == (self._version, self._standing.changes)

    # --- Asking --------------------------------------------------------------------------------------------------

    async def _inquire(self, deadline: float) -> None:
        """Ask for the diagnostics, in the best way that the server offers by now."""
        while not self._ready():
            await self._session.changed.wait()
        while not self._session.supports("textDocument/diagnostic", self._file.path):
            if self._freshness.on_demand is not None:
                await self._ask_on_demand(deadline)
                return
            if self._freshness.pull is not Offer.DYNAMIC:
                await self._pass_barrier(deadline)
                return
            self._asked = Asked.EXPECTED
            await self._session.changed.wait()
        await self._pull(deadline)

    async def _pull(self, deadline: float) -> None:
        """Pull until no refresh came in between: an answer from before one may be old."""
        while True:
            self._asked = Asked.PENDING
            refreshes = self._session.reports.refreshes
            await self._session.pull(self._file.path, timeout=_left(deadline))
            if self._session.reports.refreshes == refreshes:
                break
        self._asked = Asked.ANSWERED
        self._session.changed.beat()

    async def _ask_on_demand(self, deadline: float) -> None:
        on_demand = self._freshness.on_demand
        if on_demand is None or not self._session.supports("workspace/executeCommand"):
            return
        self._asked = Asked.PENDING
        report = await ask_on_demand(self._session, on_demand, self._file.path, timeout=_left(deadline))
        self._session.reports.pulled(self._file.path, ON_DEMAND, self._version, report, anyio.current_time())
        self._asked = Asked.ANSWERED
        self._session.changed.beat()

    async def _pass_barrier(self, deadline: float) -> None:
        method = self._freshness.barrier
        if method is None or not self._session.supports(method, self._file.path):
            return
        self._barrier = Behind.PENDING
        params = {"textDocument": {"uri": uri_of(self._file.path)}}
        await self._session.request(method, params, about=self._file.path, timeout=_left(deadline))
        self._barrier = Behind.PASSED
        self._session.changed.beat()

    # --- Waiting -------------------------------------------------------------------------------------------------

    async def _verdict(self, deadline: float) -> Fresh | GaveUp:
        while True:
            now = anyio.current_time()
            said = self._said(now, deadline)
            if not isinstance(said, Waiting):
                return said
            with anyio.move_on_after(max(0.0, said.until - now)):
                await self._session.changed.wait()
            if self._session.failure is not None:
                raise self._session.failure
            self._watch()

    def _said(self, now: float, deadline: float) -> Verdict:
        refused = next((word for word in self._freshness.cannot_check if self._complains(word)), None)
        if refused is not None:
            return GaveUp(f"the server says that it does not check: {refused}")
        traits = traits_of(self._freshness, self._standing.habits)
        return verdict(self._facts(), traits, now=now, deadline=deadline)

    def _complains(self, word: str) -> bool:
        return any(word in message for message in self._session.messages())

    def _facts(self) -> Facts:
        readiness, push = self._session.readiness, self._push()
        disturbed = self._standing.changed_at if self._standing.changed_at > self._sent_at else 0.0
        return Facts(
            version=self._version,
            sent_at=self._sent_at,
            ready=self._ready(),
            working=readiness.busy,
            finished=readiness.ended > self._finished_before,
            asked=self._asked,
            published=None if push is None else Published(push.version, push.at),
            barrier=self._barrier,
            disturbed_at=disturbed,
        )

    def _ready(self) -> bool:
        readiness = self._session.readiness
        if self._freshness.phases is Phases.UNTIL_QUIESCENT:
            return readiness.quiescent is True
        return self._standing.answered or not readiness.busy

    def _watch(self) -> None:
        push = self._push()
        if push is not None and push.arrival > self._arrival_before and push.at > self._sent_at:
            self._arrival_before = push.arrival
            self._publishes.append(push.at)

    def _learn(self, said: Fresh | GaveUp) -> None:
        if isinstance(said, Fresh) and not said.assumed:
            self._standing.answered = True
            self._standing.settled[self._file.path] = (self._version, self._standing.changes)
        if self._asked is Asked.IMPOSSIBLE and self._publishes:
            habits = observed(self._standing.habits, sent_at=self._sent_at, publishes=tuple(self._publishes))
            self._standing.habits = habits

    # --- Answering -----------------------------------------------------------------------------------------------

    def _push(self) -> Report | None:
        return self._session.reports.of(self._file.path).get(Push())

    def _outcome(self, said: Fresh | GaveUp) -> Outcome:
        seconds = anyio.current_time() - self._started
        if isinstance(said, GaveUp):
            return Outcome(self._session.server, None, why=said.why, seconds=seconds)
        reports = self._counting()
        text = self._session.documents.text(self._file.path)
        lists = [
            diagnostics_of(report, text=text, encoding=self._session.encoding, server=self._session.server)
            for report in reports
        ]
        return Outcome(
            self._session.server,
            merged(lists),
            assumed=said.assumed,
            why="the server gave no sign that it was done" if said.assumed else None,
            seconds=seconds,
            skipped=sum(report.skipped for report in reports),
        )

    def _counting(self) -> list[Report]:
        """The reports that are about this text: of a server that was asked, a push counts only if it says so."""
        channels = self._session.reports.of(self._file.path)
        pulled = [report for channel, report in channels.items() if isinstance(channel, Pull)]
        push = channels.get(Push())
        if not pulled:
            return [push] if push else []
        if push is not None and push.version is not None and push.version >= self._version:
            pulled.append(push)
        return pulled


def _left(deadline: float) -> float:
    return max(0.001, deadline - anyio.current_time())


def no_verdict(server: str, failure: Failure, seconds: float) -> Outcome:
    timed_out = failure.code is Code.REQUEST_TIMEOUT
    why = "the server has not answered in time" if timed_out else failure.message
    return Outcome(server, None, why=why, failure=failure, seconds=seconds)
