"""Progress notifications while a call waits: how many files were checked, which server is starting, which is indexing.

Sent every second, not per event: a client that gave a token wants a sign of life, and many extend their own time limit
with each. The text is ours; a server's own titles are not repeated.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext

from pilotfish.counting import counted
from pilotfish.pool.plan import Starting
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

PERIOD_SECONDS = 1.0
"""Between two notifications. A call that is answered sooner needs none."""


class CallProgress:
    """How far a call has come, where it is about many files."""

    def __init__(self) -> None:
        self.text = ""

    def checked(self, done: int, total: int) -> None:
        self.text = f"checked {done} of {counted(total, 'file')}"


@asynccontextmanager
async def reporting(
    context: ServerRequestContext[Any], service: Service, client: ClientSession
) -> AsyncGenerator[CallProgress]:
    """Send progress for as long as the block lasts, if the client asked for it."""
    progress = CallProgress()
    if not context.meta or context.meta.get("progress_token") is None:
        yield progress
        return
    async with owned_tasks() as tasks:
        tasks.start_soon(_report, context, service, client, progress)
        yield progress
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


async def _report(
    context: ServerRequestContext[Any], service: Service, client: ClientSession, progress: CallProgress
) -> None:
    started = current_time()
    while True:
        await anyio.sleep(PERIOD_SECONDS)  # noqa: TID251 -- a sign of life has a period; no answer waits for it
        elapsed, waiting = current_time() - started, waiting_for(service, client)
        message = f"{progress.text}; {waiting}" if progress.text else waiting
        await context.session.report_progress(round(elapsed, 3), message=message)
