"""Restarting and stopping the servers of a workspace, by hand. No command can be named here."""

import logging

from pilotfish.api.status import Restarted
from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Key, Starting, Stopping, Why
from pilotfish.pool.plan import Running as RunningSlot
from pilotfish.sanitise import sanitised
from pilotfish.servers.resolve import Candidate
from pilotfish.service.status.details import require_known
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

START_SECONDS = 75.0
"""For a restarted server to answer `initialize`: the largest limit of the catalogue is 60 s."""

MAX_MESSAGE = 2000


class ServerControl:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._pool = access.pool

    async def restart(self, workspace: Workspace, server: str, lease: str) -> tuple[Restarted, ...]:
        """Restart a server in every root of the workspace where it runs or has failed."""
        require_known(workspace, server)
        roots = sorted({key.root for key in self._own(workspace, server)})
        await self._stop(workspace, server)
        outcomes: dict[AbsPath, Restarted] = {}

        async def start(root: AbsPath) -> None:
            outcomes[root] = await self._start(workspace, server, root, lease)

        async with owned_tasks() as tasks:
            for root in roots:
                tasks.start_soon(start, root)
        return tuple(outcomes[root] for root in roots)

    async def halt(self, workspace: Workspace, server: str) -> tuple[AbsPath, ...]:
        """Stop a server in the workspace; it starts again on use. Returns the roots where it ran."""
        require_known(workspace, server)
        return await self._stop(workspace, server)

    async def _stop(self, workspace: Workspace, server: str) -> tuple[AbsPath, ...]:
        own = self._own(workspace, server)
        ran = {key.root for key, entry in own.items() if isinstance(entry.slot, RunningSlot | Starting | Stopping)}
        logger.info("stopping on request server=%s roots=%s", server, sorted(ran))
        async with owned_tasks() as tasks:
            for key in own:
                tasks.start_soon(self._pool.stop, key, Why.ASKED)
        for key in own:
            self._pool.forgive(key)
        return tuple(sorted(ran))

    async def _start(self, workspace: Workspace, server: str, root: AbsPath, lease: str) -> Restarted:
        began = current_time()
        chosen = self._access.server(workspace, Candidate(workspace.specs[server], root, ""))

        async def pid(session: Session) -> int:
            return session.pid

        try:
            started = await self._access.use_server(chosen, lease, pid, seconds=START_SECONDS)
        except Failure as failure:
            return Restarted(root=root, error=sanitised(failure.message, MAX_MESSAGE))
        return Restarted(root=root, pid=started, duration_ms=round((current_time() - began) * 1000))

    def _own(self, workspace: Workspace, server: str) -> dict[Key, Entry]:
        entries = self._pool.entries().items()
        return {key: entry for key, entry in entries if key.server == server and workspace.holds(key.root)}
