"""Goose: it discards what hooks print, so its model asks with our MCP tools.

- Run: 1.52.0, whose program npm carries for Linux.
- It writes its settings anew, in the style of its own YAML library.
"""

from pilotfish.hosts.edits.yaml_edit import YamlEdit
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile

TIMEOUT_SECONDS = 300
"""What Goose itself writes for a new server."""


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    program, *arguments = where.programs.mcp
    members = {
        "name": "pilotfish",
        "type": "stdio",
        "cmd": program,
        "args": arguments,
        "enabled": True,
        "timeout": TIMEOUT_SECONDS,
        "description": "Diagnostics, definitions and references from language servers",
    }
    return (where.below_config("goose").file("config.yaml", YamlEdit("extensions", {"pilotfish": members})),)


HOST = HostSpec(
    title="Goose",
    files=wired_files,
    programs=("goose",),
    folders=(".config/goose",),
    probes=("mcp",),
    scopes=("global",),
)
