"""What a first edit changed: the file as it was before is judged, and what it had then is not new (DIAG-8).

From the second edit on the last fresh state is there to compare with. For the first one the text before the edit is
shown to the servers for a moment, as a preview is, and only where there is something to tell apart: a file without
findings needs no past.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

import anyio.to_thread
from msgspec import Struct, field

from pilotfish.errors import Refused
from pilotfish.feedback.delta import CheckedText, Comparison, delta
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.baselines import NO_FILE
from pilotfish.service.diagnostics.earlier_texts import EarlierTexts
from pilotfish.service.diagnostics.proposals import IMPOSSIBLE, ProposalRunner, ProposalTime, ProposedFiles
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.git import changed_files, committed_content

MAX_UNCOMMITTED = 100
"""Half of the texts that are kept."""


class Compared(Struct, frozen=True):
    """What changed in files; of those that are `late`, a server has not answered in time."""

    changes: Mapping[AbsPath, Comparison] = field(default_factory=dict[AbsPath, Comparison])
    late: frozenset[AbsPath] = frozenset()


class Earlier:
    def __init__(self, proposal_runner: ProposalRunner) -> None:
        self.texts = EarlierTexts()
        self._proposal_runner = proposal_runner

    async def text_before(self, workspace: Workspace, verdict: FileVerdict, said: str | None) -> str | None:
        """The text before the edit; None where nobody knows it. `said`: what the host tells."""
        git = workspace.program("git")
        committed = None if git is None else partial(committed_content, git)
        return await self.texts.before(verdict.path, verdict.text, said, committed)

    async def remember_uncommitted(self, workspace: Workspace, texts: Texts) -> None:
        """The texts of files that differ from the last commit, as they are now; of very many, the first ones."""
        git = workspace.program("git")
        changed = None if git is None else await anyio.to_thread.run_sync(changed_files, git, workspace.root)
        served = [path for path in changed or () if workspace.serves(path)]
        for path in served[:MAX_UNCOMMITTED]:
            with suppress(Refused):  # binary, or too large
                self.texts.saw_first(path, (await texts.current(path)).text)

    async def compare(
        self,
        client: ClientSession,
        workspace: Workspace,
        verdicts: Sequence[FileVerdict],
        before: Mapping[AbsPath, str],
        seconds: float,
    ) -> "Compared":
        """The change of each file whose state before the edit, when it had the text in `before`, is had in time."""
        now = {verdict.path: verdict for verdict in verdicts}
        states = {path: NO_FILE for path, text in before.items() if not text}
        states |= {path: _state(now[path]) for path, text in before.items() if text == now[path].text}
        proposed = {path: text for path, text in before.items() if path not in states}
        late = frozenset[AbsPath]()
        if proposed:
            judged = await self._proposal_runner.run(
                client, workspace, ProposedFiles(proposed), ProposalTime(seconds, seconds)
            )
            states |= {verdict.path: _state(verdict) for verdict in judged if verdict.is_fresh}
            late = frozenset(verdict.path for verdict in judged if _may_follow(verdict))
        return Compared({path: delta(state, _state(now[path])) for path, state in states.items()}, late)


def _may_follow(verdict: FileVerdict) -> bool:
    return any(outcome.is_late and outcome.why not in IMPOSSIBLE for outcome in verdict.outcomes)


def _state(verdict: FileVerdict) -> CheckedText:
    return CheckedText(verdict.text, verdict.diagnostics)
