"""Serving MCP over a connection, and how; as the rest of the program sees it.

The SDK takes a second and 30 MB to import, so nothing here needs it: `serve` imports it in a worker thread when the
first client is there, and the loop goes on meanwhile. The servers of the client's folder start beside that: a client
that asks at once waits for the longer of the two. On two processors the handshake comes 0.2 s later for it, and the
first answer 0.5 s sooner. The program that a host starts imports this too, and therefore not the service either.
"""

from __future__ import annotations

import gc
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio.to_thread

from pilotfish.errors import Code, Unavailable
from pilotfish.operations.tools import McpOptions
from pilotfish.system.tasks import owned_tasks

if TYPE_CHECKING:
    from types import ModuleType

    from pilotfish.ipc.client_sessions import OpenSession, Upgraded
    from pilotfish.service.service import Service
    from pilotfish.system.ports import ByteStream

logger = logging.getLogger(__name__)


def require_sdk() -> None:
    """Raise `Unavailable`, with the command that installs it, where the SDK is not installed.

    Finding the package is enough: importing it takes a second.
    """
    if find_spec("mcp") is None:
        from pilotfish.servers.install import extra_command

        hint = extra_command("mcp")
        raise Unavailable(Code.UNSUPPORTED, "MCP needs the Python package mcp, which is not installed.", hint=hint)


async def upgrade(upgraded: Upgraded) -> None:
    """Serve a client of the daemon that asked for MCP."""
    from pilotfish.ipc.messages import read_params

    options = read_params(upgraded.params, McpOptions, McpOptions())
    await serve(upgraded.stream, upgraded.service, upgraded.session, options)


async def serve(
    stream: ByteStream, service: Service, open_session: OpenSession, options: McpOptions | None = None
) -> None:
    """Serve one client until its end of the stream closes; then its sessions end, and nothing else does.

    Raises `Unavailable` where the SDK is not installed.
    """
    require_sdk()
    async with owned_tasks() as tasks:
        tasks.start_soon(_start_servers, service, open_session)
        server = await anyio.to_thread.run_sync(_server)
        await server.serve(stream, service, open_session, options or McpOptions())
        tasks.cancel_scope.cancel()


async def _start_servers(service: Service, open_session: OpenSession) -> None:
    try:
        await service.start_servers(open_session(None))
    except Exception:
        # No call waits for it, so the log is the only place; and an error would end the connection.
        logger.exception("servers were not started ahead")


async def load() -> None:
    """Import the SDK for a client that is about to come and does not wait. Raises as `serve` does."""
    require_sdk()
    await anyio.to_thread.run_sync(_server, abandon_on_cancel=True)


def _server() -> ModuleType:
    # What is imported stays for good: looking through it again and again takes a fifteenth of the time.
    gc.disable()
    try:
        from pilotfish.surfaces.mcp import server
    finally:
        gc.enable()
    return server
