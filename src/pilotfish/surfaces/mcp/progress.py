"""What a client hears while it waits: which server is starting, which is indexing.

Told by the second and not by the event: a client that gave a token wants a sign of life, and many extend their own time
limit with each. The words are ours; what a server calls its work is not repeated.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext

from pilotfish.pool.plan import Starting
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

PERIOD_SECONDS = 1.0
"""Between two signs of life. Whatever is answered sooner needs none."""


@asynccontextmanager
async def told(context: ServerRequestContext[Any], service: Service, client: ClientSession) -> AsyncGenerator[None]:
    """Tell how it goes for as long as the block lasts, where the client asked for that."""
    if not context.meta or context.meta.get("progress_token") is None:
        yield
        return
    async with owned_tasks() as tasks:
        tasks.start_soon(_tell, context, service, client)
        yield
        tasks.cancel_scope.cancel()


def waiting_for(service: Service, client: ClientSession) -> str:
    """Why there is no answer yet."""
    workspace = service.workspaces.of(client)
    ours = {key.server: entry for key, entry in service.pool.entries().items() if workspace.holds(key.root)}
    starting = [f"{server} is starting" for server, entry in ours.items() if isinstance(entry.slot, Starting)]
    working = [
        f"{server} is indexing" for server, entry in ours.items() if entry.session and entry.session.readiness.busy
    ]
    return "; ".join(sorted([*starting, *working])) or "waiting for the language servers"


async def _tell(context: ServerRequestContext[Any], service: Service, client: ClientSession) -> None:
    started = current_time()
    while True:
        await anyio.sleep(PERIOD_SECONDS)  # noqa: TID251 -- a sign of life has a period; no answer waits for it
        elapsed = current_time() - started
        await context.session.report_progress(round(elapsed, 3), message=waiting_for(service, client))
