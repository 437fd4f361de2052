"""`pilotfish mcp`: MCP over standard input and output.

The program copies messages to and from the daemon, which has the SDK and the language servers, and imports neither. It
ends when the host does. Without a daemon, it serves in its own process.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
from msgspec import to_builtins

from pilotfish.errors import Unavailable
from pilotfish.ipc.client import Introduction
from pilotfish.model import AbsPath
from pilotfish.surfaces.daemon_stream import open_upgraded
from pilotfish.surfaces.mcp.lasting import LastingConnection
from pilotfish.surfaces.mcp.options import McpOptions, require_sdk
from pilotfish.system.standard_streams import take_standard_streams, until_signalled

if TYPE_CHECKING:
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.system.ports import ByteStream


def run(carry: Callable[[ByteStream], Awaitable[None]]) -> None:
    """Serve the host that started this process with `carry`, until it closes its end."""
    require_sdk()
    with take_standard_streams() as host:
        anyio.run(carry, host)


async def by_daemon(options: McpOptions, host: ByteStream) -> None:
    """Have the daemon serve, which is started when none runs; the workspace is around the current folder."""
    connection = LastingConnection(
        host, partial(open_upgraded, Introduction(cwd=os.getcwd()), "mcp", to_builtins(options))
    )
    try:
        await until_signalled(connection.serve)
    except Unavailable:
        if connection.began:
            raise
        await in_process(options, host)


async def in_process(options: McpOptions, host: ByteStream) -> None:
    """Serve with a service of our own, whose servers end with it."""
    from pilotfish.library.workspace import computer
    from pilotfish.service.service import Service
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.surfaces.mcp.connection import serve
    from pilotfish.system.worktree import top_of

    here = AbsPath(os.getcwd())

    def session(root: AbsPath | None) -> ClientSession:
        return ClientSession(f"mcp {root}", root or AbsPath(top_of(here)), root or here)

    async with Service(computer(os.environ)).running() as service:
        await until_signalled(partial(serve, host, service, session, options))
