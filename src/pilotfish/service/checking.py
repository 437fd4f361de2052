"""One file, one server: send the text, and wait until what the server says is about it.

`feedback.settle` decides; this gathers the facts, asks what can be asked, and waits for the session's pulse.
Nothing is polled, and nothing is waited for longer than the deadline.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Scene, ServerFailed
from pilotfish.feedback.learned import heard_late, observed, traits_of
from pilotfish.feedback.settle import Asked, Behind, Facts, Fresh, GaveUp, Published, Verdict, Waiting, verdict
from pilotfish.host.tasks import owned_tasks
from pilotfish.model import Diagnostic
from pilotfish.protocol.diagnostics import Pull, Push, Report, diagnostics_of, merged
from pilotfish.protocol.uris import uri_of
from pilotfish.servers.spec import Freshness, Phases
from pilotfish.servers.spec import Pull as Offer
from pilotfish.service.on_demand import ON_DEMAND, ask_on_demand
from pilotfish.service.standing import Answer, FileAtHand, Reach, Settled, Standing

REGISTRATION_SECONDS = 5.0
"""How long after its start a server may still register what the catalogue says that it registers: the slowest need one
second. Later it is one that does not, and its publishes must do."""

ASK_AGAIN_SECONDS = 0.02
"""Between an answer that may be old and the next try, so that a server which always says so is not flooded."""


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


class Check:
    """One check at work."""

    def __init__(self, session: Session, standing: Standing, freshness: Freshness, file: FileAtHand) -> None:
        self._session = session
        self._standing = standing
        self._freshness = freshness
        self._file = file
        self._asked = Asked.IMPOSSIBLE
        self._answer: Answer | None = None
        self._barrier = Behind.NONE
        self._publishes: list[float] = []

    async def run(self, deadline: float) -> Outcome:
        """Raises what the session raises when the server dies or fails."""
        with self._standing.using(self._file.path):
            await self._begin()
            settled = self._standing.settled.get(self._file.path)
            if settled is not None and self._stands(settled):
                return self._outcome(Fresh(), settled.reports)
            async with owned_tasks() as tasks:
                tasks.start_soon(self._inquire, deadline)
                said = await self._verdict(deadline)
                # Nothing may come between the verdict and what it is about.
                reports = self._counting()
                self._learn(said, reports)
                outcome = self._outcome(said, reports)
                tasks.cancel_scope.cancel()
            return outcome

    async def _begin(self) -> None:
        standing, session = self._standing, self._session
        self._started = anyio.current_time()
        self._arrivals = session.reports.arrivals
        self._finished_before = session.readiness.ended
        self._learn_late()
        before = standing.changes
        self._sent = standing.send(session, self._file)
        self._sends = standing.changes != before
        if not self._sends:
            # Others of the same patch may be on their way, and what was said before they are sent is no answer.
            await anyio.lowlevel.checkpoint()
        self._changes = standing.changes
        self._disturbed_at = standing.changed_at if standing.changes > self._sent.number else None
        self._stirred_at = standing.changed_before
        self._asked = self._prospect()
        if self._freshness.barrier is not None and session.supports(self._freshness.barrier, self._file.path):
            self._barrier = Behind.PENDING

    def _prospect(self) -> Asked:
        """How our question stands before it is asked: it counts from the first moment, or a publish would."""
        if self._can_be_pulled() or self._can_be_commanded():
            return Asked.PENDING
        expected = self._freshness.pull is Offer.DYNAMIC and self._registration_left() > 0
        return Asked.EXPECTED if expected else Asked.IMPOSSIBLE

    def _stands(self, settled: Settled) -> bool:
        """The last fresh verdict holds: nothing was sent since, and nothing that counts was said."""
        push = self._session.reports.of(self._file.path).get(Push())
        moved = push is not None and push is not settled.push and self._is_current(push)
        return settled.reach.covers(self._needed()) and not moved

    def _needed(self) -> Reach:
        """What an answer must take into account: all that was sent when the check began."""
        return Reach(self._sent.version, self._changes, self._session.reports.refreshes)

    # --- Asking ------------------------------------------------------------------------------------------------------

    async def _inquire(self, deadline: float) -> None:
        """Ask for the diagnostics, in the best way that the server offers by now."""
        await self._until(self._is_ready)
        if self._asked is Asked.EXPECTED:
            with anyio.move_on_after(self._registration_left()):
                await self._until(self._can_be_pulled)
            self._turn(Asked.IMPOSSIBLE)
        if not self._can_be_pulled():
            if self._can_be_commanded():
                await self._ask(self._command, deadline)
                return
            if self._barrier is Behind.PENDING:
                await self._pass_barrier(deadline)
            # Who registers it whenever it likes is asked from then on.
            await self._until(self._can_be_pulled)
        await self._ask(self._pull, deadline)

    async def _ask(self, question: Callable[[float], Awaitable[tuple[Report, ...] | None]], deadline: float) -> None:
        """Ask until there is an answer that nothing sent or said meanwhile can have made old."""
        self._turn(Asked.PENDING)
        async with self._standing.turn(self._file.path):
            while (answer := self._kept_answer()) is None:
                await self._until(self._is_ready)
                reach = self._reach()
                reports = await question(max(0.001, deadline - anyio.current_time()))
                if reports is not None and self._is_ready():
                    self._standing.answers[self._file.path] = Answer(reach, reports)
                if self._kept_answer() is None:
                    await anyio.sleep(ASK_AGAIN_SECONDS)  # noqa: TID251 -- see there
        self._answer = answer
        self._turn(Asked.ANSWERED)

    def _kept_answer(self) -> Answer | None:
        """The last answer about this file, whoever asked, if it takes everything into account that it must."""
        answer = self._standing.answers.get(self._file.path)
        return answer if answer is not None and answer.reach.covers(self._needed()) else None

    def _turn(self, asked: Asked) -> None:
        self._asked = asked
        self._session.changed.beat()

    def _reach(self) -> Reach:
        """What a question that is asked now takes into account."""
        reports, version = self._session.reports, self._session.documents.version(self._file.path)
        return Reach(version, self._standing.changes, reports.refreshes)

    async def _pull(self, timeout: float) -> tuple[Report, ...] | None:
        """One answer of every provider; None when they may be of different states."""
        session, path, before = self._session, self._file.path, self._reach()
        identifiers = session.capabilities.pull_identifiers(path, session.documents.language_id(path))
        told = await session.pull(path, timeout=timeout)
        if not identifiers or not self._is_one_state(before, len(identifiers)):
            return None
        if told.count(path) < len(identifiers):
            raise self._unreadable("textDocument/diagnostic")
        channels = session.reports.of(path)
        reports = tuple(report for name in identifiers if (report := channels.get(Pull(name))) is not None)
        # A pull of another file may tell about this one, too, and does not say of which text.
        certain = [report for report in reports if report.version is not None and report.version >= before.version]
        return reports if len(certain) == len(identifiers) else None

    async def _command(self, timeout: float) -> tuple[Report, ...] | None:
        session, path, before = self._session, self._file.path, self._reach()
        on_demand = self._freshness.on_demand
        assert on_demand is not None
        report = await ask_on_demand(session, on_demand, path, timeout=timeout)
        if not self._is_one_state(before, len(on_demand.requests)):
            return None
        session.reports.pulled(path, ON_DEMAND, before.version, report, anyio.current_time())
        return (session.reports.of(path)[Pull(ON_DEMAND)],)

    def _is_one_state(self, before: Reach, questions: int) -> bool:
        """Several answers of which each is right may be clean together although no state of the files ever was."""
        now = self._reach()
        return now.version == before.version and (questions == 1 or now.changes == before.changes)

    async def _pass_barrier(self, deadline: float) -> None:
        params = {"textDocument": {"uri": uri_of(self._file.path)}}
        timeout = max(0.001, deadline - anyio.current_time())
        assert self._freshness.barrier is not None
        await self._session.request(self._freshness.barrier, params, about=self._file.path, timeout=timeout)
        self._barrier = Behind.PASSED
        self._session.changed.beat()

    # --- Waiting -----------------------------------------------------------------------------------------------------

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

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._session.changed.wait()

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
        settled = self._standing.settled.get(self._file.path)
        was_settled = settled is not None and settled.reach.version == self._sent.version
        return Facts(
            version=self._sent.version,
            sent_at=self._sent.at,
            ready=self._is_ready(),
            working=readiness.busy,
            finished=readiness.ended > self._finished_before,
            asked=self._asked,
            published=None if push is None else Published(push.version, push.at),
            barrier=self._barrier,
            disturbed_at=self._disturbed_at,
            stirred_at=max(settled.at, self._stirred_at) if settled and was_settled else float("inf"),
        )

    def _is_ready(self) -> bool:
        readiness = self._session.readiness
        if self._freshness.phases is Phases.UNTIL_QUIESCENT:
            return readiness.quiescent is True
        return self._standing.answered or not readiness.busy

    def _can_be_pulled(self) -> bool:
        return self._session.supports("textDocument/diagnostic", self._file.path)

    def _can_be_commanded(self) -> bool:
        return self._freshness.on_demand is not None and self._session.supports("workspace/executeCommand")

    def _registration_left(self) -> float:
        return max(0.0, self._standing.since + REGISTRATION_SECONDS - anyio.current_time())

    def _watch(self) -> None:
        push = self._session.reports.of(self._file.path).get(Push())
        if push is not None and push.arrival > self._arrivals and push.at > self._sent.at:
            self._arrivals = push.arrival
            self._publishes.append(push.at)

    def _learn(self, said: Fresh | GaveUp, reports: tuple[Report, ...]) -> None:
        if isinstance(said, GaveUp):
            return
        standing, push = self._standing, self._push()
        if not said.assumed:
            standing.answered = True
            reach = self._answer.reach if self._answer else self._needed()
            at = max((report.at for report in reports), default=self._sent.at)
            standing.settled[self._file.path] = Settled(reach, reports, push, at)
        if self._sends and self._asked is Asked.IMPOSSIBLE and self._publishes:
            standing.habits = observed(standing.habits, sent_at=self._sent.at, publishes=tuple(self._publishes))

    def _learn_late(self) -> None:
        """A publish without a version after the file had settled, with nothing sent in between, was due before."""
        settled = self._standing.settled.get(self._file.path)
        push = self._session.reports.of(self._file.path).get(Push())
        if settled is None or settled.push is None or push is None or push.version is not None:
            return
        if push is not settled.push and settled.reach.changes == self._standing.changes:
            self._standing.habits = heard_late(self._standing.habits, push.at - settled.push.at)

    # --- Answering ---------------------------------------------------------------------------------------------------

    def _push(self) -> Report | None:
        """The last publish that is not about an older text than one which has settled."""
        push = self._session.reports.of(self._file.path).get(Push())
        settled = self._standing.settled.get(self._file.path)
        if settled is None or settled.push is None or settled.reach.version != self._sent.version:
            return push
        return push if push is not None and self._is_current(push) else settled.push

    def _is_current(self, push: Report) -> bool:
        return push.version is None or push.version >= self._sent.version

    def _counting(self) -> tuple[Report, ...]:
        """The reports that are about this text: of a server that was asked, a push counts only if it says so."""
        push = self._push()
        if self._answer is None:
            return (push,) if push is not None else ()
        counts = push is not None and push.version is not None and push.version >= self._sent.version
        return (*self._answer.reports, push) if push is not None and counts else self._answer.reports

    def _outcome(self, said: Fresh | GaveUp, reports: tuple[Report, ...]) -> Outcome:
        server, seconds = self._session.server, anyio.current_time() - self._started
        if isinstance(said, GaveUp):
            return Outcome(server, None, why=said.why, seconds=seconds)
        text, encoding = self._session.documents.text(self._file.path), self._session.encoding
        lists = [diagnostics_of(report, text=text, encoding=encoding, server=server) for report in reports]
        return Outcome(
            server,
            merged(lists),
            assumed=said.assumed,
            why="the server gave no sign that it was done" if said.assumed else None,
            seconds=seconds,
            skipped=sum(report.skipped for report in reports),
        )

    def _unreadable(self, method: str) -> ServerFailed:
        server = self._session.server
        message = f"{server} gave an answer to {method} that cannot be read"
        return ServerFailed(Code.PROTOCOL_ERROR, message, scene=Scene(server=server, root=self._session.root))


def no_verdict(server: str, failure: Failure, seconds: float) -> Outcome:
    timed_out = failure.code is Code.REQUEST_TIMEOUT
    why = "the server has not answered in time" if timed_out else failure.message
    return Outcome(server, None, why=why, failure=failure, seconds=seconds)
