"""Restarting and stopping the servers of a workspace, by hand. No command can be named here."""

import logging

from msgspec.structs import replace

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
from pilotfish.service.use_server import Access, ChosenServer
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
        chosen = self._restartable(workspace, server)
        await self._stop(workspace, server)
        outcomes: dict[Key, Restarted] = {}

        async def start(one: ChosenServer) -> None:
            outcomes[one.recipe.key] = await self._start(one, lease)

        async with owned_tasks() as tasks:
            for one in chosen:
                tasks.start_soon(start, one)
        return tuple(outcomes[one.recipe.key] for one in chosen)

    def _restartable(self, workspace: Workspace, server: str) -> tuple[ChosenServer, ...]:
        """Each as it was started: whoever asks may have other variables than the clients that it serves."""
        own, chosen = self._own(workspace, server), dict[Key, ChosenServer]()
        for root in sorted({key.root for key in own}):
            now = self._access.server(workspace, Candidate(workspace.specs[server], root, ""))
            before = [
                entry.recipe for key, entry in own.items() if key.root == root and key.config == now.recipe.key.config
            ]
            recipes = [recipe for recipe in before if recipe is not None] or [now.recipe]
            chosen |= {recipe.key: replace(now, recipe=recipe) for recipe in recipes}
        return tuple(chosen.values())

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

    async def _start(self, chosen: ChosenServer, lease: str) -> Restarted:
        began, root = current_time(), chosen.candidate.root

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
