"""Junie, the agent of JetBrains in its editors and on the command line: its model asks with our MCP tools.

- Not run here: it wants a login. The JSON is that of its maker's page
  (jetbrains.com/help/junie/model-context-protocol-mcp.html); the file is the one in its maker's own projects
  (JetBrains/kotlin-web-site), and those who quote junie.jetbrains.com/docs/junie-cli-mcp-configuration.html name it.
- AI Assistant, the other agent of these editors, keeps its servers in a dialogue and documents no file.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp)),))
    return (where.folder(".junie", project=".junie").file("mcp/mcp.json", edit),)


HOST = HostSpec(
    name="junie",
    title="JetBrains Junie",
    files=wired_files,
    programs=("junie",),
    folders=(".junie",),
    probes=("mcp",),
)
