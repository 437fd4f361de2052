"""The façade: all that a surface calls. `touched` after an edit, `ask` a question, `status`, `end`.

Every answer carries how much it can be believed. Nothing here can make an edit fail: `touched` never raises for what a
file, a server or a configuration does.
"""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Diagnostic, Effort, Feedback, State, answer_from, diagnostic_of, error_of
from pilotfish.api.questions import Operation, Question, Touch
from pilotfish.api.status import Snapshot
from pilotfish.client.session import Session
from pilotfish.config.places import Places
from pilotfish.errors import Failure, Refused
from pilotfish.feedback.delta import Change, Delta
from pilotfish.feedback.select import Checked, findings, selection
from pilotfish.feedback.text import Form, feedback_text, named
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Limits
from pilotfish.pool.pool import Pool
from pilotfish.protocol.wire import Json
from pilotfish.service.changes.apply import Applying, changes_files
from pilotfish.service.changes.transaction import Recovery, recover
from pilotfish.service.diagnostics.baselines import Baselines
from pilotfish.service.diagnostics.preview import Previews
from pilotfish.service.diagnostics.related_files import Others
from pilotfish.service.diagnostics.runner import Checks, FileVerdict, Patience
from pilotfish.service.diagnostics.supposing import Supposing
from pilotfish.service.disk_changes import Watching
from pilotfish.service.questions.ask import Asking
from pilotfish.service.status.control import Steering
from pilotfish.service.status.details import Inspecting
from pilotfish.service.status.recent_feedback import Lately, Shown
from pilotfish.service.status.snapshot import snapshot
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Workspaces
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock, Files, Memory, OpenWatcher, Spawner, Vitals

logger = logging.getLogger(__name__)

CERTAIN = Patience(first=60.0, later=30.0)
"""For whoever asks for a verdict and not for feedback: the time that a cold server of any kind needs."""


class Host(Struct, frozen=True):
    """The shell: what the composition root hands in."""

    spawn: Spawner
    files: Files
    clock: Clock
    vitals: Vitals
    places: Places
    environment: Mapping[str, str]
    handed_over: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Configuration that the host gave us by hand, in our own words."""
    watch: OpenWatcher | None = None
    """None: nobody tells us of changes on disk, only the files that are asked about are looked at."""
    memory: Memory | None = None
    """None: what is learned about servers is forgotten at the end."""


class Service:
    def __init__(self, host: Host, limits: Limits | None = None) -> None:
        self.pool = Pool(host.spawn, host.vitals, limits=limits)
        self.workspaces = Workspaces(host.places, host.environment, host.handed_over, self._revoked)
        self.lately = Lately()
        self._clock = host.clock
        self._texts = Texts(host.files, host.clock)
        self._checks = Checks(self.pool, self._texts, self._started, host.memory)
        self.watching = Watching(host.watch, self._checks, host.clock)
        self.inspecting = Inspecting(self.pool, host.clock, host.vitals, self.watching.health)
        self.steering = Steering(self.pool, self._checks.restore)
        self._others = Others(self.pool, self._checks)
        self._asking = Asking(self.pool, self._checks, self._texts)
        self._baselines = Baselines()
        supposing = Supposing(self.pool, self._checks, self._texts)
        self._previews = Previews(self._checks, self._others, supposing, self._baselines)
        self._journals = host.places.journals
        self._applying = Applying(
            self.pool, self._asking, self._checks, self._texts, journals=self._journals, touched=self.touched
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Service"]:
        await self._recover()
        self.inspecting.begin()
        async with self.watching.running(), self.pool.running():
            yield self

    def _revoked(self, workspace: Workspace) -> None:
        logger.warning("trust revoked root=%s", workspace.root)
        self.pool.retire(workspace.holds)

    def _started(self, session: Session) -> None:
        self.watching.join(session)

    def status(self, client: ClientSession) -> Snapshot:
        """Every known server as it stands for this workspace."""
        return snapshot(self.workspaces.of(client), self.pool.entries(), self._clock, self.watching.health)

    async def inspect(self, client: ClientSession) -> Snapshot:
        """The same, with the memory of the servers that run, measured now."""
        return await self.inspecting.snapshot(self.workspaces.of(client))

    def end(self, client: ClientSession) -> None:
        """The client session is over; ending it twice is harmless."""
        self.pool.release(client.id)

    async def touched(self, touch: Touch, client: ClientSession) -> Feedback:
        """Feedback after an edit. The text is empty when there is nothing to say, whatever the reason."""
        feedback = await self._judged(touch, client)
        if touch.kind != "read":
            self.lately.add(Shown(self._clock.wall(), client, touch.paths, feedback))
        return feedback

    async def _judged(self, touch: Touch, client: ClientSession) -> Feedback:
        started = current_time()
        if not touch.paths:
            return Feedback("", State.UNAVAILABLE, 0, "no file was named")
        with self.pool.counters.timed(touch.kind):
            return await self._told(touch, client, started)

    async def _told(self, touch: Touch, client: ClientSession, started: float) -> Feedback:
        refused: tuple[Refused, ...] = ()
        try:
            workspace = await self._workspace(client)
            try:
                verdicts = await self._checks.run(client, workspace, touch.paths, texts=touch.texts)
            except Refused:
                # A file that may not be read, or is gone again, says nothing about the others of a patch.
                touch, refused = await self._checks.sorted_out(workspace, touch)
                verdicts = await self._checks.run(client, workspace, touch.paths, texts=touch.texts)
        except Failure as failure:
            return Feedback("", State.UNAVAILABLE, _milliseconds(started), failure.message)
        changes = {verdict.path: self._baselines.compared(client, verdict) for verdict in verdicts}
        others = await self._related(touch, client, workspace, verdicts, started)
        text = _text(workspace, touch, changes, others)
        effort = _effort(verdicts, _milliseconds(started), refused)
        return _feedback(text, verdicts, tuple(changes.values()), effort)

    async def ask(self, question: Question, client: ClientSession) -> Answer[Any]:
        """The answer to a question; what the caller got wrong is in it, too."""
        started = current_time()
        if question.operation is Operation.DIAGNOSTICS and question.file_path is not None:
            texts = None if question.text is None else {question.file_path: question.text}
            return await self.check(client, (question.file_path,), texts=texts)
        try:
            if changes_files(question):
                return await self._applying.run(question, client, await self._workspace(client))
            return await self._asking.answer(question, client, self._workspace)
        except Failure as failure:
            effort = Effort(_milliseconds(started), errors=(error_of(failure),))
            return answer_from(question.operation, None, effort)
        finally:
            self.pool.counters.took(question.operation, current_time() - started)

    async def check(
        self,
        client: ClientSession,
        paths: Sequence[str],
        *,
        texts: Mapping[str, str] | None = None,
        written: bool = False,
        patience: Patience = CERTAIN,
    ) -> Answer[Mapping[str, tuple[Diagnostic, ...]]]:
        """The verdict on files: errors, clean, or none and why.

        Files in `texts` are judged as if they had those texts, which nobody keeps; so are the others with them.
        `written` says that the texts are those of an edit just made: they stand, and the disk is not read.
        """
        if texts and not written:
            return await self.preview(client, paths, texts, patience=patience)
        started = current_time()
        try:
            with self.pool.counters.timed("check"):
                workspace = await self._workspace(client)
                verdicts = await self._checks.run(client, workspace, paths, texts=texts, patience=patience)
        except Failure as failure:
            effort = Effort(_milliseconds(started), errors=(error_of(failure),))
            return answer_from(Operation.DIAGNOSTICS, None, effort)
        changes = {verdict.path: self._baselines.compared(client, verdict) for verdict in verdicts}
        data = {named(path, workspace.root): _listed(change) for path, change in changes.items()}
        return answer_from(Operation.DIAGNOSTICS, data, _effort(verdicts, _milliseconds(started)))

    async def preview(
        self, client: ClientSession, paths: Sequence[str], texts: Mapping[str, str], *, patience: Patience = CERTAIN
    ) -> Answer[Mapping[str, tuple[Diagnostic, ...]]]:
        """The verdict on files if some had other texts, and on those elsewhere that this would break."""
        started = current_time()
        try:
            with self.pool.counters.timed("preview"):
                workspace = await self._workspace(client)
                previewed = await self._previews.run(client, workspace, paths, texts, patience)
        except Failure as failure:
            effort = Effort(_milliseconds(started), errors=(error_of(failure),))
            return answer_from(Operation.DIAGNOSTICS, None, effort)
        data = {named(path, workspace.root): _listed(change) for path, change in previewed.changes.items()}
        return answer_from(Operation.DIAGNOSTICS, data, _effort(previewed.asked, _milliseconds(started)))

    async def _recover(self) -> None:
        """Finish or undo what a process that was killed had begun to write."""
        recovery = await anyio.to_thread.run_sync(recover, self._journals)
        if recovery != Recovery():
            logger.warning("recovered finished=%d undone=%d left=%s", recovery.finished, recovery.undone, recovery.left)

    async def _workspace(self, client: ClientSession) -> Workspace:
        """Where the client works, its servers in step with the disk."""
        workspace = self.workspaces.of(client)
        await self.watching.catch_up(workspace.holds)
        return workspace

    async def _related(
        self,
        touch: Touch,
        client: ClientSession,
        workspace: Workspace,
        edited: Sequence[FileVerdict],
        started: float,
    ) -> Mapping[AbsPath, Change]:
        """What the edit may have broken in other files, where this kind of edit shows them."""
        if touch.kind not in workspace.config.feedback.other_files_after:
            return {}
        deadline = started + workspace.config.timing.diagnostics_wait_timeout_ms / 1000
        verdicts = await self._others.run(client, workspace, edited, deadline)
        return {verdict.path: self._baselines.compared(client, verdict) for verdict in verdicts}


def _listed(change: Change) -> tuple[Diagnostic, ...]:
    return tuple(diagnostic_of(found.diagnostic, introduced=found.introduced) for found in findings(change))


def _text(
    workspace: Workspace, touch: Touch, changes: Mapping[AbsPath, Change], others: Mapping[AbsPath, Change]
) -> str:
    if touch.kind == "read":
        return ""
    limits = workspace.config.feedback
    if touch.only_new:
        limits = replace(limits, only_new=True)
    most = min((size for size in (limits.max_bytes, touch.max_bytes) if size is not None), default=None)
    edited = [Checked(path, change) for path, change in changes.items()]
    related = [Checked(path, change) for path, change in others.items()]
    chosen = selection(edited, related, touch.kind, limits)
    return feedback_text(chosen, Form(workspace.root, plain=touch.plain, max_bytes=most))


def _feedback(text: str, verdicts: Sequence[FileVerdict], changes: Sequence[Change], effort: Effort) -> Feedback:
    deltas = [change for change in changes if isinstance(change, Delta)]
    found = {verdict.path: verdict.diagnostics for verdict in verdicts}
    envelope = answer_from(Operation.DIAGNOSTICS, found, effort)
    return Feedback(
        text,
        envelope.meta.state,
        effort.duration_ms,
        envelope.meta.reason,
        introduced=sum(len(change.introduced) for change in deltas),
        fixed=sum(len(change.fixed) for change in deltas),
    )


def _effort(verdicts: Sequence[FileVerdict], duration_ms: int, refused: Sequence[Refused] = ()) -> Effort:
    outcomes = [outcome for verdict in verdicts for outcome in verdict.outcomes]
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    silent = [outcome for outcome in outcomes if outcome.failure is None and not outcome.is_fresh]
    unserved = [verdict.path for verdict in verdicts if not verdict.outcomes]
    caveats = [f"{outcome.server}: {outcome.why or 'some of its answer could not be read'}" for outcome in silent]
    caveats += [f"No LSP server configured for {path}" for path in unserved]
    return Effort(
        duration_ms=duration_ms,
        server_hits=sum(verdict.answered for verdict in verdicts),
        errors=(
            *(error_of(outcome.failure) for outcome in failed if outcome.failure is not None),
            *map(error_of, refused),
        ),
        caveats=tuple(dict.fromkeys(caveats)),
        timed_out=any(outcome.diagnostics is None for outcome in silent),
    )


def _milliseconds(started: float) -> int:
    return round((current_time() - started) * 1000)
