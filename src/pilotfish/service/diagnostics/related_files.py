"""The files that an edit may have broken elsewhere: those open at its servers, and those that mention it.

Each is checked for real, under the same deadline as the edit, and only a fresh verdict is shown: what a server said
about another file before this edit is not an answer to it.
"""

import os
from collections.abc import Sequence

import anyio
import anyio.to_thread

from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.pool.pool import Pool
from pilotfish.service.diagnostics.dependents import Changed, dependents_of
from pilotfish.service.diagnostics.runner import CheckRunner, FileVerdict, Patience
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time

MAX_OPENED = 8
"""Closed files that are opened for one edit because they mention the changed one."""

MAX_CHECKED = 24
"""Other files that are checked for one edit; more than are ever shown, so that the worst can be chosen."""


class RelatedFiles:
    def __init__(self, pool: Pool, runner: CheckRunner) -> None:
        self._pool = pool
        self._runner = runner

    async def run(
        self, client: ClientSession, workspace: Workspace, edited: Sequence[FileVerdict], deadline: float
    ) -> tuple[FileVerdict, ...]:
        """Fresh verdicts, and files that cannot be read (`refused`); empty when the time is over."""
        left = deadline - current_time()
        if left <= 0 or not any(verdict.answered for verdict in edited):
            return ()
        paths = await self._paths(workspace, edited)
        verdicts: tuple[FileVerdict, ...] = ()
        with anyio.move_on_after(left):
            verdicts = await self._runner.run(client, workspace, paths, patience=Patience(left, left))
        return tuple(verdict for verdict in verdicts if verdict.is_fresh or verdict.refused)

    async def _paths(self, workspace: Workspace, edited: Sequence[FileVerdict]) -> list[AbsPath]:
        own = {verdict.path for verdict in edited}
        servers = {
            outcome.server for verdict in edited for outcome in verdict.outcomes if outcome.diagnostics is not None
        }
        known = [path for path in self._open_at(servers, workspace) if path not in own]
        for verdict in edited:
            extension = os.path.splitext(verdict.path)[1]
            changed = Changed(verdict.path, frozenset({extension}))
            mentioning = await anyio.to_thread.run_sync(dependents_of, changed, workspace.root, MAX_OPENED)
            known += [path for path in mentioning if path not in own]
        return [path for path in dict.fromkeys(known) if self._is_served(workspace, path)][:MAX_CHECKED]

    def _open_at(self, servers: set[str], workspace: Workspace) -> list[AbsPath]:
        """Documents open at these servers, the latest used first."""
        paths: dict[AbsPath, None] = {}
        for key, entry in self._pool.entries().items():
            if entry.session is not None and key.server in servers and workspace.holds(key.root):
                paths.update(dict.fromkeys(reversed(entry.session.documents.paths)))
        return list(paths)

    @staticmethod
    def _is_served(workspace: Workspace, path: AbsPath) -> bool:
        try:
            return os.path.isfile(path) and workspace.serves(path)
        except Refused:
            return False
