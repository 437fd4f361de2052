"""Questions that may change files: renames, moves and code actions. Shown by default, written only when asked for.

What is written is what a server wants of texts that we showed it, staged strictly, written all or none
(`service.transaction`), told to the servers, and checked: the answer says what was done and what became of it.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
from msgspec.structs import replace

from pilotfish.api.answers import Action, Answer, Changes, Effort, Feedback, answer_from, error_of
from pilotfish.api.questions import Operation, Question, Touch
from pilotfish.client.session import Session
from pilotfish.errors import Code, Refused, ServerFailed, Unavailable
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.edits.changes import preview, to_confirm
from pilotfish.operations.edits.staged import Staged
from pilotfish.operations.edits.staging import Stage
from pilotfish.operations.lenient import is_null
from pilotfish.operations.results import View
from pilotfish.operations.rows import ROWS, Request
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import EditPlan
from pilotfish.protocol.positions import Text
from pilotfish.servers.resolve import Candidate
from pilotfish.service.changes.code_actions import Acting
from pilotfish.service.changes.commands import Command, refuse_unconfirmed
from pilotfish.service.changes.disk import DiskNow
from pilotfish.service.changes.edit_proposals import Intent, Job, Wanted, Wishes, plan_of
from pilotfish.service.changes.file_moves import Moving
from pilotfish.service.changes.notify_servers import Telling, moved_by
from pilotfish.service.changes.transaction import perform
from pilotfish.service.diagnostics.ledger import FileAtHand
from pilotfish.service.questions.ask import Asking
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time

Touched = Callable[[Touch, ClientSession], Awaitable[Feedback]]
"""What servers say about files that have just changed."""


def changes_files(question: Question) -> bool:
    """Whether a question asks for a change, or to see one; a list of actions is neither."""
    if question.operation is Operation.CODE_ACTIONS:
        return question.apply or question.action is not None
    return ROWS[question.operation].writes


class Applying:
    def __init__(self, access: Access, asking: Asking, *, journals: AbsPath, touched: Touched) -> None:
        self._access = access
        self._asking = asking
        self._journals = journals
        self._touched = touched
        self._wishes = Wishes(access, asking)
        self._moving = Moving(asking, access.texts, self._wishes)
        self._acting = Acting(asking, self._wishes)
        self._telling = Telling(access.pool, access.ledgers)
        self._writing = anyio.Lock()
        """One change at a time: the next one finds the files as this one leaves them."""

    async def run(self, question: Question, client: ClientSession, workspace: Workspace) -> Answer[Any]:
        """Raises `Failure` when a change that was asked for was not made; then no file has changed."""
        started = current_time()
        job = Job(question, client, workspace)
        action: Action | None = None
        if question.operation is Operation.CODE_ACTIONS:
            action, intent = await self._acting.intent(job)
        elif question.operation is Operation.RENAME_FILE:
            intent = await self._moving.intent(job)
        else:
            intent = await self._renaming(job)
        changes, warnings = await (self._applied(job, intent) if question.apply else self._shown(job, intent))
        effort = Effort(
            round((current_time() - started) * 1000),
            intent.hits,
            tuple(map(error_of, intent.failures)),
            (*intent.doubts, *intent.caveats),
            warnings=(*intent.warnings, *warnings, *workspace.blocked()),
        )
        data = changes if action is None else (replace(action, changes=changes),)
        return answer_from(question.operation, data, effort)

    # --- Renaming ----------------------------------------------------------------------------------------------------

    async def _renaming(self, job: Job) -> Intent:
        subject = await self._asking.subject(job.question, job.client, job.workspace)
        candidates = self._asking.candidates(job.question, subject, job.workspace)
        request = _rename_request()

        async def ask(session: Session, candidate: Candidate) -> Wanted | None:
            if subject.path is None or subject.text is None or not session.supports(request.method, subject.path):
                return None
            self._wishes.expect(session, FileAtHand(subject.path, candidate.language_id, subject.text.string))
            asked = await self._asking.asked(session, request, job.question, subject)
            answer = await session.request(request.method, request.build(asked), about=subject.path)
            return Wanted(EditPlan(()) if is_null(answer) else plan_of(session.server, answer))

        heard = await self._wishes.heard(job, candidates, ask)
        if not heard.wishes:
            for failure in heard.failures:
                raise failure
            raise Unavailable(Code.UNSUPPORTED, "No server of this file offers to rename.")
        wish = next((one for one in heard.wishes if one.wanted.plan.operations), heard.wishes[0])
        return Intent(wish.wanted.plan, wish, hits=len(heard.wishes), failures=heard.failures, doubts=heard.doubts)

    # --- Showing -----------------------------------------------------------------------------------------------------

    async def _shown(self, job: Job, intent: Intent) -> tuple[Changes, tuple[str, ...]]:
        """What would be done, and what would keep it from being done."""
        warnings: list[str] = []
        command = None if intent.wish is None else intent.wish.wanted.command
        if command is not None:
            warnings.append(f"then the server runs its command {command.command!r}: only that shows what it changes")
        try:
            stage = await anyio.to_thread.run_sync(_stage, job, intent)
        except Refused as refusal:
            warnings.append(f"it cannot be applied: {refusal.message}")
            with _consistent(intent):
                return preview(intent.plan, _view(job, intent)), tuple(warnings)
        files = stage.staged().changes(job.workspace.root)
        return Changes(applied=False, files=files, confirm=to_confirm(intent.plan)), tuple(warnings)

    # --- Doing -------------------------------------------------------------------------------------------------------

    async def _applied(self, job: Job, intent: Intent) -> tuple[Changes, tuple[str, ...]]:
        _refuse_uncertain(job, intent)
        refuse_unconfirmed(intent.plan)
        await self._look_before(job, intent)
        async with self._writing:
            stage = await self._after_command(job, intent)
            staged = await anyio.to_thread.run_sync(self._write, job, intent, stage)
            # From here on it is done, whoever does not want to wait for the answer any more.
            folder = (intent.moved,) if intent.moved is not None and intent.moved.is_folder else ()
            await self._telling.tell(job.workspace, staged.effects, (*moved_by(staged.effects), *folder))
        paths = [effect.new for effect in staged.effects if effect.new is not None and job.workspace.serves(effect.new)]
        feedback = await self._touched(Touch(tuple(paths), "patch"), job.client) if paths else None
        return Changes(applied=True, files=staged.changes(job.workspace.root), feedback=feedback), ()

    async def _look_before(self, job: Job, intent: Intent) -> None:
        """What is wrong with the files already, so that afterwards it can be told what the change brought."""
        paths = () if intent.wish is None else tuple(path for path in intent.wish.seen if job.workspace.serves(path))
        if paths:
            await self._touched(Touch(paths, "read"), job.client)

    async def _after_command(self, job: Job, intent: Intent) -> Stage | None:
        """What the command of an action has staged, on top of its edit; None without a command."""
        wish = intent.wish
        if wish is None or wish.wanted.command is None:
            return None
        command = Command(wish.wanted.command, wish, job.workspace)
        access = self._access
        return await self._wishes.use(
            job, wish.candidate, lambda session: command.run(session, access.ledgers, access.texts)
        )

    def _write(self, job: Job, intent: Intent, stage: Stage | None) -> Staged:
        """In a worker thread, and to its end: nothing can come between what is looked at and what is written."""
        staged = (stage or _stage(job, intent)).staged()
        perform(staged, self._journals)
        return staged


def _stage(job: Job, intent: Intent) -> Stage:
    wish = intent.wish
    disk = DiskNow(job.workspace.boundary)
    stage = Stage(disk, Encoding.UTF16, {}) if wish is None else Stage(disk, wish.encoding, wish.seen)
    with _consistent(intent):
        stage.perform(intent.plan)
    return stage


@contextmanager
def _consistent(intent: Intent) -> Generator[None]:
    """Edits that contradict each other are the server's fault."""
    try:
        yield
    except Malformed as malformed:
        server = "the server" if intent.wish is None else intent.wish.candidate.spec.id
        message = f"the edits of {server} contradict each other: {malformed}"
        raise ServerFailed(Code.PROTOCOL_ERROR, message) from malformed


def _refuse_uncertain(job: Job, intent: Intent) -> None:
    """A rename that misses a use breaks the code, so it waits until the server knows all of it."""
    if job.question.operation is Operation.CODE_ACTIONS:
        return
    if intent.doubts:
        message = f"{intent.doubts[0]}: it may not know every place yet, so nothing was changed"
        raise Unavailable(Code.REQUEST_TIMEOUT, message, hint="Ask again in a while.")
    if intent.moved is not None and intent.failures:
        raise intent.failures[0]


def _view(job: Job, intent: Intent) -> View:
    wish, root = intent.wish, job.workspace.root
    if wish is None:
        return View(root, "", Encoding.UTF16, {})
    return View(root, wish.candidate.spec.id, wish.encoding, {path: Text(text) for path, text in wish.seen.items()})


def _rename_request() -> Request:
    request = ROWS[Operation.RENAME].request
    assert request is not None
    return request
