"""Roo Code: its model asks with our MCP tools.

- Not run here: it is an extension of an editor. Written by its documentation
  (docs.roocode.com/features/mcp/using-mcp-in-roo).
- The file of the user is in the storage of the extension, so only that of a project is written.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp)),))
    return (where.folder(".roo", project=".roo").file("mcp.json", edit),)


HOST = HostSpec(
    name="roo-code",
    title="Roo Code",
    files=wired_files,
    programs=(),
    folders=(".roo",),
    probes=("mcp",),
    scopes=("project",),
)
