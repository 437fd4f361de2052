"""Progress notifications while a call waits: which server is starting, which is indexing.

Sent every second, not per event: a client that gave a token wants a sign of life, and many extend their own time limit
with each. The text is ours; a server's own titles are not repeated.
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
"""Between two notifications. A call that is answered sooner needs none."""


@asynccontextmanager
async def reporting(
    context: ServerRequestContext[Any], service: Service, client: ClientSession
) -> AsyncGenerator[None]:
    """Send progress for as long as the block lasts, if the client asked for it."""
    if not context.meta or context.meta.get("progress_token") is None:
        yield
        return
    async with owned_tasks() as tasks:
        tasks.start_soon(_report, context, service, client)
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


async def _report(context: ServerRequestContext[Any], service: Service, client: ClientSession) -> None:
    started = current_time()
    while True:
        await anyio.sleep(PERIOD_SECONDS)  # noqa: TID251 -- a sign of life has a period; no answer waits for it
        elapsed = current_time() - started
        await context.session.report_progress(round(elapsed, 3), message=waiting_for(service, client))
