"""Diagnostics of texts that are not on disk, and of the files that they would break (DIAG-9).

The files on disk are checked first, to compare with; that costs nothing when they were checked before. The verdict on
a proposed text is never kept as a state of the file.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from pilotfish.errors import Refused
from pilotfish.feedback.delta import Comparison, Delta
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Boundary, Want, admit
from pilotfish.service.diagnostics.baselines import Baselines
from pilotfish.service.diagnostics.proposals import ProposalRunner, ProposalTime, ProposedFiles
from pilotfish.service.diagnostics.related_files import RelatedFiles
from pilotfish.service.diagnostics.runner import CheckRunner, FileVerdict, Patience
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time


class Previewed(Struct, frozen=True):
    """The verdicts on the files that were asked about, and what changed in those and in the ones they would break."""

    asked: tuple[FileVerdict, ...]
    changes: Mapping[AbsPath, Comparison]
    related: tuple[FileVerdict, ...] = ()
    """Files elsewhere that the texts may break."""


class Previews:
    def __init__(
        self, runner: CheckRunner, others: RelatedFiles, proposal_runner: ProposalRunner, baselines: Baselines
    ) -> None:
        self._runner = runner
        self._others = others
        self._proposal_runner = proposal_runner
        self._baselines = baselines

    async def run(
        self,
        client: ClientSession,
        workspace: Workspace,
        paths: Sequence[str],
        texts: Mapping[str, str],
        patience: Patience,
    ) -> Previewed:
        """A path that is outside, protected or, without a text, missing is refused in its own verdict.

        Raises `Unavailable` after `"lsp": false`.
        """
        workspace.require_enabled()
        wait = workspace.config.timing.diagnostics_wait_timeout_ms / 1000
        proposed, refused = _admitted(texts, workspace.boundary)
        plain = [path for path in paths if path not in texts]
        created = _missing(proposed)
        on_disk = [*plain, *sorted(proposed.keys() - created)]
        before = await self._runner.run(client, workspace, on_disk, patience=patience)
        # A file with a proposed text need not be readable as it is: then nothing is compared.
        refused += [one for one in before if one.refused and one.path not in proposed]
        elsewhere = await self._others.run(client, workspace, before, current_time() + wait)
        readable = [one for one in (*before, *elsewhere) if not one.refused]
        for verdict in readable:
            self._baselines.compare(client, verdict)
        others = {one.path: one.text for one in readable if one.path not in proposed}
        time = ProposalTime(patience.first or wait, wait)
        after = await self._proposal_runner.run(client, workspace, ProposedFiles(proposed, others), time)
        changes = {one.path: self._baselines.since(client, one, created=one.path in created) for one in after}
        asked = proposed.keys() | {one.path for one in before}
        shown = [one for one in after if one.path in asked or (one.is_fresh and _breaks(changes[one.path]))]
        return Previewed(
            asked=(*(one for one in shown if one.path in asked), *refused),
            changes={one.path: changes[one.path] for one in shown},
            related=elsewhere,
        )


def _admitted(texts: Mapping[str, str], boundary: Boundary) -> tuple[dict[AbsPath, str], list[FileVerdict]]:
    """The texts by real path, and the paths that may not be written."""
    proposed: dict[AbsPath, str] = {}
    refused: list[FileVerdict] = []
    for path, text in texts.items():
        try:
            proposed[admit(path, boundary, Want.TARGET).path] = text
        except Refused as refusal:
            refused.append(FileVerdict(AbsPath(os.path.join(boundary.cwd, path)), "", (), refusal))
    return proposed, refused


def _missing(paths: Iterable[AbsPath]) -> set[AbsPath]:
    return {path for path in paths if not os.path.isfile(path)}


def _breaks(change: Comparison) -> bool:
    return isinstance(change, Delta) and bool(change.introduced)
