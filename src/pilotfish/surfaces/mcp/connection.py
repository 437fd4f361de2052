"""An MCP connection as the rest of the program sees it: a wire, whose sessions, how the tools appear.

The SDK takes a second and 30 MB to import, so nothing here needs it: `serve` imports it in a worker thread when the
first client is there, and the loop goes on meanwhile.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Protocol

import anyio.to_thread
from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.operations.schemas import ToolSet
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.mcp.sdk import require_sdk


class Wire(Protocol):
    """Two byte streams, whatever carries them. One reader and one writer at a time."""

    async def receive(self) -> bytes:
        """What comes next; empty at the end."""
        ...

    async def send(self, data: bytes) -> None:
        """Write all of `data`; raise `BrokenPipe` when the other end is gone, `Stalled` when it takes nothing."""


Sessions = Callable[[AbsPath | None], ClientSession]
"""Makes the client session for a root that the client named; for None, that of the folder it was started in."""


class Options(Struct, frozen=True):
    """How the tools appear. `tools` is None where the configuration decides."""

    tools: ToolSet | None = None


async def serve(wire: Wire, service: Service, sessions: Sessions, options: Options | None = None) -> None:
    """Serve one client until its end of the wire closes; its sessions are ended then, and nothing else is.

    Raises `Unavailable` where the SDK is not installed.
    """
    require_sdk()
    server = await anyio.to_thread.run_sync(_server)
    await server.serve(wire, service, sessions, options or Options())


def _server() -> ModuleType:
    from pilotfish.surfaces.mcp import server as mcp_server

    return mcp_server
