"""Code actions: finding the one that the caller named, and its edit.

Actions are listed again for every request, because a list is valid only for the text that it was made for. The action
is then found among those of its own server.
"""

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Action
from pilotfish.api.questions import Operation
from pilotfish.client.session import Session
from pilotfish.config.trust import trust_advice
from pilotfish.errors import Bug, Code, Refused, ServerFailed
from pilotfish.operations.actions import (
    FoundAction,
    Perform,
    Resolve,
    chosen,
    joined_actions,
    next_step,
    read_action,
    read_actions,
)
from pilotfish.operations.rows import request_of
from pilotfish.protocol.codec import Malformed, items
from pilotfish.protocol.edits import EditPlan
from pilotfish.servers.resolve import Candidate
from pilotfish.service.changes.edit_proposals import EditProposals, Intent, Job, ProposedEdit, plan_of
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.subject import Subject, require_ok
from pilotfish.service.workspace import Workspace


class _Named(Struct, frozen=True):
    """The n-th action of a server with this title, kind and preference."""

    title: str
    kind: str | None
    preferred: bool
    number: int

    def among(self, found: tuple[FoundAction, ...]) -> FoundAction:
        alike = [one for one in found if (one.name, one.kind, one.preferred) == (self.title, self.kind, self.preferred)]
        if self.number >= len(alike):
            raise Refused(Code.STALE, f"the action {self.title!r} is no longer offered", hint="List the actions again.")
        return alike[self.number]


class CodeActions:
    def __init__(self, questions: QuestionRunner, proposals: EditProposals) -> None:
        self._questions = questions
        self._proposals = proposals

    async def intent(self, job: Job) -> tuple[Action, Intent]:
        """Raises `Refused` when there is no such action, or it cannot be applied."""
        listed = await self._list(job)
        if job.question.action is None:
            raise Refused(Code.INVALID_INPUT, "apply needs action", hint="Give the action's number or title.")
        action = listed[chosen(listed, job.question.action)]
        subject = await self._questions.subjects.find(job.question, job.visit)
        candidates = await self._questions.candidates(job.question, subject, job.workspace)
        named = _named(action, listed)

        async def ask(session: Session, candidate: Candidate) -> ProposedEdit | None:
            return await self._propose(job, session, candidate, subject, named)

        own = [one for one in candidates if one.spec.id == action.server]
        collected = await self._proposals.collect(job, own, ask)
        for failure in collected.failures:
            raise failure
        proposal = collected.proposals[0]
        return action, Intent(proposal.edit.plan, proposal, hits=1, warnings=proposal.edit.warnings)

    async def _list(self, job: Job) -> tuple[Action, ...]:
        question = replace(job.question, action=None, apply=False)
        answer = await self._questions.answer(question, job.visit)
        require_ok(answer)
        return tuple(one for one in answer.data or () if isinstance(one, Action))

    async def _propose(
        self, job: Job, session: Session, candidate: Candidate, subject: Subject, named: _Named
    ) -> ProposedEdit | None:
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
            found = joined_actions([read_actions(answer, asked).found for answer, asked in answers])
        except Malformed as malformed:
            raise ServerFailed(
                Code.PROTOCOL_ERROR, f"{session.server} sent a malformed list of actions: {malformed}"
            ) from malformed
        step = await _resolve(session, subject, named.among(found))
        plan = EditPlan(()) if step.edit is None else plan_of(session, step.edit)
        step = _allowed(step, plan, candidate, job.workspace)
        return ProposedEdit(plan, step.command, () if step.warning is None else (step.warning,))


async def _resolve(session: Session, subject: Subject, action: FoundAction) -> Perform:
    """The action with all that the server leaves to `codeAction/resolve`."""
    commands = _commands(session)
    step = next_step(action, resolves=session.supports("codeAction/resolve", subject.path), commands=commands)
    if isinstance(step, Resolve):
        resolved = read_action(await session.request("codeAction/resolve", step.action, about=subject.path))
        if resolved is None:
            raise ServerFailed(Code.PROTOCOL_ERROR, f"{session.server} resolved {action.name!r} to no action")
        step = next_step(resolved, resolves=False, commands=commands)
    if isinstance(step, Resolve):
        raise Bug("an action was to be resolved twice")
    return step


def _allowed(step: Perform, plan: EditPlan, candidate: Candidate, workspace: Workspace) -> Perform:
    """Without a command that may run the project, where nobody trusts it (T7); `plan` is what its edit does."""
    known = () if candidate.spec.shown is None else candidate.spec.shown.commands
    if step.command is None or step.command.command in known or workspace.trusts(candidate.root):
        return step
    why = f"the command {step.command.command!r} may run code of the workspace, which is not trusted"
    if not plan.operations:
        raise Refused(Code.UNTRUSTED, f"the action cannot be done: {why}", hint=trust_advice(workspace.root))
    return Perform(step.edit, None, f"{why}, so it was left out")


def _commands(session: Session) -> frozenset[str]:
    """The commands that the server offers to run."""
    offers = session.capabilities.options("workspace/executeCommand")
    return frozenset(name for offer in offers for name in items(offer.get("commands")) if isinstance(name, str))


def _named(action: Action, listed: tuple[Action, ...]) -> _Named:
    before = [one for one in listed[: listed.index(action)] if _look(one) == _look(action)]
    return _Named(action.title, action.kind, action.preferred, len(before))


def _look(action: Action) -> tuple[str, str, str | None, bool]:
    return action.server, action.title, action.kind, action.preferred
