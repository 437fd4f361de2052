"""Asking a server for the diagnostics of one file, in the best way that it offers: pull, command, or a barrier.

An answer counts only if nothing sent or said meanwhile can have made it stale, and if all its parts are of one state.
One question about a file at a time: its answer serves every check that waits.
"""

import re
from collections.abc import Awaitable, Callable, Sequence

import anyio
from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.errors import Code, Scene, ServerFailed
from pilotfish.feedback.settle import Asked, Behind
from pilotfish.model import AbsPath
from pilotfish.protocol.diagnostics import Pull, Report
from pilotfish.protocol.uris import uri_of
from pilotfish.sanitise import sanitised
from pilotfish.servers.spec import Freshness, Phases, PullSupport
from pilotfish.service.diagnostics.ledger import Coverage, Ledger, PullAnswer
from pilotfish.service.diagnostics.on_demand import COMMAND, ON_DEMAND, ask_on_demand, ask_to_publish
from pilotfish.system.clock import current_time

REGISTRATION_SECONDS = 5.0
"""How long after its start a server may register the pull that the catalogue expects: the slowest need one second.
After that its publishes are used."""

LATE_SECONDS = 1.0
"""A request outlives the deadline of its check by this, so that the check ends first and says why."""

ASK_AGAIN_SECONDS = 0.02
"""Between an answer that may be stale and the next try, so that a server is not flooded."""

BEGIN_SECONDS = 1.0
"""How long after a save a server tells that its check has begun; one that does not has none."""

PULL = "textDocument/diagnostic"

LOG_PREFIX = re.compile(r"[\d:.,]+ (?:WARN|WARNING|ERROR|INFO)\b\W*")
"""Time and level, which some servers put before a message, and which say nothing to a reader."""

NEWLINE = "\n"
MAX_WORDS = 300
"""Of a server's own words about why it cannot check; the first line says it, the rest is a stack."""


class Target(Struct, frozen=True):
    """What is asked: a server, its ledger, what the catalogue says of it, and the file."""

    session: Session
    ledger: Ledger
    freshness: Freshness
    path: AbsPath

    def is_ready(self) -> bool:
        """Whether it has loaded: before that, nothing that it says counts."""
        readiness = self.session.readiness
        if self.freshness.phases is Phases.UNTIL_QUIESCENT:
            return readiness.quiescent is True
        if self.freshness.phases is Phases.AFTER_PROGRESS and not readiness.ended:
            return False
        has_loaded = self.ledger.answered or self.ledger.loaded
        return has_loaded or not readiness.busy or not self.freshness.waits_for_work

    def is_well(self) -> bool:
        """Whether it says that it can check: else its answers mean nothing, also to a check that comes later."""
        return self.session.readiness.health != "error"

    def can_be_pulled(self) -> bool:
        return self.freshness.pull is not PullSupport.EMPTY and self.session.supports(PULL, self.path)

    def can_be_commanded(self) -> bool:
        return self.freshness.on_demand is not None and self.session.supports(COMMAND)

    def can_be_asked(self) -> bool:
        """Whether it answers questions about a file, now or soon."""
        return self.can_be_pulled() or self.can_be_commanded() or self.registration_left() > 0

    def registration_left(self) -> float:
        """Seconds for which it may still register the pull that the catalogue expects."""
        left = self.ledger.since + REGISTRATION_SECONDS - current_time()
        return max(0.0, left) if self.freshness.pull is PullSupport.DYNAMIC else 0.0

    def coverage(self) -> Coverage:
        """What a question that is asked now covers."""
        version = self.session.documents.version(self.path)
        return Coverage(version, self.ledger.changes, self.session.reports.refreshes)


def complaint(messages: Sequence[str], signs: Sequence[str]) -> str | None:
    """The first message with one of the signs, and where it only announces the next one, that one's first line."""
    for number, message in enumerate(messages if signs else ()):
        if any(sign in message for sign in signs):
            following = "".join(messages[number + 1 : number + 2])
            more = following if message.rstrip().endswith(":") else ""
            said = LOG_PREFIX.sub("", message.partition(NEWLINE)[0])
            return sanitised(f"{said} {more.partition(NEWLINE)[0]}".strip(), MAX_WORDS)
    return None


class Inquiry:
    """`asked`, `barrier` and `answer` are its state; the session's pulse is notified when they change."""

    def __init__(self, target: Target, needed: Callable[[], Coverage]) -> None:
        """`needed`: what an answer must cover."""
        self._target = target
        self._needed = needed
        self.answer: PullAnswer | None = None
        self.failed: str | None = None
        """The server's own words that the check failed: its answer means nothing."""
        barrier = target.freshness.barrier
        has_barrier = barrier is not None and target.session.supports(barrier, target.path)
        self.barrier = Behind.PENDING if has_barrier else Behind.NONE
        # Pending from the start: a publish that comes before the question must not pass for its answer.
        if target.can_be_pulled() or target.can_be_commanded():
            self.asked = Asked.PENDING
        else:
            is_expected = target.registration_left() or target.freshness.on_demand is not None
            self.asked = Asked.EXPECTED if is_expected else Asked.IMPOSSIBLE

    async def run(self, deadline: float) -> None:
        """Ask until there is an answer; the check cancels this when none can come."""
        target = self._target
        await self._until(target.is_ready)
        if self.asked is Asked.EXPECTED:
            with anyio.move_on_after(target.registration_left()):
                await self._until(target.can_be_pulled)
            self._turn(Asked.IMPOSSIBLE)
        if not target.can_be_pulled():
            if target.can_be_commanded():
                await self._ask(self._command, deadline)
                return
            if self.barrier is Behind.PENDING:
                await self._pass_barrier(deadline)
            # A server may register the pull later: it is asked from then on.
            await self._until(target.can_be_pulled)
        await self._ask(self._pull, deadline)

    async def _ask(self, question: Callable[[float], Awaitable[tuple[Report, ...] | None]], deadline: float) -> None:
        """Ask until there is an answer that nothing sent or said meanwhile can have made stale."""
        target, doubted = self._target, False
        self._turn(Asked.PENDING)
        async with target.ledger.turn(target.path):
            while (answer := self._kept_answer()) is None:
                await self._until(target.is_ready)
                await self._until_checked()
                coverage, ended = target.coverage(), target.session.readiness.ended
                refusals, logged = target.session.readiness.refusals, target.session.inbox.logged
                reports = await question(deadline - current_time() + LATE_SECONDS)
                self.failed = complaint(target.session.messages_since(logged), target.freshness.failed_check)
                if self.failed is not None:
                    target.session.changed.notify()
                    return
                # The answer may predate the end of loading: ask once more. Only once, because some servers report
                # progress around every request.
                # Some say that they cannot check in a message that comes after an empty answer.
                late_word = target.session.readiness.ended != ended or target.freshness.cannot_check
                raced = not (target.ledger.answered or doubted) and bool(late_word)
                doubted |= raced
                # It may have said meanwhile that it does not work, and that it does again.
                raced |= target.session.readiness.refusals != refusals
                if reports is not None and target.is_ready() and target.is_well() and not raced:
                    target.ledger.answers[target.path] = PullAnswer(coverage, reports)
                if self._kept_answer() is None:
                    await anyio.sleep(ASK_AGAIN_SECONDS)  # noqa: TID251 -- see there
        self.answer = answer
        self._turn(Asked.ANSWERED)

    async def _until_checked(self) -> None:
        """Wait for the check that the last save has started, where answers are those of the last one that has ended."""
        token, readiness = self._target.freshness.answers_after, self._target.session.readiness
        if token is None or not readiness.is_behind(token):
            return
        with anyio.move_on_after(BEGIN_SECONDS):
            await self._until(lambda: readiness.has_begun(token) or not readiness.is_behind(token))
        if readiness.has_begun(token):
            await self._until(lambda: not readiness.is_behind(token))

    def _kept_answer(self) -> PullAnswer | None:
        """The last answer about this file, whichever check asked, if it covers what this check needs."""
        answer = self._target.ledger.answers.get(self._target.path)
        return answer if answer is not None and answer.coverage.covers(self._needed()) else None

    async def _pull(self, timeout: float) -> tuple[Report, ...] | None:
        """One report of each provider; None when they may be of different states."""
        session, path, before = self._target.session, self._target.path, self._target.coverage()
        identifiers = session.capabilities.pull_identifiers(path, session.documents.language_id(path))
        first = self._target.freshness.ask_first
        if first is not None and session.supports(first, path):
            await session.request(first, {"textDocument": {"uri": uri_of(path)}}, about=path, timeout=timeout)
        self._target.ledger.note_question()
        told = await session.pull(path, timeout=timeout)
        if not identifiers or not await self._is_one_state(before, len(identifiers)):
            return None
        if told.count(path) < len(identifiers):
            message = f"{session.server} sent a malformed answer to {PULL}"
            raise ServerFailed(Code.PROTOCOL_ERROR, message, scene=Scene(server=session.server, root=session.root))
        channels = session.reports.of(path)
        reports = tuple(report for name in identifiers if (report := channels.get(Pull(name))) is not None)
        # A pull of another file may report on this one, too, without a version.
        certain = [report for report in reports if report.version is not None and report.version >= before.version]
        if len(certain) == len(identifiers) and self._target.freshness.keeps_findings:
            return None if self._target.ledger.forgets(session, path, reports) else reports
        return reports if len(certain) == len(identifiers) else None

    async def _command(self, timeout: float) -> tuple[Report, ...] | None:
        session, path, on_demand = self._target.session, self._target.path, self._target.freshness.on_demand
        assert on_demand is not None
        async with self._target.ledger.commanding(session):
            before = self._target.coverage()
            if on_demand.shape is None:
                push = await ask_to_publish(session, on_demand, path, timeout=timeout)
                return (push,) if push is not None and await self._is_one_state(before, 1) else None
            report = await ask_on_demand(session, on_demand, path, timeout=timeout)
        if not await self._is_one_state(before, len(on_demand.requests)):
            return None
        session.reports.pulled(path, ON_DEMAND, before.version, report, current_time())
        return (session.reports.of(path)[Pull(ON_DEMAND)],)

    async def _is_one_state(self, before: Coverage, questions: int) -> bool:
        if self._target.coverage().version != before.version:
            return False
        return questions == 1 or await self._target.ledger.is_as_before(before.changes)

    async def _pass_barrier(self, deadline: float) -> None:
        session, path, method = self._target.session, self._target.path, self._target.freshness.barrier
        assert method is not None
        params = {"textDocument": {"uri": uri_of(path)}}
        await session.request(method, params, about=path, timeout=deadline - current_time() + LATE_SECONDS)
        self.barrier = Behind.PASSED
        session.changed.notify()

    def _turn(self, asked: Asked) -> None:
        self.asked = asked
        self._target.session.changed.notify()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._target.session.changed.wait()
