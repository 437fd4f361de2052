"""Operations that change files: rename, file moves and code actions. A preview by default; written on request.

An edit of a server is about texts that it was sent. It is staged strictly, written all or none (`transaction`), the
servers are notified, and the changed files are checked: the answer has the changes and the feedback.
"""

import logging
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import anyio
import anyio.to_thread
from msgspec.structs import replace

from pilotfish.api.answers import Action, Answer, Changes, Effort, Feedback, Symbol, answer_from, error_of
from pilotfish.api.questions import Operation, Question, Touch
from pilotfish.client.session import Session
from pilotfish.counting import counted
from pilotfish.errors import Code, Failure, Refused, ServerFailed, Unavailable
from pilotfish.feedback.word_index import MAX_FILE_BYTES
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.edits.changes import preview, to_confirm
from pilotfish.operations.edits.staging import FileEffect, Stage, Staged
from pilotfish.operations.names import bare_name, hidden_builtin, lines_with, refuse_bad_name, taken_line
from pilotfish.operations.results import View, is_null
from pilotfish.operations.rows import ROWS, at_position, request_of
from pilotfish.operations.symbols import FUNCTIONS, bodies
from pilotfish.paths import distance, shown_path
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import EditPlan, TextChange
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.protocol.wire import FileRename
from pilotfish.servers.resolve import Candidate
from pilotfish.service.changes.code_actions import CodeActions, Command, refuse_unconfirmed
from pilotfish.service.changes.disk import DiskNow
from pilotfish.service.changes.edit_proposals import (
    AskServer,
    EditProposal,
    EditProposals,
    Intent,
    Job,
    Moved,
    ProposedEdit,
    changed_files,
    plan_of,
    with_component,
)
from pilotfish.service.changes.file_moves import FileMoves, wants
from pilotfish.service.changes.symbol_edits import SymbolEdits
from pilotfish.service.changes.transaction import perform
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.questions.ask import QuestionRunner, name_asked_about
from pilotfish.service.questions.project import head_of
from pilotfish.service.questions.subject import ComponentUse, Subject, not_included
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.ports import EditableFiles
from pilotfish.system.tasks import side_by_side

PREPARE_RENAME = "textDocument/prepareRename"

MAX_TAKEN = 5
"""Files with the new name that a warning names."""

MAX_LEFT = 8
"""Lines with the old name that a rename names; the others are counted."""

MAX_SEARCHED = 200
"""Files that are read for them, the nearest first; the others are counted."""

TELL_SECONDS = 5.0
"""How long a server may be busy with other checks. After that it is not notified: its next check sends the texts."""

logger = logging.getLogger(__name__)

Touched = Callable[[Touch, ClientSession], Awaitable[Feedback]]
"""The feedback of servers on files that have just changed."""


def changes_files(question: Question) -> bool:
    """Whether a question asks for a change, or to see one; a list of actions is neither."""
    if question.operation is Operation.CODE_ACTIONS:
        return question.apply or question.action is not None
    return ROWS[question.operation].writes


class ChangeRunner:
    def __init__(
        self, access: Access, questions: QuestionRunner, files: EditableFiles, *, journals: AbsPath, touched: Touched
    ) -> None:
        self._access = access
        self._files = files
        self._questions = questions
        self._journals = journals
        self._touched = touched
        self._proposals = EditProposals(access, questions)
        self._file_moves = FileMoves(questions, access.texts, self._proposals)
        self._code_actions = CodeActions(questions, self._proposals)
        self._symbol_edits = SymbolEdits(questions)
        self._writing = anyio.Lock()
        """One change at a time: the next one starts from the files that this one wrote."""

    async def change(self, question: Question, visit: Visit) -> Answer[Any]:
        """Raises `Failure` when the change could not be made; then no file has changed."""
        started = current_time()
        job = Job(question, visit)
        action: Action | None = None
        if question.operation is Operation.CODE_ACTIONS:
            action, intent = await self._code_actions.intent(job)
        elif question.operation is Operation.RENAME_FILE:
            intent = await self._file_moves.intent(job)
        elif question.operation is Operation.EDIT_SYMBOL:
            intent = await self._symbol_edits.intent(job)
        else:
            intent = await self._rename(job)
        changes, warnings = await (self._apply(job, intent) if question.apply else self._preview(job, intent))
        effort = Effort(
            round((current_time() - started) * 1000),
            intent.hits,
            tuple(map(error_of, intent.failures)),
            (*intent.doubts, *intent.caveats),
            warnings=(*intent.warnings, *warnings, *visit.workspace.config_notes()),
        )
        data = changes if action is None else (replace(action, changes=changes),)
        return answer_from(question.operation, data, effort)

    # --- Renaming ----------------------------------------------------------------------------------------------------

    async def _rename(self, job: Job) -> Intent:
        subject = await self._questions.subjects.find(job.question, job.visit)
        candidates = await self._questions.candidates(job.question, subject, job.workspace)
        caveats = dict[str, str]()
        old = name_asked_about(job.question, subject) or ""
        new, language = job.question.new_name or "", candidates[0].language_id if candidates else ""
        refuse_bad_name(new, old, language)
        collected = await self._proposals.collect(job, candidates, self._renaming(job, subject, caveats))
        if not collected.proposals:
            for failure in collected.failures:
                raise failure
            raise Unavailable(Code.UNSUPPORTED, "No server of this file offers rename.")
        # The server of a framework sees templates, too, which that of the language leaves as they are.
        proposal = max(collected.proposals, key=_places)
        if not proposal.edit.plan.operations and new != old:
            raise await self._why_not(job, subject, proposal.candidate, old)
        uses, unread = await self._questions.subjects.component_uses(old, subject, candidates, job.visit)
        for use in uses:
            proposal = await self._in_component(job, proposal, use, old, caveats)
        outline = await self._outline(job, subject)
        same = [one for one in outline if bare_name(one.name) == new]
        return Intent(
            proposal.edit.plan,
            proposal,
            hits=len(collected.proposals),
            failures=collected.failures,
            doubts=collected.doubts,
            caveats=(*caveats.values(), *unread),
            warnings=(
                *hidden_builtin(new, language),
                *(f"{one.path}:{one.line} already has a {one.kind} {one.name}" for one in same[:1]),
                *_taken(job, subject, proposal, old),
            ),
            renamed=None if _is_local(old, proposal.edit.plan, outline) else old,
        )

    def _renaming(self, job: Job, subject: Subject, caveats: dict[str, str]) -> AskServer:
        """How a server is asked for the edits at one place; `caveats` says what it did not search, by server."""
        request = request_of(Operation.RENAME)

        async def ask(session: Session, candidate: Candidate) -> ProposedEdit | None:
            if subject.path is None or subject.text is None or not session.supports(request.method, subject.path):
                return None
            self._proposals.expect(session, FileToSend(subject.path, candidate.language_id, subject.text.string))
            with ExitStack() as held:
                searched = await self._questions.load(session, candidate, job.workspace, job.question, subject, held)
                asked = await self._questions.request_context(session, request, job.question, subject)
                answer = await session.request(request.method, request.build(asked), about=subject.path)
            plan = EditPlan(()) if is_null(answer) else plan_of(session, answer)
            if caveat := searched.caveat(session.server, changed_files(plan), job.workspace.root):
                caveats[session.server] = caveat
            return ProposedEdit(plan)

        return ask

    async def _in_component(
        self, job: Job, proposal: EditProposal, use: ComponentUse, old: str, caveats: dict[str, str]
    ) -> EditProposal:
        """The same rename, with what the servers of a component change there."""
        there = await self._proposals.collect(job, use.servers, self._renaming(job, use.subject, caveats))
        new = job.question.new_name or ""
        renamed = with_component(proposal, there.proposals, f"{old} as {new}", new)
        if renamed is None:
            why = " ".join(one.message for one in there.failures)
            caveats[use.path] = not_included(old, [use.path], why, job.workspace.root)
        return renamed or proposal

    async def _outline(self, job: Job, subject: Subject) -> Sequence[Symbol]:
        try:
            return await self._questions.subjects.outline(subject.path or "", job.visit)
        except Failure:
            return ()

    async def _why_not(self, job: Job, subject: Subject, candidate: Candidate, old: str) -> Failure:
        """Why a server renames nothing, in its own words where it has some."""

        async def ask(session: Session) -> None:
            if session.supports(PREPARE_RENAME, subject.path):
                asked = await self._questions.request_context(
                    session, request_of(Operation.RENAME), job.question, subject
                )
                await session.request(PREPARE_RENAME, at_position(asked), about=subject.path)

        new = job.question.new_name or ""
        why = "" if new.isidentifier() else f": {new!r} is no name"
        try:
            await self._proposals.use(job, candidate, ask)
        except Failure as failure:
            why = f": {failure.message}"
        message = f"{candidate.spec.id} does not rename {old or 'what is there'}{why}"
        hint = "Only what the workspace declares can be renamed, not keywords, literals or names of libraries."
        return Refused(Code.UNSUPPORTED, message, hint=hint)

    # --- Showing -----------------------------------------------------------------------------------------------------

    async def _preview(self, job: Job, intent: Intent) -> tuple[Changes, tuple[str, ...]]:
        """What would change, and what would prevent it."""
        warnings: list[str] = []
        command = None if intent.proposal is None else intent.proposal.edit.command
        if command is not None:
            warnings.append(f"the server then runs its command {command.command!r}, whose changes are not known yet")
        try:
            stage = await anyio.to_thread.run_sync(self._stage, job, intent)
        except Refused as refusal:
            warnings.append(f"cannot be applied: {refusal.message}")
            with _consistent(intent):
                return preview(intent.plan, _view(job, intent)), tuple(warnings)
        staged = stage.staged()
        warnings += await self._left(job, intent, staged)
        files = staged.changes(job.workspace.root)
        return Changes(applied=False, files=files, confirm=to_confirm(intent.plan)), tuple(warnings)

    async def _left(self, job: Job, intent: Intent, staged: Staged) -> list[str]:
        """Where a rename leaves the old name: in stubs, what imports these, strings and comments."""
        proposal, old, root = intent.proposal, intent.renamed, job.workspace.root
        if proposal is None or old is None:
            return []
        spec, texts = proposal.candidate.spec, {one.new: one.after for one in staged.effects if one.new is not None}
        found = await self._questions.files.mentioning(job.workspace, proposal.candidate.root, old, spec.extensions)
        if found is None:
            return [f"whether {old} is mentioned elsewhere is not known: the files of the project are still being read"]
        near = next(iter(texts), root)
        paths = sorted(found | texts.keys(), key=lambda path: (distance(path, near), path))
        left = await anyio.to_thread.run_sync(_lines_left, paths[:MAX_SEARCHED], texts, old)
        places = [f"{shown_path(path, root)}:{line}" for path, lines in left.items() for line in lines]
        more = [counted(len(places) - MAX_LEFT, "more line")] if len(places) > MAX_LEFT else []
        more += [counted(len(paths) - MAX_SEARCHED, "more file")] if len(paths) > MAX_SEARCHED else []
        named = ", ".join([*places[:MAX_LEFT], *more])
        why = f"{spec.id} takes these for another symbol, a string or a comment; change by hand what means it"
        return [f"{old} stays in {named}: {why}"] if named else []

    # --- Doing -------------------------------------------------------------------------------------------------------

    async def _apply(self, job: Job, intent: Intent) -> tuple[Changes, tuple[str, ...]]:
        _refuse_uncertain(job, intent)
        refuse_unconfirmed(intent.plan)
        # The files are checked before the change, so that the feedback can tell what the change introduced.
        seen = dict.fromkeys(() if intent.proposal is None else intent.proposal.seen)
        seen |= {intent.moved.old: None} if intent.moved is not None and not intent.moved.is_folder else {}
        if before := tuple(path for path in seen if job.workspace.serves(path)):
            await self._touched(Touch(before, "read"), job.visit.client)
        async with self._writing:
            stage = await self._after_command(job, intent)
            staged = await anyio.to_thread.run_sync(self._write, job, intent, stage)
            # The files are written, even if the caller is cancelled now.
            await self._notify(job.workspace, staged.effects, intent.moved)
        # What a file was under another name is older than the move.
        paths = dict.fromkeys(path for one in staged.effects for path in (one.new, one.old) if path is not None)
        touch = Touch(tuple(filter(job.workspace.serves, paths)), "patch")
        feedback = await self._touched(touch, job.visit.client) if touch.paths else None
        left = await self._left(job, intent, staged)
        return Changes(applied=True, files=staged.changes(job.workspace.root), feedback=feedback), tuple(left)

    async def _after_command(self, job: Job, intent: Intent) -> Stage | None:
        """The edits of an action's command, staged on top of its own edit; None without a command."""
        proposal = intent.proposal
        if proposal is None or proposal.edit.command is None:
            return None
        disk = DiskNow(job.workspace.boundary, self._files)
        command = Command(proposal.edit.command, proposal, job.workspace, disk)
        return await self._proposals.use(job, proposal.candidate, lambda session: command.run(session, self._access))

    def _write(self, job: Job, intent: Intent, stage: Stage | None) -> Staged:
        """Runs in a worker thread to its end: cancelling the caller does not stop it between two files."""
        staged = (stage or self._stage(job, intent)).staged()
        perform(staged, self._journals)
        return staged

    def _stage(self, job: Job, intent: Intent) -> Stage:
        proposal = intent.proposal
        disk = DiskNow(job.workspace.boundary, self._files)
        stage = Stage(disk, Encoding.UTF16, {}) if proposal is None else Stage(disk, proposal.encoding, proposal.seen)
        with _consistent(intent):
            stage.perform(intent.plan)
        return stage

    # --- Telling servers ---------------------------------------------------------------------------------------------

    async def _notify(self, workspace: Workspace, effects: Sequence[FileEffect], moved: Moved | None) -> None:
        """Notify every server of the workspace, all at the same time; harmless for one that has died.

        Documents whose file is gone are closed; the others are sent by the next check. A server that watches files, or
        asks for `didRenameFiles`, is notified.
        """
        moves = [Moved(one.old, one.new) for one in effects if one.old and one.new and one.old != one.new]
        moves += [moved] if moved is not None and moved.is_folder else []
        sessions = [
            entry.session
            for key, entry in self._access.pool.entries().items()
            if entry.session is not None and workspace.holds(key.root)
        ]
        with anyio.move_on_after(TELL_SECONDS, shield=True):
            await side_by_side(lambda session: self._notify_server(session, effects, moves), sessions)

    async def _notify_server(self, session: Session, effects: Sequence[FileEffect], moves: Sequence[Moved]) -> None:
        ledger, method = self._access.ledgers.of(session), "workspace/didRenameFiles"
        try:
            async with ledger.alone():
                for one in effects:
                    if one.old is not None and one.old != one.new and session.documents.is_open(one.old):
                        ledger.close(session, one.old)
                if session.tell_changes(change for effect in effects for change in _disk_changes(effect)):
                    ledger.note_disk_change()
                wanted = (one for one in moves if wants(session, method, one.old, is_folder=one.is_folder))
                if files := [FileRename(uri_of(one.old), uri_of(one.new)) for one in wanted]:
                    session.notify(method, {"files": files})
        except Failure as failure:
            logger.info("not notified server=%s error=%s", session.server, failure.message)


def _disk_changes(effect: FileEffect) -> Iterator[PathChange]:
    if effect.old == effect.new and effect.old is not None:
        yield PathChange(effect.old, Change.CHANGED)
        return
    if effect.old is not None:
        yield PathChange(effect.old, Change.DELETED)
    if effect.new is not None:
        yield PathChange(effect.new, Change.CREATED)


def _places(proposal: EditProposal) -> int:
    """How many a rename changes."""
    return sum(len(one.edits) if isinstance(one, TextChange) else 1 for one in proposal.edit.plan.operations)


def _is_local(old: str, plan: EditPlan, outline: Sequence[Symbol]) -> bool:
    """Whether all that a rename changes lies in one function, and is not its own name."""
    changes = [one for one in plan.operations if isinstance(one, TextChange)]
    lines = {edit.range.start.line + 1 for change in changes for edit in change.edits}
    functions = (one for one in bodies(outline) if one.symbol.kind in FUNCTIONS and bare_name(one.symbol.name) != old)
    return len(changed_files(plan)) == 1 and any(all(map(one.holds, lines)) for one in functions)


def _lines_left(paths: Sequence[AbsPath], texts: Mapping[AbsPath, str | None], old: str) -> dict[AbsPath, list[int]]:
    """The lines, from 1, that mention the name, by file; `texts` are newer than the disk. Blocking: for a thread."""
    newest = {path: texts.get(path) or head_of(path, MAX_FILE_BYTES).decode(errors="replace") for path in paths}
    return {path: lines for path, text in newest.items() if (lines := lines_with(text, old))}


def _taken(job: Job, subject: Subject, proposal: EditProposal, old: str) -> list[str]:
    """Where another file that the rename changes may have the new name already."""
    new, root, others = job.question.new_name or "", job.workspace.root, changed_files(proposal.edit.plan)
    seen = {path: proposal.seen[path] for path in sorted(others - {subject.path}) if path in proposal.seen}
    found = [(shown_path(path, root), taken_line(text, old, new)) for path, text in seen.items()]
    return [f"{name}:{line} has the name {new} already" for name, line in found if line is not None][:MAX_TAKEN]


@contextmanager
def _consistent(intent: Intent) -> Generator[None]:
    """Turn contradictory edits into a failure of the server."""
    try:
        yield
    except Malformed as malformed:
        server = "the server" if intent.proposal is None else intent.proposal.candidate.spec.id
        message = f"the edits of {server} contradict each other: {malformed}"
        raise ServerFailed(Code.PROTOCOL_ERROR, message) from malformed


def _refuse_uncertain(job: Job, intent: Intent) -> None:
    """A rename that misses a use breaks the code: refuse it until the server has read the whole project."""
    if job.question.operation is Operation.CODE_ACTIONS:
        return
    if intent.doubts:
        message = f"{intent.doubts[0]}: it may not know every use yet, so nothing was changed"
        raise Unavailable(Code.REQUEST_TIMEOUT, message, hint="Try again in a while.")
    if intent.moved is not None and intent.failures:
        raise intent.failures[0]


def _view(job: Job, intent: Intent) -> View:
    proposal, root = intent.proposal, job.workspace.root
    if proposal is None:
        return View(root, "", Encoding.UTF16, {})
    texts = {path: Text(text) for path, text in proposal.seen.items()}
    return View(root, proposal.candidate.spec.id, proposal.encoding, texts)
