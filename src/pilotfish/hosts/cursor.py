"""Cursor: its model asks with our MCP tools.

- Not run here: it is on no registry. Written by its documentation (cursor.com/docs/mcp).
- It has hooks after an edit (`.cursor/hooks.json`, `afterFileEdit`); they are not used, because what its model sees of
  them was never observed.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp)),))
    return (where.folder(".cursor", project=".cursor").file("mcp.json", edit),)


HOST = HostSpec(
    name="cursor",
    title="Cursor",
    files=wired_files,
    programs=("cursor", "cursor-agent"),
    folders=(".cursor",),
    probes=("mcp",),
)
