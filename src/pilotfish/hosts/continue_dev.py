"""Continue: its model asks with our MCP tools.

- Not run here: it is an extension of an editor. Written by its documentation
  (docs.continue.dev/customize/deep-dives/mcp).
- Every JSON file in `.continue/mcpServers` of a workspace is read, in the form that most hosts write.
"""

import json

from pilotfish.hosts.edits.whole_file import WholeFile
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    servers = {"mcpServers": {"pilotfish": mcp_server(where.programs.mcp)}}
    whole = WholeFile(json.dumps(servers, indent=2) + "\n")
    return (where.folder(".continue", project=".continue").file("mcpServers/pilotfish.json", whole),)


HOST = HostSpec(
    name="continue-dev",
    title="Continue",
    files=wired_files,
    programs=(),
    folders=(".continue",),
    probes=("mcp",),
    scopes=("project",),
)
