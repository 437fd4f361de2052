"""Windsurf: its model asks with our MCP tools.

- Not run here: it is on no registry. Written by its documentation (docs.windsurf.com/windsurf/cascade/mcp).
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp)),))
    return (where.folder(".codeium/windsurf").file("mcp_config.json", edit),)


HOST = HostSpec(
    name="windsurf",
    title="Windsurf",
    files=wired_files,
    programs=("windsurf",),
    folders=(".codeium/windsurf",),
    probes=("mcp",),
    scopes=("global",),
)
