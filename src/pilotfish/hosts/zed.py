"""Zed, and the agents that it runs over ACP: their models ask with our MCP tools.

- Not run here. Written by its documentation (zed.dev/docs/ai/mcp): it hands its context servers on to agents in
  `session/new`.
- ACP has no hook after an edit.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = JsonEdit((Member(("context_servers", "pilotfish"), mcp_server(where.programs.mcp, source="custom")),))
    return (where.below_config("zed").file("settings.json", edit),)


HOST = HostSpec(
    name="zed",
    title="Zed and agents over ACP",
    files=wired_files,
    programs=("zed", "zeditor"),
    folders=(".config/zed",),
    probes=("mcp",),
    scopes=("global",),
)
