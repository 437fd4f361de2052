"""How MCP tools are served, and whether they can be. Imports neither the SDK nor the service."""

from importlib.util import find_spec

from msgspec import Struct

from pilotfish.errors import Code, Unavailable
from pilotfish.operations.schemas import ToolSet


class McpOptions(Struct, frozen=True):
    """How tools are listed and answered; None leaves it to the configuration. A client sends it with its request."""

    tools: ToolSet | None = None
    structured: bool | None = None
    """Whether results have the envelope as structured content beside the text."""


def require_sdk() -> None:
    """Raise `Unavailable`, with the command that installs it, where the SDK is not installed.

    Finding the package is enough: importing it takes a second.
    """
    if find_spec("mcp") is None:
        from pilotfish.servers.install import extra_command

        hint = extra_command("mcp")
        raise Unavailable(Code.UNSUPPORTED, "MCP needs the Python package mcp, which is not installed.", hint=hint)
