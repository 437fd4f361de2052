"""Amp: its model asks with our MCP tools.

- Not run here: it wants a login. The file of the user and the setting are those of its maker's guide
  (guides/mcp/amp-mcp-setup-guide.md in sourcegraph/amp-examples-and-guides); that of a workspace is by
  others' accounts of its manual, which also say that Amp asks before it starts a server that a workspace names.
- Its settings are flat: the name of a setting has dots in it. Those of a workspace go before those of the user.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("amp.mcpServers", "pilotfish"), mcp_server(where.programs.mcp)),))
    return (where.below_config("amp", project=".amp").file("settings.json", edit),)


HOST = HostSpec(
    name="amp",
    title="Amp",
    files=wired_files,
    programs=("amp",),
    folders=(".config/amp",),
    probes=("mcp",),
)
