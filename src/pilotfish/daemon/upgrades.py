"""What a connection to the daemon can be upgraded to."""

from msgspec import Struct

from pilotfish.daemon.tracing import trace
from pilotfish.errors import Code, Refused
from pilotfish.ipc.upgrades import Upgraded, Upgrades
from pilotfish.operations.schemas import ToolSet
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.rpc import NULL
from pilotfish.surfaces.mcp.connection import Options, serve
from pilotfish.system.clock import WallClock


class Wanted(Struct, frozen=True):
    """What a client says with the request for MCP."""

    tools: ToolSet | None = None


async def _mcp(upgraded: Upgraded) -> None:
    try:
        wanted = Wanted() if upgraded.params == NULL else decode(upgraded.params, Wanted)
    except Malformed as malformed:
        raise Refused(Code.INVALID_INPUT, f"the parameters cannot be read: {malformed}") from None
    await serve(upgraded.wire, upgraded.service, upgraded.session, Options(wanted.tools))


async def _trace(upgraded: Upgraded) -> None:
    await trace(upgraded, WallClock())


UPGRADES: Upgrades = {"mcp": _mcp, "trace": _trace}
