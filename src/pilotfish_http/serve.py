"""`serve`, an upgrade of a connection to the daemon: listen on loopback for as long as its client stays connected.

The client sends an empty line. The daemon answers with a line of JSON: where it listens and where the token is, or why
it cannot. It ignores what the client sends after that, and stops when the client disconnects. The HTTP packages are
imported on demand: a daemon that does not serve does not pay for them.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

import anyio
import anyio.to_thread
from msgspec import Struct

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.ipc.client_sessions import DaemonContext, Upgrade, Upgraded
from pilotfish.ipc.messages import read_params
from pilotfish.protocol.codec import encode
from pilotfish.servers.install import extra_command
from pilotfish.system.ports import BrokenPipe, Stalled
from pilotfish_http.admission import HttpAddress
from pilotfish_http.guard import body_of


class ServeParams(Struct, frozen=True):
    """The parameters of the request. Port 0 means any free port."""

    port: int = 0


def upgrade_of(context: DaemonContext) -> Upgrade:
    return Serving(context).upgrade


class Serving:
    """One server at a time: there is one token file."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._address: str | None = None

    async def upgrade(self, upgraded: Upgraded) -> None:
        """Serve until the client that asked for it disconnects."""
        if not await upgraded.stream.receive():
            return
        try:
            async with self._listening(upgraded) as served:
                await upgraded.stream.send(encode(served) + b"\n")
                while await upgraded.stream.receive():
                    pass
        except Failure as failure:
            await upgraded.stream.send(encode(body_of(failure)) + b"\n")
        except (BrokenPipe, Stalled):
            return

    @asynccontextmanager
    async def _listening(self, upgraded: Upgraded) -> AsyncGenerator[HttpAddress]:
        if self._address is not None:
            hint = "Stop the other `pilotfish serve` first, or use that address."
            raise Refused(Code.INVALID_INPUT, f"already serving at {self._address}", hint=hint)
        lacking = [name for name in ("starlette", "uvicorn", "mcp") if find_spec(name) is None]
        if lacking:
            message = f"HTTP needs packages that are not installed: {', '.join(lacking)}."
            raise Unavailable(Code.UNSUPPORTED, message, hint=extra_command("serve"))
        params = read_params(upgraded.params, ServeParams, ServeParams())
        if not 0 <= params.port < 1 << 16:
            raise Refused(Code.INVALID_INPUT, f"{params.port} is not a port")
        self._address = "starting"
        try:
            surface = await anyio.to_thread.run_sync(import_module, "pilotfish_http.application")
            async with surface.serving(upgraded, self._context, params.port) as served:
                self._address = served.address
                yield served
        finally:
            self._address = None
