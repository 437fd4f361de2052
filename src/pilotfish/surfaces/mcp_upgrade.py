"""MCP over a connection to the daemon: what serves it once the client has asked for that."""

from msgspec import Raw

from pilotfish.errors import Code, Refused
from pilotfish.operations.schemas import ToolSet
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.rpc import NULL
from pilotfish.surfaces.mcp_connection import Options, serve
from pilotfish.surfaces.upgrades import Upgraded

METHOD = "mcp"
"""The request that asks for it; its parameters are `{"tools": "named" | "lsp"}`, or nothing."""


async def upgrade(upgraded: Upgraded) -> None:
    """Serve MCP until the client is gone."""
    await serve(upgraded.wire, upgraded.service, upgraded.session, options_of(upgraded.params))


def options_of(params: Raw) -> Options:
    """How the client wants its tools; raises `Refused` for what is no such thing."""
    try:
        tools = None if params == NULL else decode(params, dict[str, object]).get("tools")
        return Options(None if tools is None else ToolSet(tools))
    except (Malformed, ValueError):
        raise Refused(Code.INVALID_INPUT, 'tools is "named" or "lsp"') from None
