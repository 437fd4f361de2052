"""Diagnostics of texts that nobody has written yet, and of the files that they would break (DIAG-9).

The files as they are on disk are checked first, which costs nothing when they were checked before: that is what the
proposed texts are compared with. The verdict on a proposed text is never kept as a state of the file.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from pilotfish.feedback.delta import Change, Delta
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Want, admit
from pilotfish.service.diagnostics.baselines import Baselines
from pilotfish.service.diagnostics.related_files import Others
from pilotfish.service.diagnostics.runner import Checks, FileVerdict, Patience
from pilotfish.service.diagnostics.supposing import Supposed, Supposing, Time
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time


class Previewed(Struct, frozen=True):
    """The verdicts on the files that were asked about, and what changed in those and in the ones they would break."""

    asked: tuple[FileVerdict, ...]
    changes: Mapping[AbsPath, Change]


class Previews:
    def __init__(self, checks: Checks, others: Others, supposing: Supposing, baselines: Baselines) -> None:
        self._checks = checks
        self._others = others
        self._supposing = supposing
        self._baselines = baselines

    async def run(
        self,
        client: ClientSession,
        workspace: Workspace,
        paths: Sequence[str],
        texts: Mapping[str, str],
        patience: Patience,
    ) -> Previewed:
        """Raises `Refused` for a path that is outside, protected or, without a text, not there."""
        workspace.require_enabled()
        wait = workspace.config.timing.diagnostics_wait_timeout_ms / 1000
        proposed = {admit(path, workspace.boundary, Want.TARGET).path: text for path, text in texts.items()}
        asked = {admit(path, workspace.boundary).path for path in paths if path not in texts} | proposed.keys()
        before = await self._checks.run(client, workspace, _on_disk(asked), patience=patience)
        elsewhere = await self._others.run(client, workspace, before, current_time() + wait)
        for verdict in (*before, *elsewhere):
            self._baselines.compared(client, verdict)
        others = {verdict.path: verdict.text for verdict in (*before, *elsewhere) if verdict.path not in proposed}
        time = Time(patience.first or wait, wait)
        after = await self._supposing.run(client, workspace, Supposed(proposed, others), time)
        created = proposed.keys() - {verdict.path for verdict in before}
        changes = {one.path: self._baselines.since(client, one, created=one.path in created) for one in after}
        shown = [one for one in after if one.path in asked or (one.is_fresh and _breaks(changes[one.path]))]
        return Previewed(
            tuple(one for one in shown if one.path in asked), {one.path: changes[one.path] for one in shown}
        )


def _on_disk(paths: Iterable[AbsPath]) -> list[AbsPath]:
    return sorted(path for path in paths if os.path.isfile(path))


def _breaks(change: Change) -> bool:
    return isinstance(change, Delta) and bool(change.introduced)
