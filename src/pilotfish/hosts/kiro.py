"""Kiro: its model asks with our MCP tools.

- Not run here: it is on no registry. Written by its documentation (kiro.dev/docs/mcp/configuration).
- The editor and the command line read the same two files; that of the project goes before that of the user.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp)),))
    return (where.folder(".kiro", project=".kiro").file("settings/mcp.json", edit),)


HOST = HostSpec(
    name="kiro",
    title="Kiro",
    files=wired_files,
    programs=("kiro", "kiro-cli"),
    folders=(".kiro",),
    probes=("mcp",),
)
