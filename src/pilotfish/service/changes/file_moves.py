"""Moving a file or a folder: the imports that must follow, and the move itself.

Servers are asked before the move (`workspace/willRenameFiles`), so their edits are about the files as they are then and
come first. If no server answers, the file is moved all the same, and the answer says that no import was updated.
"""

import os
import re

import anyio.to_thread

from pilotfish.client.session import Session
from pilotfish.errors import Code, Refused
from pilotfish.feedback.word_index import MAX_FILE_BYTES
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staging import exists
from pilotfish.operations.results import is_null
from pilotfish.policy.boundary import Want, admit
from pilotfish.protocol.capabilities import wants_file_operation
from pilotfish.protocol.edits import EditPlan, Rename, Resource
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import FileRename
from pilotfish.servers.resolve import Candidate
from pilotfish.service.changes.edit_proposals import (
    CollectedProposals,
    EditProposals,
    Intent,
    Job,
    Moved,
    ProposedEdit,
    plan_of,
)
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.project import head_of, listed
from pilotfish.service.texts import Texts

WILL_RENAME = "workspace/willRenameFiles"

NOTHING_FOLLOWED = "no server could tell what refers to the old path: imports were not updated"


class FileMoves:
    def __init__(self, questions: QuestionRunner, texts: Texts, proposals: EditProposals) -> None:
        self._questions = questions
        self._texts = texts
        self._proposals = proposals

    async def intent(self, job: Job) -> Intent:
        """Raises `Refused` when the file cannot be moved, or not to that path."""
        moved, text = await self._source(job)
        _refuse_taken(moved)
        collected = await self._collect(job, moved, text)
        proposals = [one for one in collected.proposals if one.edit.plan.operations]
        operations = proposals[0].edit.plan.operations if proposals else ()
        if not any(isinstance(one, Rename) and one.source.path == moved.old for one in operations):
            move = Rename(Resource(uri_of(moved.old), moved.old), Resource(uri_of(moved.new), moved.new))
            operations = (*operations, move)
        return Intent(
            EditPlan(operations),
            proposals[0] if proposals else None,
            moved,
            hits=len(collected.proposals),
            failures=collected.failures,
            doubts=collected.doubts,
            caveats=await self._not_updated(job, moved, collected),
            warnings=tuple(
                f"{one.candidate.spec.id} proposed other edits, which were not applied" for one in proposals[1:]
            ),
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
        # At the end of a path in quotes.
        path_to = re.compile(rf"""["'][^"'\n]*\b{re.escape(name)}(?:\.\w+)?["']""".encode())

        def with_path() -> list[AbsPath]:
            return [path for path in sorted(found or ()) if path_to.search(head_of(path, MAX_FILE_BYTES))]

        files = await anyio.to_thread.run_sync(with_path)
        return (f"imports in {listed(files, job.workspace.root)} were not updated",) if files else ()

    async def _source(self, job: Job) -> tuple[Moved, str | None]:
        """What is moved, and the text of a text file."""
        boundary = job.workspace.boundary
        path, target = job.question.file_path or "", job.question.new_path or ""
        new = admit(target, boundary, Want.TARGET).path
        try:
            old = admit(path, boundary).path
        except Refused as refusal:
            if refusal.code is not Code.NOT_A_FILE:
                raise
            return Moved(admit(path, boundary, Want.TREE).path, new, is_folder=True), None
        try:
            return Moved(old, new), (await self._texts.current(old)).text
        except Refused:
            # Not a text file: it is moved, and no server is sent its text.
            return Moved(old, new), None

    async def _collect(self, job: Job, moved: Moved, text: str | None) -> CollectedProposals:
        """Ask the servers of the file and all that run: a folder has no server of its own."""
        candidates: dict[tuple[str, AbsPath], Candidate] = {}
        if text is not None:
            choice = job.workspace.servers_for(moved.old, text.partition("\n")[0])
            candidates = {(one.spec.id, one.root): one for one in choice.servers}
        for one in self._questions.files.running(job.workspace):
            candidates.setdefault((one.spec.id, one.root), one)

        async def ask(session: Session, candidate: Candidate) -> ProposedEdit | None:
            if not wants(session, WILL_RENAME, moved.old, is_folder=moved.is_folder):
                return None
            if text is not None and candidate.language_id:
                self._proposals.expect(session, FileToSend(moved.old, candidate.language_id, text))
            files = [FileRename(uri_of(moved.old), uri_of(moved.new))]
            answer = await session.request(WILL_RENAME, {"files": files})
            return ProposedEdit(EditPlan(()) if is_null(answer) else plan_of(session, answer))

        return await self._proposals.collect(job, tuple(candidates.values()), ask)


def _refuse_taken(moved: Moved) -> None:
    """Whatever servers would say of such a move, which takes them seconds.

    Where a file system knows no case, `a.py` is there as `A.py`, too, and may be moved there.
    """
    if os.path.lexists(moved.new) and (moved.old == moved.new or not _is_same(moved.old, moved.new)):
        raise exists(moved.new)


def _is_same(one: AbsPath, other: AbsPath) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def wants(session: Session, method: str, path: AbsPath, *, is_folder: bool) -> bool:
    """Whether the server registered for `method` of such a file or folder."""
    return any(
        wants_file_operation(options, path, is_folder=is_folder) for options in session.capabilities.options(method)
    )
