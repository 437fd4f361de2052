"""Running the command of a code action, and collecting the edits that the server sends meanwhile.

As in an editor, the server is first sent the action's own edit, unsaved. Then the command runs: every `applyEdit` is
staged on top and sent back to the server before it is answered. Nothing is written here: the staged edits are written
together, or refused together.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Raw, Struct

from pilotfish.client.session import Session
from pilotfish.errors import Code, Refused, ServerFailed
from pilotfish.model import AbsPath
from pilotfish.operations.edits.changes import to_confirm
from pilotfish.operations.edits.staging import Stage
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import EditPlan, edit_plan
from pilotfish.protocol.wire import ApplyEditResult, WireCommand
from pilotfish.service.changes.disk import DiskNow
from pilotfish.service.changes.edit_proposals import EditProposal, language_at
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.diagnostics.proposals import ProposedTexts, propose_texts
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.system.ports import EditableFiles


class Command(Struct):
    """A command, which runs once: it may do more than send edits, so it is not repeated when the server dies."""

    command: WireCommand
    proposal: EditProposal
    workspace: Workspace
    started: bool = False

    async def run(self, session: Session, ledgers: Ledgers, texts: Texts, files: EditableFiles) -> Stage:
        """The stage after the command has ended; raises `Refused` when any of its edits is not allowed."""
        if self.started:
            raise ServerFailed(Code.SERVER_ERROR, f"{session.server} died during the command, which is not run twice")
        self.started = True
        async with propose_texts(session, ledgers.of(session), texts) as made:
            seen = {**_seen(session), **self.proposal.seen}
            stage = Stage(DiskNow(self.workspace.boundary, files), session.encoding, seen)
            staging = _Staging(stage, made, partial(language_at, session, self.workspace))
            staging.perform(self.proposal.edit.plan)
            with session.taking_edits(staging.stage_edit):
                await session.request("workspace/executeCommand", _params(self.command))
            if staging.refusal is not None:
                raise staging.refusal
            return staging.stage


class _Staging:
    """The stage, and the server that is sent its texts."""

    def __init__(self, stage: Stage, made: ProposedTexts, language: Callable[[AbsPath], str | None]) -> None:
        self.stage = stage
        self.refusal: Refused | None = None
        self._made = made
        self._language = language

    def stage_edit(self, edit: Raw) -> ApplyEditResult:
        """Stage an edit of the server; the first refusal refuses the whole command."""
        try:
            plan = edit_plan(edit)
            refuse_unconfirmed(plan)
            self.perform(plan)
        except Malformed as malformed:
            return self._refused(Refused(Code.PROTOCOL_ERROR, str(malformed)))
        except Refused as refusal:
            return self._refused(refusal)
        return ApplyEditResult(applied=True)

    def perform(self, plan: EditPlan) -> None:
        after = self.stage.copy()
        after.perform(plan)
        before, self.stage = self.stage.texts(), after
        for path, text in after.texts().items():
            language = self._language(path)
            if language is not None and before.get(path) != text:
                self._made.put(path, language, text)

    def _refused(self, refusal: Refused) -> ApplyEditResult:
        self.refusal = self.refusal or refusal
        return ApplyEditResult(applied=False, failure_reason=refusal.message)


def refuse_unconfirmed(plan: EditPlan) -> None:
    """Refuse edits that a person should confirm: no person is here."""
    labels = to_confirm(plan)
    if labels:
        raise Refused(
            Code.NEEDS_CONFIRMATION,
            f"the server asks for confirmation by a person: {'; '.join(labels)}",
            hint="See the preview, and make the change by hand.",
        )


def _seen(session: Session) -> dict[AbsPath, str]:
    return {path: session.documents.text(path).string for path in session.documents.paths}


def _params(command: WireCommand) -> dict[str, object]:
    arguments = {} if command.arguments is None else {"arguments": command.arguments}
    return {"command": command.command, **arguments}
