"""Moving a file or a folder: the imports that must follow, and the move itself.

Servers are asked before the move (`workspace/willRenameFiles`), so their edits are about the files as they are then and
come first. If no server answers, the file is moved all the same, and the answer says that no import was updated.
"""

import os
import re
from collections.abc import Sequence

import anyio.to_thread
from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.errors import Code, Refused
from pilotfish.feedback.word_index import MAX_FILE_BYTES
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
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.completeness import head_of, listed
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
            caveats=await self._not_updated(job, source.moved, collected),
            warnings=tuple(f"{one.candidate.spec.id} proposed other edits, which were not applied" for one in left_out),
        )

    async def _not_updated(self, job: Job, moved: Moved, collected: CollectedProposals) -> tuple[str, ...]:
        """Files that import what is moved, and whose servers do not say how they should then."""
        if not collected.proposals:
            return () if collected.failures else (NOTHING_FOLLOWED,)
        name, extension = os.path.splitext(os.path.basename(moved.old))
        importing = component_servers(job.workspace, [extension])
        kinds = {extension, *(one for spec in importing for one in spec.files.extensions)}
        kinds -= {one for proposal in collected.proposals for one in proposal.candidate.spec.extensions}
        found = await self._questions.files.mentioning(job.workspace, job.workspace.root, name, kinds) if kinds else ()
        files = await anyio.to_thread.run_sync(_importing, name, sorted(found or ()))
        return (f"imports in {listed(files, job.workspace.root)} were not updated",) if files else ()

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
            return ProposedEdit(EditPlan(()) if is_null(answer) else plan_of(session, answer))

        return await self._proposals.collect(job, tuple(candidates.values()), ask)


def _importing(name: str, paths: Sequence[AbsPath]) -> list[AbsPath]:
    """The files that have the name at the end of a path in quotes. Blocking: for a thread."""
    path_to = re.compile(rf"""["'][^"'\n]*\b{re.escape(name)}(?:\.\w+)?["']""".encode())
    return [path for path in paths if path_to.search(head_of(path, MAX_FILE_BYTES))]


def _with_move(plan: EditPlan, moved: Moved) -> EditPlan:
    """The edits and then the move, unless the edits contain the move."""
    if any(isinstance(one, Rename) and one.source.path == moved.old for one in plan.operations):
        return plan
    move = Rename(Resource(uri_of(moved.old), moved.old), Resource(uri_of(moved.new), moved.new))
    return EditPlan((*plan.operations, move))
