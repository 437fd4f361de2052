"""One check of one file by one server: send the text, and wait until the server's diagnostics are about that text.

`feedback.settle` decides; this gathers the facts and waits for the session's pulse, while `inquiry` asks the server.
Nothing is polled, and no wait is longer than the deadline.
"""

import os
import re
from itertools import islice
from math import inf

import anyio
import anyio.lowlevel

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Scene, ServerFailed
from pilotfish.feedback.settle import (
    Asked,
    Behind,
    Facts,
    Fresh,
    GaveUp,
    Published,
    Verdict,
    Waiting,
    heard_late,
    observed,
    traits_of,
    unheard,
    verdict,
)
from pilotfish.paths import is_inside
from pilotfish.protocol.diagnostics import Push, Report, as_compiled, diagnostics_of, merged
from pilotfish.sanitise import sanitised
from pilotfish.servers.inputs import MAX_NAMED, MAX_SEARCHED
from pilotfish.servers.spec import Freshness
from pilotfish.service.diagnostics.inquiry import LATE_SECONDS, MAX_WORDS, Inquiry, Target, complaint
from pilotfish.service.diagnostics.ledger import Coverage, FileToSend, Ledger, Settled
from pilotfish.service.diagnostics.on_demand import Unopened
from pilotfish.service.diagnostics.verdicts import UNSIGNALLED, Outcome
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

SECOND_CHECK_SECONDS = 2.0
"""How long after a save a server that runs the compiler then tells that it has begun; one that does not may be
configured not to, and its verdict is only assumed."""

OPEN_AGAIN_SECONDS = 0.5
"""How long after a publish about a document as it was before it was opened anew it is opened once more; then twice as
long. gopls sends the same list for the next version only once it is opened, and what it still had to say of the last
version takes the place of that: beside four busy loops in one of three checks. An edit then waited its whole limit."""


class Check:
    """One check that runs."""

    def __init__(self, session: Session, ledger: Ledger, freshness: Freshness, file: FileToSend) -> None:
        self._session = session
        self._ledger = ledger
        self._freshness = freshness
        self._file = file
        self._target = Target(session, ledger, freshness, file.path)
        self._publishes: list[float] = []
        self._anew = False
        self._openings = 0

    async def run(self, deadline: float) -> Outcome:
        """Raises the session's failure when the server dies or fails."""
        with self._ledger.using(self._file.path):
            await self._begin()
            settled = self._ledger.settled.get(self._file.path)
            if settled is not None and self._stands(settled) and self._refusal() is None:
                return self._outcome(Fresh(), settled.reports)
            async with owned_tasks() as tasks:
                tasks.start_soon(self._inquiry.run, deadline)
                said = await self._verdict(deadline)
                # No await between the verdict and the reports it is about.
                reports = self._counting()
                self._learn(said, reports)
                outcome = self._outcome(said, reports)
                if self._inquiry.asked is not Asked.ANSWERED:
                    # An inquiry with an answer ends by itself, and cancelling a task costs more than awaiting it.
                    tasks.cancel_scope.cancel()
            return outcome

    async def run_anew(self, deadline: float) -> Outcome:
        """The same after other files were changed, and not this one.

        What a server that can only be listened to says of an open file then, nobody knows when: there the file is
        opened anew, and closed again if it was not open.
        """
        self._anew = True
        if self._target.can_be_asked():
            return await self._run_unopened(deadline) or await self.run(deadline)
        was_open = self._session.documents.is_open(self._file.path)
        self._ledger.let_go(self._session, self._file)
        try:
            return await self.run(deadline)
        finally:
            if not was_open and self._session.failure is None:
                self._ledger.let_go(self._session, self._file)

    async def _run_unopened(self, deadline: float) -> Outcome | None:
        """The outcome for a file that is not open and need not be; None where it must."""
        session = self._session
        if session.documents.is_open(self._file.path) or not self._ledger.answered:
            return None
        started, unopened = current_time(), Unopened(session, self._ledger, self._file)
        found = None
        if self._target.can_be_pulled():
            found = await unopened.pulled(deadline) if self._freshness.unopened_pull else None
        elif self._freshness.on_demand is not None and self._target.can_be_commanded():
            found = await unopened.commanded(self._freshness.on_demand, deadline)
        return None if found is None else Outcome(session.server, found, seconds=current_time() - started)

    async def _begin(self) -> None:
        ledger, session = self._ledger, self._session
        self._started = current_time()
        self._arrivals = session.reports.arrivals
        self._finished_before = session.readiness.ended
        self._learn_from_before()
        before = ledger.version(self._file.path)
        self._sent = ledger.send(session, self._file)
        self._sends = self._sent.version != before
        second = self._freshness.save_progress
        if second is not None and self._file.saved and not self._has_second_report():
            ledger.save_if_never(session, self._file.path)
        self._awaited_second = second is not None and not session.readiness.has_ended(second)
        if not self._sends:
            # Other files of the same patch may be about to be sent: what the server said before that is not an answer.
            await anyio.lowlevel.checkpoint()
        self._changes = ledger.changes
        self._disturbed_at = ledger.changed_at if ledger.changes > self._sent.number else None
        self._stirred_at = ledger.changed_before
        self._inquiry = Inquiry(self._target, self._needed)

    def _stands(self, settled: Settled) -> bool:
        """Whether the last fresh verdict holds: nothing was sent since, and no later report is about this text."""
        push = self._last_push()
        moved = push is not None and push is not settled.push and self._is_current(push)
        return settled.coverage.covers(self._needed()) and not moved

    def _needed(self) -> Coverage:
        """What an answer must cover: all that had been sent when the check began."""
        return Coverage(self._sent.version, self._changes, self._session.reports.refreshes)

    # --- Waiting -----------------------------------------------------------------------------------------------------

    async def _verdict(self, deadline: float) -> Fresh | GaveUp:
        while True:
            if self._session.connection.hung_up:
                # What it said last may not be all, and its silence means nothing.
                raise await self._session.ended()
            now = current_time()
            said = self._said(now, deadline)
            if not isinstance(said, Waiting):
                is_certain = isinstance(said, Fresh) and not said.assumed and now < deadline
                if self._awaited_second and is_certain and self._target.can_be_pulled():
                    # Its findings may be a moment behind its end; an answer to a later question is not.
                    self._awaited_second = False
                    await self._session.pull(self._file.path, timeout=deadline - now + LATE_SECONDS)
                    continue
                return said
            again_at = self._opens_again_at()
            if now >= again_at:
                self._open_again()
                continue
            with anyio.CancelScope(deadline=max(now, min(said.until, again_at))):
                await self._session.changed.wait()
            push = self._last_push()
            if push is not None and push.arrival > self._arrivals and push.at > self._sent.at:
                self._arrivals = push.arrival
                self._publishes.append(push.at)

    def _opens_again_at(self) -> float:
        """When the document is opened once more, because the server may have nothing to add to what it said before."""
        path, push, sent = self._file.path, self._last_push(), self._sent
        is_listened_to = self._inquiry.asked is Asked.IMPOSSIBLE and self._inquiry.barrier is Behind.NONE
        if push is None or push.version is None or not (is_listened_to and sent.opened and self._file.saved):
            return inf
        is_earlier = push.version < sent.version and push.at > sent.at and not self._session.readiness.busy
        is_as_sent = self._session.documents.text(path).string == self._file.text
        return push.at + OPEN_AGAIN_SECONDS * 2**self._openings if is_earlier and is_as_sent else inf

    def _open_again(self) -> None:
        self._openings += 1
        self._publishes.clear()
        self._sent = self._ledger.reopen(self._session, self._file)

    def _said(self, now: float, deadline: float) -> Verdict:
        refusal = self._refusal()
        if refusal is not None:
            return GaveUp(f"the server reports that it cannot check: {refusal}")
        traits = traits_of(self._freshness, self._ledger.habits)
        said = verdict(self._facts(), traits, now=now, deadline=deadline)
        token = self._freshness.save_progress
        if token is None or not self._file.saved:
            # A text that is not saved is not checked a second time, and whoever proposes it is told so.
            return said
        is_over = self._session.readiness.has_ended(token) and now >= self._last_end()
        if not isinstance(said, Fresh) or is_over:
            return said
        return self._second_check(token, now, deadline)

    def _last_end(self) -> float:
        return self._session.readiness.last_end(restarts=self._freshness.restarts_check)

    def _second_check(self, token: str, now: float, deadline: float) -> Verdict:
        """Some servers run the compiler after a save, whoever sent it, and publish what it finds."""
        until = deadline
        if self._session.readiness.has_ended(token):
            until = min(deadline, self._last_end())
        elif not self._session.readiness.has_begun(token):
            until = min(deadline, max(self._started, self._ledger.changed_at) + SECOND_CHECK_SECONDS)
        return Waiting(until) if now < until else Fresh(assumed=True)

    def _refusal(self) -> str | None:
        """The server's own words that it cannot check: at all, as things are, or this time."""
        readiness, ledger = self._session.readiness, self._ledger
        if readiness.health == "error" and readiness.quiescent is not False:
            return _words(readiness.complaint) or "its health is bad"
        # Log messages are kept for a while, a refusal for as long as the server lives.
        ledger.refusal = ledger.refusal or complaint(self._session.messages(), self._freshness.cannot_check)
        return ledger.refusal or self._inquiry.failed

    def _facts(self) -> Facts:
        readiness, push = self._session.readiness, self._push()
        settled = self._ledger.settled.get(self._file.path)
        was_settled = settled is not None and settled.coverage.version == self._sent.version
        return Facts(
            version=self._sent.version,
            sent_at=self._sent.at,
            ready=self._target.is_ready(),
            working=readiness.busy,
            finished=readiness.ended > self._finished_before,
            ended_at=readiness.ended_at,
            opened=self._sent.opened,
            on_disk=self._file.saved,
            asked=self._inquiry.asked,
            published=None if push is None else Published(push.version, push.at, *readiness.work_at(push.at)),
            barrier=self._inquiry.barrier,
            disturbed_at=self._disturbed_at,
            stirred_at=max(settled.at, self._stirred_at) if settled and was_settled else float("inf"),
        )

    def _learn(self, said: Fresh | GaveUp, reports: tuple[Report, ...]) -> None:
        ledger, push = self._ledger, self._push()
        if isinstance(said, GaveUp):
            if self._sends and self._inquiry.asked is Asked.IMPOSSIBLE and not self._session.readiness.busy:
                ledger.unheard[self._file.path] = self._sent
            return
        if not said.assumed:
            ledger.answered = True
            coverage = self._inquiry.answer.coverage if self._inquiry.answer else self._needed()
            at = max((report.at for report in reports), default=self._sent.at)
            ledger.settled[self._file.path] = Settled(coverage, reports, push, at)
        if self._sends and self._inquiry.asked is Asked.IMPOSSIBLE and self._publishes:
            ledger.habits = observed(ledger.habits, sent_at=self._sent.at, publishes=tuple(self._publishes))

    def _learn_from_before(self) -> None:
        ledger, push = self._ledger, self._last_push()
        settled, sent = ledger.settled.get(self._file.path), ledger.unheard.pop(self._file.path, None)
        last = None if settled is None or settled.coverage.changes != ledger.changes else settled.push
        if last is not None and push is not None and push is not last and push.version == last.version:
            # A second publish for a text that had settled, with nothing sent since, came late.
            ledger.habits = heard_late(ledger.habits, push.at - last.at)
        if sent is not None:
            # The last text had no answer in time: a later publish tells a slow server from a silent one.
            ledger.habits = unheard(ledger.habits, spoke_later=push is not None and push.at > sent.at)

    # --- Answering ---------------------------------------------------------------------------------------------------

    def _last_push(self) -> Report | None:
        return self._session.reports.of(self._file.path).get(Push())

    def _push(self) -> Report | None:
        """The last publish, unless it is about an older text than the last verdict."""
        push, settled = self._last_push(), self._ledger.settled.get(self._file.path)
        if settled is None or settled.push is None or settled.coverage.version != self._sent.version:
            return push
        return push if push is not None and self._is_current(push) else settled.push

    def _has_second_report(self) -> bool:
        """Whether the check that a save of another file has started covers this one, as it is on disk."""
        token = self._freshness.save_progress
        return self._anew and token is not None and self._session.readiness.has_ended(token)

    def _is_current(self, push: Report) -> bool:
        return push.version is None or push.version >= self._sent.version

    def _counting(self) -> tuple[Report, ...]:
        """The reports about this text. After a pull, a publish counts only if its version says so."""
        push, answer = self._push(), self._inquiry.answer
        if answer is None:
            return (push,) if push is not None else ()
        if push is not None and push.version is None and self._has_second_report():
            return (*answer.reports, push)
        if push is None or push.version is None or push.version < self._sent.version:
            return answer.reports
        return (*answer.reports, push)

    def _outcome(self, said: Fresh | GaveUp, reports: tuple[Report, ...]) -> Outcome:
        server, seconds = self._session.server, current_time() - self._started
        if isinstance(said, GaveUp):
            return Outcome(server, None, why=said.why, failure=self._cannot_check(), seconds=seconds)
        text, encoding = self._session.documents.text(self._file.path), self._session.encoding
        lists = [
            diagnostics_of(report, text=text, encoding=encoding, server=server, path=self._file.path)
            for report in reports
        ]
        why = UNSIGNALLED if said.assumed else self._lack()
        if not self._is_about_the_newest(reports):
            why = "the file was changed while it was checked"
        return Outcome(
            server,
            as_compiled(merged(lists), self._freshness.compiler),
            assumed=why is not None,
            why=why,
            seconds=seconds,
            skipped=sum(report.skipped for report in reports),
            judged=text.string,
        )

    def _is_about_the_newest(self, reports: tuple[Report, ...]) -> bool:
        """Whether the server was sent no other text since, or its answer is about that one."""
        newest, answer = self._ledger.version(self._file.path), self._inquiry.answer
        if newest is None or newest == self._sent.version:
            return True
        if answer is not None:
            return answer.coverage.version >= newest
        # Silence is about the text that the check has sent.
        return bool(reports) and all(report.version is not None and report.version >= newest for report in reports)

    def _cannot_check(self) -> Failure | None:
        refusal, session = self._refusal(), self._session
        if refusal is None:
            return None
        message = f"{session.server} reports that it cannot check: {refusal}"
        scene = Scene(server=session.server, root=session.root)
        return ServerFailed(Code.SERVER_ERROR, message, hint=self._freshness.remedy, scene=scene)

    def _lack(self) -> str | None:
        """What the server does not check, as the catalogue or the server itself says."""
        readiness = self._session.readiness
        if readiness.health == "warning":
            return f"the server reports: {_words(readiness.complaint) or 'its health is not good'}"
        text, pattern = self._file.text[:MAX_SEARCHED], self._freshness.unchecked
        found = None if pattern is None else re.search(pattern, text)
        unchecked = None if found is None else f"it does not check what needs {_words(found[0])}"
        return self._freshness.not_checked or unchecked or self._late_import(text) or self._overlooked()

    def _overlooked(self) -> str | None:
        inputs, patterns = self._session.inputs, (self._freshness.unchecked, self._freshness.late_imports)
        if inputs is not None and inputs.overlooks(self._file.path):
            return "changes of files are noticed late, and the file names too many to look at each"
        if inputs is not None and inputs.is_cut:
            return "its configuration names more files than are looked at for changes"
        is_long = any(patterns) and len(self._file.text) > MAX_SEARCHED
        return "the file is too long to look for what is noticed late or not checked" if is_long else None

    def _late_import(self, text: str) -> str | None:
        if not self._freshness.late_imports:
            return None
        folder, root = os.path.dirname(self._file.path), self._session.root
        names = [one[1] for one in islice(re.finditer(self._freshness.late_imports, text), MAX_NAMED + 1)]
        for said in dict.fromkeys(names):
            if not is_inside(os.path.normpath(os.path.join(folder, said)), root):
                return f"changes outside of its root are noticed late, and the file names {_words(said)}"
        return "the file names too many files to look at each" if len(names) > MAX_NAMED else None


def _words(complaint: str | None) -> str:
    return sanitised(" ".join((complaint or "").split()), MAX_WORDS)
