"""How checks, questions and changes reach servers: every use of one, with its time limit, passes through here."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.config.schema import RestartPolicy
from pilotfish.errors import Code, Failure, Scene, ServerFailed, Unavailable
from pilotfish.pool.entry import Recipe
from pilotfish.pool.pool import Pool
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.system.clock import current_time

GRACE_SECONDS = 0.5
"""A check ends by itself at its deadline and says how far it came; this only ends one that does not."""

T = TypeVar("T")


class ChosenServer(Struct, frozen=True):
    """A server of a workspace, and how to start it."""

    candidate: Candidate
    recipe: Recipe
    restart: RestartPolicy


class Access(Struct, frozen=True):
    """The pool, what was sent to its sessions, and the texts on disk."""

    pool: Pool
    ledgers: Ledgers
    texts: Texts

    def server(self, workspace: Workspace, candidate: Candidate) -> ChosenServer:
        recipe = workspace.recipe(candidate, self.ledgers.restore)
        return ChosenServer(candidate, recipe, workspace.settings(candidate.spec.id).restart)

    async def use_server(
        self,
        server: ChosenServer,
        lease: str,
        work: Callable[[Session], Awaitable[T]],
        *,
        seconds: float,
        grace: float = 0.0,
    ) -> T:
        """Run `work` on the server's session, which is started if need be; `work` runs again if the server dies.

        Starting and working take at most `seconds`; work that has begun has `grace` more, to end by itself.
        Raises a `Failure`: of the pool, of `work`, or `ETIMEDOUT` when the time is over.
        """
        deadline, has_begun = current_time() + seconds, False

        async def begin(session: Session) -> T:
            nonlocal has_begun
            has_begun = True
            scope.deadline = deadline + grace
            return await work(session)

        with anyio.CancelScope(deadline=deadline) as scope:
            return await self.pool.use(server.recipe, begin, lease=lease, restart=server.restart)
        raise _timeout(server.candidate, seconds, has_begun=has_begun)


def _timeout(candidate: Candidate, seconds: float, *, has_begun: bool) -> Failure:
    server, scene = candidate.spec.id, Scene(server=candidate.spec.id, root=candidate.root)
    if has_begun:
        return ServerFailed(Code.REQUEST_TIMEOUT, f"{server} did not answer within {seconds:.3g} s", scene=scene)
    return Unavailable(Code.REQUEST_TIMEOUT, f"{server} did not start within {seconds:.3g} s", scene=scene)
