"""Whether the MCP SDK is there, found out without the second that importing it takes."""

from importlib.util import find_spec

from pilotfish.errors import Code, Unavailable


def require_sdk() -> None:
    """Raise `Unavailable`, with the way to get it, where the SDK is not installed."""
    if find_spec("mcp") is None:
        hint = "pip install 'pilotfish[mcp]'"
        raise Unavailable(Code.UNSUPPORTED, "MCP needs the Python package mcp, which is not installed.", hint=hint)
