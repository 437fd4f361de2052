"""Moving a file or a folder: the imports that must follow, and the move itself.

Servers are asked before the move (`workspace/willRenameFiles`), so their edits are about the files as they are then and
come first. If no server answers, the file is moved all the same, and the answer says that no import was updated.
"""

from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.operations.results import is_null
from pilotfish.policy.boundary import Want, admit
from pilotfish.protocol.edits import EditPlan, Rename, Resource
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import FileRename
from pilotfish.servers.resolve import Candidate
from pilotfish.service.changes.edit_proposals import (
    CollectedProposals,
    EditProposals,
    Intent,
    Job,
    ProposedEdit,
    plan_of,
)
from pilotfish.service.changes.notify_servers import Moved, wants
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.texts import Texts

WILL_RENAME = "workspace/willRenameFiles"

NOTHING_FOLLOWED = "no server could tell what refers to the old path: imports were not updated"


class _Source(Struct, frozen=True):
    """What is moved, and the text of a text file."""

    moved: Moved
    text: str | None


class FileMoves:
    def __init__(self, questions: QuestionRunner, texts: Texts, proposals: EditProposals) -> None:
        self._questions = questions
        self._texts = texts
        self._proposals = proposals

    async def intent(self, job: Job) -> Intent:
        """Raises `Refused` when the file cannot be moved, or not to that path."""
        source = await self._source(job)
        collected = await self._collect(job, source)
        proposal = next((one for one in collected.proposals if one.edit.plan.operations), None)
        left_out = [one for one in collected.proposals if one is not proposal and one.edit.plan.operations]
        return Intent(
            _with_move(EditPlan(()) if proposal is None else proposal.edit.plan, source.moved),
            proposal,
            source.moved,
            hits=len(collected.proposals),
            failures=collected.failures,
            doubts=collected.doubts,
            caveats=() if collected.proposals or collected.failures else (NOTHING_FOLLOWED,),
            warnings=tuple(f"{one.candidate.spec.id} proposed other edits, which were not applied" for one in left_out),
        )

    async def _source(self, job: Job) -> _Source:
        boundary = job.workspace.boundary
        path, target = job.question.file_path or "", job.question.new_path or ""
        new = admit(target, boundary, Want.TARGET).path
        try:
            old = admit(path, boundary).path
        except Refused as refusal:
            if refusal.code is not Code.NOT_A_FILE:
                raise
            return _Source(Moved(admit(path, boundary, Want.TREE).path, new, is_folder=True), None)
        try:
            text = (await self._texts.current(old)).text
        except Refused:
            # Not a text file: it is moved, and no server is sent its text.
            text = None
        return _Source(Moved(old, new), text)

    async def _collect(self, job: Job, source: _Source) -> CollectedProposals:
        """Ask the servers of the file and all that run: a folder has no server of its own."""
        moved = source.moved
        candidates: dict[tuple[str, AbsPath], Candidate] = {}
        if source.text is not None:
            choice = job.workspace.servers_for(moved.old, source.text.partition("\n")[0])
            candidates = {(one.spec.id, one.root): one for one in choice.servers}
        for one in self._questions.main_servers.running(job.workspace):
            candidates.setdefault((one.spec.id, one.root), one)

        async def ask(session: Session, candidate: Candidate) -> ProposedEdit | None:
            if not wants(session, WILL_RENAME, moved.old, is_folder=moved.is_folder):
                return None
            if source.text is not None and candidate.language_id:
                self._proposals.expect(session, FileToSend(moved.old, candidate.language_id, source.text))
            files = [FileRename(uri_of(moved.old), uri_of(moved.new))]
            answer = await session.request(WILL_RENAME, {"files": files})
            return ProposedEdit(EditPlan(()) if is_null(answer) else plan_of(session.server, answer))

        return await self._proposals.collect(job, tuple(candidates.values()), ask)


def _with_move(plan: EditPlan, moved: Moved) -> EditPlan:
    """The edits and then the move, unless the edits contain the move."""
    if any(isinstance(one, Rename) and one.source.path == moved.old for one in plan.operations):
        return plan
    move = Rename(Resource(uri_of(moved.old), moved.old), Resource(uri_of(moved.new), moved.new))
    return EditPlan((*plan.operations, move))
