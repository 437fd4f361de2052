"""Amp: a plugin (`plugins/amp`) that appends to the result of its tools.

- Not run here: it wants a login. By its documentation (ampcode.com/docs/customize/plugins), which calls plugins
  experimental. The setting of the user's MCP servers is that of its maker's guide
  (guides/mcp/amp-mcp-setup-guide.md in sourcegraph/amp-examples-and-guides); that of a workspace is by others' accounts
  of its manual, which also say that Amp asks before it starts a server that a workspace names.
- A handler of `tool.result` may return another output; one of `agent.end` may return `action: "continue"` and a
  message for its model. `amp.helpers` says which files a call has changed. Plugins run in Bun.
- The plugin starts the hook program with the plain events of scripts (`shared/plain.py`).
- Its settings are flat: the name of a setting has dots in it. Those of a workspace go before those of the user.
"""

import json

from pilotfish.hosts.edits.edit import WholeFile
from pilotfish.hosts.shared.hook_settings import RESTART, read_packaged, tools_file
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.plain import PlainDialect

COMMAND = '["pilotfish", "hook", "amp"]'
"""What stands in the plugin for the hook program of this installation."""


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.below_config("amp", project=".amp")
    plugin = read_packaged("amp/pilotfish.ts").replace(COMMAND, json.dumps(where.programs.hook("amp")))
    return (
        folder.file("plugins/pilotfish.ts", WholeFile(plugin)),
        tools_file(where, folder, "settings.json", "amp.mcpServers"),
    )


HOST = HostSpec(
    title="Amp",
    files=wired_files,
    programs=("amp",),
    folders=(".config/amp",),
    dialect=PlainDialect(),
    session_events=(
        '{"event":"began","session":"%s","cwd":"%s"}',
        '{"event":"ended","session":"%s","cwd":"%s"}',
    ),
    afterwards=(RESTART,),
    missing=(
        "Not run: that its model reads the text is known by its documentation only, which calls plugins experimental.",
    ),
)
