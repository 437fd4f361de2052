"""Code actions: finding the one that the caller named, its edit, and running its command.

Actions are listed again for every request, because a list is valid only for the text that it was made for. The action
is then found among those of its own server.

A command is run as in an editor. The server is first sent the action's own edit, unsaved. Then the command runs: every
`applyEdit` is staged on top and sent back to the server before it is answered. Nothing is written here: the staged
edits are written together, or refused together.
"""

from msgspec import Raw
from msgspec.structs import replace

from pilotfish.api.answers import Action
from pilotfish.api.questions import Operation
from pilotfish.client.session import Session
from pilotfish.config.trust import trust_advice
from pilotfish.errors import Code, Refused, ServerFailed
from pilotfish.operations.actions import (
    FoundAction,
    Perform,
    chosen,
    joined_actions,
    read_action,
    read_actions,
    step_of,
)
from pilotfish.operations.edits.changes import to_confirm
from pilotfish.operations.edits.staging import Disk, Stage
from pilotfish.operations.rows import request_of
from pilotfish.protocol.codec import Malformed, items
from pilotfish.protocol.edits import EditPlan, edit_plan
from pilotfish.protocol.wire import ApplyEditResult, WireCommand
from pilotfish.servers.resolve import Candidate
from pilotfish.service.changes.edit_proposals import EditProposal, EditProposals, Intent, Job, ProposedEdit, plan_of
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.diagnostics.proposals import ProposedTexts, propose_texts
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.project import language_at
from pilotfish.service.questions.subject import Subject, require_ok
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace


class CodeActions:
    def __init__(self, questions: QuestionRunner, proposals: EditProposals) -> None:
        self._questions = questions
        self._proposals = proposals

    async def intent(self, job: Job) -> tuple[Action, Intent]:
        """Raises `Refused` when there is no such action, or it cannot be applied."""
        listing = await self._questions.answer(replace(job.question, action=None, apply=False), job.visit)
        require_ok(listing)
        listed = tuple(one for one in listing.data or () if isinstance(one, Action))
        if job.question.action is None:
            raise Refused(Code.INVALID_INPUT, "apply needs action", hint="Give the action's number or title.")
        action = listed[chosen(listed, job.question.action)]
        # Its server may offer several that look the same.
        number = [one for one in listed if _look(one) == _look(action)].index(action)
        subject = await self._questions.subjects.find(job.question, job.visit)
        candidates = await self._questions.candidates(job.question, subject, job.workspace)

        async def ask(session: Session, candidate: Candidate) -> ProposedEdit | None:
            found = await self._offered(job, session, candidate, subject)
            alike = [one for one in found or () if (one.name, one.kind, one.preferred) == _look(action)[1:]]
            if found is None:
                return None
            if number >= len(alike):
                message = f"the action {action.title!r} is no longer offered"
                raise Refused(Code.STALE, message, hint="List the actions again.")
            step = await _resolved(session, subject, alike[number])
            plan = EditPlan(()) if step.edit is None else plan_of(session, step.edit)
            step = _allowed(step, plan, candidate, job.workspace)
            return ProposedEdit(plan, step.command, () if step.warning is None else (step.warning,))

        own = [one for one in candidates if one.spec.id == action.server]
        collected = await self._proposals.collect(job, own, ask)
        for failure in collected.failures:
            raise failure
        proposal = collected.proposals[0]
        return action, Intent(proposal.edit.plan, proposal, hits=1, warnings=proposal.edit.warnings)

    async def _offered(
        self, job: Job, session: Session, candidate: Candidate, subject: Subject
    ) -> tuple[FoundAction, ...] | None:
        """What a server offers now; None where it offers no actions at all."""
        request = request_of(Operation.CODE_ACTIONS)
        if subject.path is None or subject.text is None or not session.supports(request.method, subject.path):
            return None
        self._proposals.expect(session, FileToSend(subject.path, candidate.language_id, subject.text.string))
        contexts = await self._questions.request_contexts(session, request, job.question, subject)
        answers = [
            (await session.request(request.method, request.build(asked), about=subject.path), asked)
            for asked in contexts
        ]
        try:
            return joined_actions([read_actions(answer, asked).found for answer, asked in answers])
        except Malformed as malformed:
            message = f"{session.server} sent a malformed list of actions: {malformed}"
            raise ServerFailed(Code.PROTOCOL_ERROR, message) from malformed


def _look(action: Action) -> tuple[str, str, str | None, bool]:
    return action.server, action.title, action.kind, action.preferred


async def _resolved(session: Session, subject: Subject, action: FoundAction) -> Perform:
    """What doing the action takes, with all that the server leaves to `codeAction/resolve`."""
    if action.is_unresolved and session.supports("codeAction/resolve", subject.path):
        resolved = read_action(await session.request("codeAction/resolve", action.raw, about=subject.path))
        if resolved is None:
            raise ServerFailed(Code.PROTOCOL_ERROR, f"{session.server} resolved {action.name!r} to no action")
        action = resolved
    offers = session.capabilities.options("workspace/executeCommand")
    names = frozenset(name for offer in offers for name in items(offer.get("commands")) if isinstance(name, str))
    return step_of(action, names)


def _allowed(step: Perform, plan: EditPlan, candidate: Candidate, workspace: Workspace) -> Perform:
    """Without a command that may run the project, where nobody trusts it (T7); `plan` is what its edit does."""
    known = () if candidate.spec.shown is None else candidate.spec.shown.commands
    if step.command is None or step.command.command in known or workspace.trusts(candidate.root):
        return step
    why = f"the command {step.command.command!r} may run code of the workspace, which is not trusted"
    if not plan.operations:
        raise Refused(Code.UNTRUSTED, f"the action cannot be done: {why}", hint=trust_advice(workspace.root))
    return Perform(step.edit, None, f"{why}, so it was left out")


# --- Commands ---------------------------------------------------------------------------------------------------------


class Command:
    """A command, which runs once: it may do more than send edits, so it is not repeated when the server dies."""

    def __init__(self, command: WireCommand, proposal: EditProposal, workspace: Workspace, disk: Disk) -> None:
        self._command = command
        self._proposal = proposal
        self._workspace = workspace
        self._stage = Stage(disk, proposal.encoding, {})
        self._started = False
        self._refusal: Refused | None = None

    async def run(self, session: Session, access: Access) -> Stage:
        """The stage after the command has ended; raises `Refused` when any of its edits is not allowed."""
        if self._started:
            raise ServerFailed(Code.SERVER_ERROR, f"{session.server} died during the command, which is not run twice")
        self._started = True
        async with propose_texts(session, access.ledgers.of(session), access.texts) as made:
            seen = {path: session.documents.text(path).string for path in session.documents.paths}
            self._stage = Stage(self._stage.disk, session.encoding, {**seen, **self._proposal.seen})
            self._perform(self._proposal.edit.plan, session, made)
            arguments = {} if self._command.arguments is None else {"arguments": self._command.arguments}
            with session.taking_edits(lambda edit: self._stage_edit(edit, session, made)):
                await session.request("workspace/executeCommand", {"command": self._command.command, **arguments})
            if self._refusal is not None:
                raise self._refusal
            return self._stage

    def _stage_edit(self, edit: Raw, session: Session, made: ProposedTexts) -> ApplyEditResult:
        """Stage an edit of the server; the first refusal refuses the whole command."""
        try:
            plan = edit_plan(edit)
            refuse_unconfirmed(plan)
            self._perform(plan, session, made)
        except (Malformed, Refused) as wrong:
            refusal = wrong if isinstance(wrong, Refused) else Refused(Code.PROTOCOL_ERROR, str(wrong))
            self._refusal = self._refusal or refusal
            return ApplyEditResult(applied=False, failure_reason=refusal.message)
        return ApplyEditResult(applied=True)

    def _perform(self, plan: EditPlan, session: Session, made: ProposedTexts) -> None:
        after = self._stage.copy()
        after.perform(plan)
        before, self._stage = self._stage.texts(), after
        for path, text in after.texts().items():
            language = language_at(session, self._workspace, path)
            if language is not None and before.get(path) != text:
                made.put(path, language, text)


def refuse_unconfirmed(plan: EditPlan) -> None:
    """Refuse edits that a person should confirm: no person is here."""
    labels = to_confirm(plan)
    if labels:
        raise Refused(
            Code.NEEDS_CONFIRMATION,
            f"the server asks for confirmation by a person: {'; '.join(labels)}",
            hint="See the preview, and make the change by hand.",
        )
