"""The façade: all that a surface calls. `touched` after an edit, `ask` a question, `status`, `end`.

Every answer carries how much it can be believed. Nothing here can make an edit fail: `touched` never raises for what a
file, a server or a configuration does.
"""

import logging
import math
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import (
    Answer,
    DiagnosticsAnswer,
    Effort,
    Feedback,
    State,
    answer_from,
    at_least,
    diagnostic_of,
    error_of,
    with_warnings,
)
from pilotfish.api.questions import Moment, Operation, Question, Touch
from pilotfish.api.status import Snapshot
from pilotfish.config.places import Places
from pilotfish.errors import Failure
from pilotfish.feedback.delta import Comparison, delta
from pilotfish.feedback.select import findings
from pilotfish.feedback.text import named
from pilotfish.model import AbsPath
from pilotfish.operations.rows import OperationRow
from pilotfish.paths import is_inside
from pilotfish.policy.boundary import Want, admit
from pilotfish.pool.plan import Key, Limits
from pilotfish.pool.pool import Pool
from pilotfish.protocol.positions import Text
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.protocol.wire import Json
from pilotfish.service import whole_project
from pilotfish.service.changes.apply import ChangeRunner, changes_files
from pilotfish.service.changes.transaction import Recovery, recover
from pilotfish.service.check_answer import CheckCount, CheckEvent, CheckRequest
from pilotfish.service.conversations.conversations import Conversations
from pilotfish.service.conversations.disk_writes import DiskWrites
from pilotfish.service.conversations.news import TOLD_TOGETHER
from pilotfish.service.conversations.record import KeptConversations
from pilotfish.service.diagnostics.broken_files import ProjectCheck
from pilotfish.service.diagnostics.edit_feedback import EditFeedback
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.diagnostics.missing_imports import explanations
from pilotfish.service.diagnostics.picture import Picture
from pilotfish.service.diagnostics.preparation import LikelyFiles, Preparation, Prepared, WarmStart
from pilotfish.service.diagnostics.preview import Previews
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.proposals import ProposalRunner
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict, effort_of, milliseconds_since
from pilotfish.service.disk_changes import CATCH_UP_SECONDS, DiskChanges
from pilotfish.service.patch_checks import PatchChecks
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.compose import COMPOSED, QuestionComposer
from pilotfish.service.questions.project import ProjectFiles
from pilotfish.service.questions.subject import with_existing_file
from pilotfish.service.status.recent_feedback import AnsweredQuestion, EditedFile, RecentFeedback, ShownFeedback
from pilotfish.service.status.servers import RunningServers
from pilotfish.service.texts import Texts
from pilotfish.service.use_server import Access
from pilotfish.service.whole_project import PROJECT_SECONDS, certain
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit, Workspaces
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock, EditableFiles, Memory, OpenWatcher, Spawner, Vitals
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

Done = Callable[[int, int], None]
"""Is told how many files of a project or folder were checked, of how many."""

SOON = Patience()
"""For a caller who asks after each edit: as long as feedback may take."""

QUESTION_SECONDS = 30.0
"""How long a question waits until servers are in step with the disk. It may be the first one to a server that was
started ahead, and to cover the library of an interpreter, 8,000 folders, takes seconds while everything starts."""


class System(Struct, frozen=True):
    """The operating system's side: implementations of the ports, and where our files are."""

    spawn: Spawner
    files: EditableFiles
    clock: Clock
    vitals: Vitals
    places: Places
    environment: Mapping[str, str]
    handed_over: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Configuration that the host passed in, in the form of `lsp.json`."""
    watch: OpenWatcher | None = None
    """None: changes on disk are not watched; only the files that are asked about are read again."""
    memory: Memory | None = None
    """None: what was learned about servers is lost at the end."""


class Service:
    def __init__(self, system: System, limits: Limits | None = None) -> None:
        self.pool = Pool(system.spawn, system.vitals, limits=limits, left=self._drop)
        self.workspaces = Workspaces(
            system.places, system.environment, system.handed_over, self._stop_untrusted, self._stop_outdated
        )
        self.recent_feedback = RecentFeedback(system.memory)
        self._clock = system.clock
        self._texts = Texts(system.files, system.clock)
        # The watchers are made below.
        self._ledgers = Ledgers(self._texts, lambda one: self.disk_changes.join(one), system.memory)  # noqa: PLW0108
        access = Access(self.pool, self._ledgers, self._texts)
        self._runner = CheckRunner(access)
        words = ProjectWords(lambda root: self.disk_changes.follows(root))  # noqa: PLW0108
        self.disk_changes = DiskChanges(system.watch, self._ledgers, system.clock, words, self._noticed)
        self.states = FileStates()
        self.servers = RunningServers(access, system.clock, system.vitals, self.disk_changes.health, self.states)
        files = ProjectFiles(access, words)
        self._questions = QuestionRunner(access, files)
        proposal_runner = ProposalRunner(access)
        reports = ProjectReports(access, self.states)
        self._project = project = ProjectCheck(access, self._runner, proposal_runner, self.states, words, reports)
        self.patch_checks = PatchChecks(self._runner, reports, words, self._in_step)
        self._edit_feedback = EditFeedback(self._runner, self.states, proposal_runner, project)
        likely = LikelyFiles(self._runner, self._texts, self.states, words, self._in_step, reports)
        self._preparation = Preparation(likely.prepare)
        self._picture = Picture(access, self._runner, self.states, words)
        self._previews = Previews(self._picture, project, proposal_runner)
        self._composer = QuestionComposer(self._questions, self.check, self._previews, self._edit_feedback.notices)
        self._warm_start = WarmStart(system.memory)
        covers = self.disk_changes.covers
        self._disk_writes = DiskWrites(self.states, self._texts, system.clock, covers, self._noticed)
        self.conversations = Conversations(
            self._edit_feedback,
            self.states,
            self._disk_writes,
            KeptConversations(system.memory, system.clock.wall),
            lambda client: self._in_step(self._visit(client)),
            self._warm_start.used,
        )
        self._journals = system.places.journals
        self._change_runner = ChangeRunner(
            access, self._questions, system.files, journals=self._journals, touched=self.touched
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Service"]:
        # Finish or undo the writes of a process that was killed.
        recovery = await anyio.to_thread.run_sync(recover, self._journals)
        if recovery != Recovery():
            logger.warning("recovered finished=%d undone=%d left=%s", recovery.finished, recovery.undone, recovery.left)
        self.servers.begin()
        async with (
            self.disk_changes.running(),
            self.pool.running(),
            self.conversations.running(),
            self._preparation.running(),
        ):
            yield self

    def _stop_untrusted(self, workspace: Workspace) -> None:
        logger.warning("trust revoked root=%s", workspace.root)
        self.pool.retire(workspace.holds)

    def _stop_outdated(self, before: Workspace, current: Sequence[Workspace]) -> None:
        """Stop what only the older configuration of a workspace would start."""

        def is_outdated(key: Key) -> bool:
            return before.would_start(key) and not any(workspace.would_start(key) for workspace in current)

        self.pool.leave(is_outdated)

    def _drop(self, root: AbsPath) -> None:
        """No client works in this root any more: let go of its texts, their last states, and the configuration."""
        used = {key.root for key in self.pool.entries()}

        def is_left(path: AbsPath) -> bool:
            return is_inside(path, root) and not any(is_inside(path, other) for other in used)

        self._texts.drop(is_left)
        self.states.drop(is_left)
        self._project.drop(is_left)
        self.workspaces.drop(lambda known: known.holds(root) and not any(map(known.holds, used)))

    def _noticed(self, root: AbsPath, changes: Sequence[PathChange], place: AbsPath | None = None) -> None:
        self.conversations.noticed(changes, place)
        self.states.note(root, changes)

    def status(self, client: ClientSession) -> Snapshot:
        """The state of every known server for this workspace."""
        snapshot = self.servers.snapshot(self.workspaces.of(client))
        return replace(snapshot, conversations=self.conversations.rows(client.root))

    async def inspect(self, client: ClientSession) -> Snapshot:
        """The same, with the memory that running servers use now."""
        snapshot = await self.servers.measured(self.workspaces.of(client))
        return replace(snapshot, conversations=self.conversations.rows(client.root))

    def end(self, client: ClientSession) -> None:
        """End a client session; ending it twice is harmless."""
        self.conversations.end(client)
        self._preparation.drop(client)
        self.pool.release(client.id)

    async def touched(self, touch: Touch, client: ClientSession, *, seconds: float = math.inf) -> Feedback:
        """Feedback after an edit; never raises a `Failure`. The text is empty when there is nothing to say.

        After `seconds` it is what is known by then; what comes later is told with the next event.
        """
        edits: tuple[EditedFile, ...] = ()

        async def work() -> Feedback:
            nonlocal edits
            if not touch.paths:
                return Feedback("", State.UNAVAILABLE, 0, "no file was named")
            with self.pool.counters.timed(touch.kind):
                visit = self._visit(client, seconds=seconds)
                with self.conversations.editing(touch, visit.workspace):
                    given = await self._runner.take(visit.workspace, touch.texts)
                    await self._in_step(visit)
                    if touch.kind == "read":
                        return await self.conversations.read(touch, visit, given)
                    feedback, edits = await self.conversations.edited(touch, visit, given)
                    return feedback

        if touch.kind != "read":
            # From here on files may be broken by this edit: their state is no longer the one before it.
            self._preparation.drop(client)
        with self._preparation.giving_way(interrupt=touch.kind != "read"), self.pool.serving(client.id):
            feedback = await _feedback_or_reason(work)
        if touch.kind == "read":
            self._prepare(touch, client)
        else:
            waits = feedback.reason == TOLD_TOGETHER
            self.recent_feedback.add(ShownFeedback(self._clock.wall(), client, touch.paths, feedback, edits, waits))
        return feedback

    async def warm_up(self, client: ClientSession) -> None:
        """Start the servers that this workspace used last, or that of its main language, as far as there is room."""
        self.conversations.begin(client)
        with suppress(Failure):
            began, workspace = self._clock.wall(), self.workspaces.of(client)
            if not workspace.config.enabled:
                return
            async with owned_tasks() as tasks:
                tasks.start_soon(self._disk_writes.remember, workspace, began)
                files = (await self._warm_start.files(workspace))[: max(0, self.pool.room_to_spare)]
                with self._preparation.ahead(client):
                    await self.touched(Touch(files, "read"), client)

    async def start_servers(self, client: ClientSession) -> None:
        """Start the same servers for a client that asks questions, whose first one then need not wait for them.

        They start as for a question, so none does that a question would not start.
        """
        with suppress(Failure):
            visit = self._visit(client)
            config = visit.workspace.config
            if not (config.enabled and config.navigation_tools):
                return
            for path in await self._warm_start.files(visit.workspace):
                if self.pool.room_to_spare > 0:
                    outline = Question(operation=Operation.DOCUMENT_SYMBOL, file_path=path)
                    await self._questions.answer(outline, visit)

    async def reached(self, moment: Moment, client: ClientSession, *, seconds: float = math.inf) -> Feedback:
        """What is to be told at a moment of a conversation; never raises a `Failure`. `seconds`: as after an edit."""

        async def work() -> Feedback:
            return await self.conversations.reached(moment, await self._in_step(self._visit(client, seconds=seconds)))

        with self._preparation.giving_way(interrupt=moment.waits, again=True), self.pool.serving(client.id):
            feedback = await _feedback_or_reason(work)
        if feedback.text:
            self.recent_feedback.add(ShownFeedback(self._clock.wall(), client, (), feedback))
        return feedback

    def _prepare(self, touch: Touch, client: ClientSession) -> None:
        """Know the files that an edit of those just read may break, before it comes."""
        with suppress(Failure):
            visit = self._visit(client)
            if visit.workspace.config.feedback.other_files_after:
                read = [admit(path, visit.workspace.boundary).path for path in touch.paths]
                self._preparation.add([Prepared(visit, path, is_read=True) for path in read])

    async def ask(
        self,
        question: Question,
        client: ClientSession,
        workspace: Workspace | None = None,
        done: Done = lambda _done, _total: None,
    ) -> Answer[Any]:
        """The answer to a question; what the caller got wrong is in it, too.

        A caller that has just looked up the client's `workspace` passes it, so that its files are looked at once.
        """
        started = current_time()
        try:
            with self.pool.serving(client.id):
                visit = await self._in_step(self._visit(client, workspace), QUESTION_SECONDS)
                answer: Answer[Any] = await self._answer(await with_existing_file(question, client), visit, done)
        except Failure as failure:
            answer = _failed(question.operation, failure, started)
        finally:
            self.pool.counters.add_operation(question.operation, current_time() - started)
        self.recent_feedback.add_question(AnsweredQuestion(self._clock.wall(), client, question, answer.meta))
        return answer

    async def _answer(self, question: Question, visit: Visit, done: Done) -> Answer[Any]:
        if question.operation is Operation.CODE_ACTIONS and question.file_path is not None:
            # Many actions follow from diagnostics: those that are still computed would be missing from the list.
            await self._runner.run(visit, (question.file_path,), patience=certain(visit.workspace))
        if changes_files(question):
            return await self._change_runner.change(question, visit)
        if question.operation in COMPOSED:
            return await self._composer.compose(question, visit)
        if question.operation is Operation.DIAGNOSTICS:
            return at_least(await self._diagnostics(question, visit, done), question.severity)
        return await self._questions.answer(question, visit)

    async def _diagnostics(self, question: Question, visit: Visit, done: Done) -> DiagnosticsAnswer:
        """Of a file, a folder, or without either the project."""
        if question.file_path is None:
            return await self.check_project(visit.client, visit.workspace, done)
        folder = admit(question.file_path, visit.workspace.boundary, Want.PLACE).path
        if question.text is None and os.path.isdir(folder):  # noqa: ASYNC240 -- `admit` has just looked at it
            return await self.check_project(visit.client, visit.workspace, done, folder=folder)
        texts = None if question.text is None else {question.file_path: question.text}
        return await self.check(visit.client, (question.file_path,), texts=texts, workspace=visit.workspace)

    async def text_of(self, client: ClientSession, path: str) -> Text:
        """The text of a file on disk, for the places in it. Raises `Refused` where it may not, or cannot, be read."""
        return await self._texts.text(admit(path, self.workspaces.of(client).boundary).path)

    async def offered(self, client: ClientSession) -> tuple[OperationRow, ...]:
        """The operations that a server of this workspace may answer. Nothing is started."""
        return await self._questions.files.offered(self.workspaces.of(client))

    async def check(
        self,
        client: ClientSession,
        paths: Sequence[str],
        *,
        texts: Mapping[str, str] | None = None,
        written: bool = False,
        patience: Patience | None = None,
        workspace: Workspace | None = None,
    ) -> DiagnosticsAnswer:
        """The verdict on files: errors, clean, or none and why.

        Files in `texts` are judged as if they had those texts, which nobody keeps; so are the others with them.
        `written` says that the texts are those of an edit just made: they stand, and the disk is not read.
        """
        if texts and not written:
            return await self.preview(client, paths, texts, patience=patience, workspace=workspace)

        async def work(visit: Visit) -> DiagnosticsAnswer:
            given = await self._runner.take(visit.workspace, texts)
            await self._in_step(visit)
            waits = patience or certain(visit.workspace)
            if texts:
                return self._verdict(visit, *await self._runner.run(visit, paths, given=given, patience=waits))
            return self._verdict(visit, *await self._picture.check(visit, paths, waits))

        return await self._checked("check", client, workspace, work)

    async def check_files(
        self,
        client: ClientSession,
        request: CheckRequest,
        heard: Callable[[CheckEvent], None] = lambda _: None,
        *,
        workspace: Workspace | None = None,
        seconds: float = math.inf,
    ) -> DiagnosticsAnswer:
        """The verdict on files and on all files of folders; `heard` is told which, and of each as soon as it is known.

        After `seconds` it is what is known by then.
        """

        async def work(visit: Visit) -> DiagnosticsAnswer:
            await self._in_step(visit)
            answer_of = partial(self._verdict, visit)
            return await whole_project.check(self._picture, visit, request, seconds, heard, answer_of)

        return await self._checked("check", client, workspace, work)

    async def check_project(
        self,
        client: ClientSession,
        workspace: Workspace | None = None,
        done: Done = lambda _done, _total: None,
        *,
        seconds: float = PROJECT_SECONDS,
        folder: AbsPath | None = None,
    ) -> DiagnosticsAnswer:
        """The verdict on the project or a folder of it, as far as it is known in time: files that have diagnostics."""
        count = CheckCount(done, "project" if folder is None else "folder")
        request = CheckRequest((folder or client.root,))
        return count.listed(await self.check_files(client, request, count.add, workspace=workspace, seconds=seconds))

    async def preview(
        self,
        client: ClientSession,
        paths: Sequence[str],
        texts: Mapping[str, str],
        *,
        patience: Patience | None = None,
        workspace: Workspace | None = None,
    ) -> DiagnosticsAnswer:
        """The verdict on files if some had other texts, and on the files that this would break."""

        async def work(visit: Visit) -> DiagnosticsAnswer:
            await self._in_step(visit)
            previewed = await self._previews.run(visit, paths, texts, patience or certain(visit.workspace))
            effort = effort_of(previewed.asked, previewed.related, visit.started)
            if previewed.unchecked:
                why = f"{previewed.unchecked} possibly affected files were not checked"
                effort = replace(effort, caveats=(*effort.caveats, why))
            return _diagnosed(visit.workspace, previewed.changes, effort)

        return await self._checked("preview", client, workspace, work)

    async def _checked(
        self,
        kind: str,
        client: ClientSession,
        workspace: Workspace | None,
        work: Callable[[Visit], Awaitable[DiagnosticsAnswer]],
    ) -> DiagnosticsAnswer:
        """What the work finds; why nothing could be checked is an answer, too."""
        started = current_time()
        try:
            with self.pool.counters.timed(kind):
                return await work(self._visit(client, workspace))
        except Failure as failure:
            return _failed(Operation.DIAGNOSTICS, failure, started)

    def _verdict(self, visit: Visit, *verdicts: FileVerdict) -> DiagnosticsAnswer:
        """What the verdicts say, and what of it was introduced in each file since it was last checked."""
        there = [one for one in verdicts if one.refused is None]
        changes = {one.path: delta(self.states.previous(one), one.checked) for one in there}
        notes = map(str, explanations(visit.workspace, verdicts))
        return with_warnings(_diagnosed(visit.workspace, changes, effort_of(verdicts, (), visit.started)), tuple(notes))

    def _visit(self, client: ClientSession, workspace: Workspace | None = None, seconds: float = math.inf) -> Visit:
        started = current_time()
        return Visit(client, workspace or self.workspaces.of(client), started + seconds, started)

    async def _in_step(self, visit: Visit, seconds: float = CATCH_UP_SECONDS) -> Visit:
        """The servers of the workspace are in step with the disk then, as far as that takes no longer."""
        await self.disk_changes.catch_up(visit.workspace.holds, seconds)
        for root, packages in self._edit_feedback.settings.take_packages(visit.workspace.holds).items():
            self._noticed(root, [PathChange(folder, Change.CHANGED) for folder in packages], root)
        return visit


async def _feedback_or_reason(work: Callable[[], Awaitable[Feedback]]) -> Feedback:
    started = current_time()
    try:
        return await work()
    except Failure as failure:
        return Feedback("", State.UNAVAILABLE, milliseconds_since(started), failure.message)


def _failed(operation: Operation, failure: Failure, started: float) -> Answer[Any]:
    return answer_from(operation, None, Effort(milliseconds_since(started), errors=(error_of(failure),)))


def _diagnosed(workspace: Workspace, changes: Mapping[AbsPath, Comparison], effort: Effort) -> DiagnosticsAnswer:
    data = {
        named(path, workspace.root): tuple(diagnostic_of(one.diagnostic, introduced=one.introduced) for one in found)
        for path, found in ((path, findings(change)) for path, change in changes.items())
    }
    return with_warnings(answer_from(Operation.DIAGNOSTICS, data, effort), workspace.config_notes(*changes))
