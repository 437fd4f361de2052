"""Amp: its model asks with our MCP tools.

- Not run here: it wants a login. Its files are those that references of its manual name, and the setting is the one
  that public projects have in them; the manual itself was not read.
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
