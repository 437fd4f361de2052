"""Edits that servers propose, and the texts that they are about.

An edit is a list of places in texts as the server knows them. Every file that it changes is sent to the server as it is
on disk, and the server is asked again, so that the places are in texts that we sent. What a server knows of a file that
it was never sent may be years old.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw, Struct
from msgspec.structs import replace

from pilotfish.api.questions import Question
from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Refused, ServerFailed
from pilotfish.model import AbsPath, Encoding
from pilotfish.policy.boundary import Want, admit
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import EditPlan, TextChange, edit_plan
from pilotfish.protocol.wire import WireCommand
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.project import language_at
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.ownership import is_of_linked_worktree
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import side_by_side

MAX_ASKS = 3
"""Once, again after it was sent the files, and once more should a file have changed meanwhile."""

T = TypeVar("T")


class Job(Struct, frozen=True):
    """A question that may change files, and who asks it."""

    question: Question
    visit: Visit

    @property
    def workspace(self) -> Workspace:
        return self.visit.workspace


class ProposedEdit(Struct, frozen=True):
    """One server's answer."""

    plan: EditPlan
    command: WireCommand | None = None
    """To run after the edit."""
    warnings: tuple[str, ...] = ()


class EditProposal(Struct, frozen=True):
    """What one server proposes, and its texts of the files that would change."""

    candidate: Candidate
    encoding: Encoding
    edit: ProposedEdit
    seen: Mapping[AbsPath, str]
    caveat: str | None = None


AskServer = Callable[[Session, Candidate], Awaitable[ProposedEdit | None]]
"""Asks one server; None when it does not offer the operation."""


class CollectedProposals(Struct, frozen=True):
    """The proposals of all servers, and the failures of the others."""

    proposals: tuple[EditProposal, ...]
    failures: tuple[Failure, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        return tuple(proposal.caveat for proposal in self.proposals if proposal.caveat is not None)


class Moved(Struct, frozen=True):
    """A file or folder with its old and new path."""

    old: AbsPath
    new: AbsPath
    is_folder: bool = False


class Intent(Struct, frozen=True):
    """What to do, and which server proposed it."""

    plan: EditPlan
    proposal: EditProposal | None = None
    """None: no server was needed, as for a plain move."""
    moved: Moved | None = None
    """What the caller asked to move."""
    hits: int = 0
    """How many servers answered."""
    failures: tuple[Failure, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why servers may not know every place yet."""
    caveats: tuple[str, ...] = ()
    """What no server answered."""
    warnings: tuple[str, ...] = ()
    renamed: str | None = None
    """The old name, where other files may mention it."""


class EditProposals:
    def __init__(self, access: Access, questions: QuestionRunner) -> None:
        self._questions = questions
        self._ledgers = access.ledgers
        self._texts = access.texts
        self._access = access

    async def collect(self, job: Job, candidates: Sequence[Candidate], ask: AskServer) -> CollectedProposals:
        """Ask all candidates at the same time; the results are in their order."""

        async def one(candidate: Candidate) -> EditProposal | Failure | None:
            try:
                return await self.use(job, candidate, lambda session: self._proposal_of(job, session, candidate, ask))
            except Failure as failure:
                return failure

        answers = await side_by_side(one, candidates)
        return CollectedProposals(
            tuple(answer for answer in answers if isinstance(answer, EditProposal)),
            tuple(answer for answer in answers if isinstance(answer, Failure)),
        )

    def expect(self, session: Session, file: FileToSend) -> None:
        """Send the text unless the server has it; raises `Refused` when the server has another one, which is newer."""
        documents = session.documents
        if not documents.is_open(file.path):
            self._send(session, file.path, file.language_id, file.text)
        elif documents.text(file.path).string != file.text:
            raise Refused(Code.STALE, f"{file.path} has changed since the question was asked", hint="Try again.")

    async def use(self, job: Job, candidate: Candidate, work: Callable[[Session], Awaitable[T]]) -> T:
        """Run `work` on the candidate's session, with time to ask it as often as allowed. Raises a `Failure`."""
        timing = job.workspace.settings(candidate.spec.id).timing
        seconds = (timing.initialize_timeout_ms + MAX_ASKS * timing.request_timeout_ms) / 1000
        server = self._access.server(job.workspace, candidate)
        return await self._access.use_server(server, job.visit.client.id, work, seconds=seconds)

    async def _proposal_of(
        self, job: Job, session: Session, candidate: Candidate, ask: AskServer
    ) -> EditProposal | None:
        async with self._ledgers.of(session).shared():
            caveat = await self._questions.wait_for_index(session, candidate)
            for _ in range(MAX_ASKS):
                await self._catch_up(session)
                edit = await ask(session, candidate)
                if edit is None:
                    return None
                shown, documents = await self._show(session, job.workspace, edit.plan), session.documents
                changes = _open_changes(session, edit.plan)
                is_current = all(one.version in {None, documents.version(path)} for path, one in changes)
                if is_current and not shown:
                    seen = {path: documents.text(path).string for path, _ in changes}
                    return EditProposal(candidate, session.encoding, edit, seen, caveat)
        raise Refused(Code.STALE, f"the files change faster than {session.server} answers", hint="Try again.")

    async def _catch_up(self, session: Session) -> None:
        """Send the texts of open documents that changed on disk, before the server is asked."""
        for path in session.documents.paths:
            try:
                file = await self._texts.current(path)
            except Refused:
                # It is gone: an edit of it is refused when it is staged.
                continue
            if session.documents.is_open(path):
                self._send(session, path, session.documents.language_id(path) or "", file.text)

    async def _show(self, session: Session, workspace: Workspace, plan: EditPlan) -> bool:
        """Send the server the files that it wants to change; True if any of these texts was new to it."""
        shown = False
        for path in _texts_of(plan):
            try:
                real = admit(path, workspace.boundary, Want.TARGET).path
                text = (await self._texts.current(real)).text
            except Refused:
                # Staging refuses it with the reason, unless the plan creates the file.
                continue
            language = language_at(session, workspace, real)
            if language is not None:
                shown = self._send(session, real, language, text) or shown
        return shown

    def _send(self, session: Session, path: AbsPath, language_id: str, text: str) -> bool:
        documents = session.documents
        if documents.is_open(path) and documents.text(path).string == text:
            return False
        self._ledgers.of(session).send(session, FileToSend(path, language_id, text))
        return True


def plan_of(session: Session, answer: Raw) -> EditPlan:
    """Read a server's workspace edit, but for other worktrees that it knows; raises `ServerFailed` when malformed.

    Files that it names without an edit, as some servers do with all that they have looked at, are left out as well.
    """
    try:
        plan = edit_plan(answer)
    except Malformed as malformed:
        message = f"{session.server} sent a malformed edit: {malformed}"
        raise ServerFailed(Code.PROTOCOL_ERROR, message) from malformed
    elsewhere = {path for path in _texts_of(plan) if is_of_linked_worktree(path, session.root)}
    kept = (
        one
        for one in plan.operations
        if not isinstance(one, TextChange) or (one.edits and one.resource.path not in elsewhere)
    )
    return EditPlan(tuple(kept))


def with_component(base: EditProposal, there: Sequence[EditProposal], imported: str, new: str) -> EditProposal | None:
    """A rename together with its part in files that only the servers of a component read; None: they have none.

    They keep the exported name, and import it as the new one (`imported`): after the rename it has the new name.
    """
    known = changed_files(base.edit.plan)
    for one in there:
        if not one.edit.plan.operations or one.encoding is not base.encoding:
            continue
        changes = [
            replace(
                change,
                edits=tuple(
                    replace(edit, new_text=new) if edit.new_text == imported else edit for edit in change.edits
                ),
            )
            for change in one.edit.plan.operations
            if isinstance(change, TextChange) and not known.issuperset(changed_files(EditPlan((change,))))
        ]
        plan = replace(base.edit.plan, operations=(*base.edit.plan.operations, *changes))
        return replace(base, edit=replace(base.edit, plan=plan), seen={**one.seen, **base.seen})
    return None


def changed_files(plan: EditPlan) -> set[AbsPath]:
    """The files whose text an edit changes."""
    return {AbsPath(real_path(path)) for path in _texts_of(plan)}


def _open_changes(session: Session, plan: EditPlan) -> list[tuple[AbsPath, TextChange]]:
    """The changes of texts that the server was sent, with their real paths."""
    changes = [one for one in plan.operations if isinstance(one, TextChange) and one.resource.path is not None]
    placed = [(AbsPath(real_path(one.resource.path or "")), one) for one in changes]
    return [(path, one) for path, one in placed if session.documents.is_open(path)]


def _texts_of(plan: EditPlan) -> list[AbsPath]:
    changes = (operation.resource.path for operation in plan.operations if isinstance(operation, TextChange))
    return [path for path in dict.fromkeys(changes) if path is not None]
