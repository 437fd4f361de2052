"""`pilotfish mcp`: MCP over standard input and output.

The program itself understands nothing: it carries bytes to and from a service that holds the SDK and the language
servers, and imports neither. It ends when either side does.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio

from pilotfish.host.ports import BrokenPipe, Stalled
from pilotfish.host.tasks import owned_tasks
from pilotfish.model import AbsPath
from pilotfish.surfaces.standard_streams import standard_wire, until_signalled

if TYPE_CHECKING:
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.surfaces.mcp_connection import Options, Wire

DRAIN_SECONDS = 2.0
"""After the host has closed its end, for answers that are on their way."""


def run(carry: Callable[[Wire], Awaitable[None]]) -> None:
    """Let `carry` serve the host that started this process until it closes its end."""
    with standard_wire() as wire:
        anyio.run(carry, wire)


async def relay(here: Wire, there: Wire, end_there: Callable[[], Awaitable[None]]) -> None:
    """Carry bytes both ways until either side ends; `end_there` tells the far side that nothing more will come."""
    async with owned_tasks() as tasks:

        async def back() -> None:
            await _pump(there, here)
            tasks.cancel_scope.cancel()

        tasks.start_soon(back)
        await _pump(here, there)
        await end_there()
        tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS


async def in_process(options: Options, wire: Wire) -> None:
    """Serve with a service of our own, whose servers end with it; a signal ends it as well."""
    from pilotfish.library.workspace import computer
    from pilotfish.service.service import Service
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.surfaces.mcp_connection import serve

    here = AbsPath(os.getcwd())

    def session(root: AbsPath | None) -> ClientSession:
        folder = root or here
        return ClientSession(f"mcp {os.getpid()} {folder}", folder, folder)

    async with Service(computer(os.environ)).running() as service:
        await until_signalled(partial(serve, wire, service, session, options))


async def _pump(source: Wire, sink: Wire) -> None:
    try:
        while data := await source.receive():
            await sink.send(data)
    except (BrokenPipe, Stalled):
        # Whoever was to read this is gone: the same as the end of what it would say.
        return
