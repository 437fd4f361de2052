"""Crush: it runs hooks before tools only, so its model asks with our MCP tools.

- Not run here: its npm package fetches the program from elsewhere. Read in its source (0.96.1).
- It has an LSP client of its own, which shows the diagnostics of its servers after an edit.
- A project may have `crush.json` or `.crush.json`; the first one that exists counts.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.below_config("crush")
    name = "crush.json" if where.is_global else folder.first("crush.json", ".crush.json")
    edit = JsonEdit((Member(("mcp", "pilotfish"), mcp_server(where.programs.mcp, type="stdio")),))
    return (folder.file(name, edit),)


HOST = HostSpec(
    name="crush",
    title="Crush",
    files=wired_files,
    programs=("crush",),
    folders=(".config/crush",),
    probes=("mcp",),
)
