"""VS Code: its model asks with our MCP tools.

- Not run here: it is on no registry. Written by its documentation
  (code.visualstudio.com/docs/agents/reference/mcp-configuration).
- Its agents read `.vscode/mcp.json` of a workspace. The file of the user is part of a profile, whose place is not
  documented.
- Copilot in a terminal is another host: `pilotfish setup copilot`.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("servers", "pilotfish"), mcp_server(where.programs.mcp, type="stdio")),))
    return (where.folder(".vscode", project=".vscode").file("mcp.json", edit),)


HOST = HostSpec(
    name="vscode",
    title="VS Code",
    files=wired_files,
    programs=("code",),
    folders=(".config/Code",),
    probes=("mcp",),
    scopes=("project",),
)
