"""Pi: an extension (`plugins/pi`) that appends to the result of its tools.

- Run: 0.87.1 (`@earendil-works`) and 0.73.1 (`@mariozechner`); one file works in both. Of 1.0 to 1.5,
  packages that they need are missing on npm.
- `tool_result` may change the content, so the feedback is inside the tool's result; Pi does not show it to the person,
  whom the status line tells. It is called for an edit that failed, with `isError`.
- `tool_call` is where the extension reads the text before the edit.
- The extensions of a project are skipped in `-p` until that is trusted, so the global place is surer.
- `session_shutdown` may be missing: the end of the socket is the end of the session.
- It has no MCP before 1.0: the extension brings the tool `lsp` and the panel `/lsp`.
"""

from pilotfish.hosts.shared.hook_settings import RESTART, plugin_files
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.plain import PluginDialect
from pilotfish.hosts.shared.tool_hooks import HostTool, host_tools

TOOLS = {
    **host_tools("path", edit="edit", write="write", read="read"),
    "apply_patch": HostTool("patch", ("path",), patch="input"),
}


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".pi/agent", "PI_CODING_AGENT_DIR", project=".pi")
    return plugin_files(where, folder, "extensions", "pi")


HOST = HostSpec(
    title="Pi",
    files=wired_files,
    programs=("pi",),
    folders=(".pi",),
    dialect=PluginDialect(TOOLS),
    probes=("daemon",),
    afterwards=(RESTART,),
    in_project=("Pi skips the extensions of a project until that is trusted; the global place is surer.",),
)
