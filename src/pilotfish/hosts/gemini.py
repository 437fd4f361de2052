"""Gemini CLI: `AfterTool` hooks.

- Run: 0.61.0, with `GOOGLE_GEMINI_BASE_URL`.
- What a hook adds is in the tool's result, between `<hook_context>` and `</hook_context>`, and angle brackets in it are
  escaped: so our text has none. A hook that ends with 2 hides the result of the tool.
- `tool_response.returnDisplay` has `originalContent`, the old text, empty for a new file.
- An `AfterAgent` hook whose answer has `decision: "deny"` makes the agent go on with the `reason` as a prompt.
- Timeouts: milliseconds.
- MCP servers, and the settings of a project, are used only in a folder that the person trusts.
"""

from pilotfish.hosts.shared.hook_settings import RESTART, TIMEOUT_SECONDS, hook_groups, hooks_and_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import ToolHooks, host_tools

DIALECT = ToolHooks(
    host_tools("file_path", edit="replace", write="write_file")
    | host_tools("file_path", "absolute_path", read="read_file"),
    before="BeforeTool",
    after="AfterTool",
    prompt="BeforeAgent",
    stops=("AfterAgent",),
    objection="deny",
    plain=True,
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    events = {"AfterTool": ".*", "BeforeAgent": None, "AfterAgent": None, "SessionStart": None, "SessionEnd": None}
    hooks = hook_groups(where, "gemini", events, {"": TIMEOUT_SECONDS * 1000}, name="pilotfish")
    return (where.folder(".gemini", project=".gemini").file("settings.json", hooks_and_server(where, hooks)),)


HOST = HostSpec(
    title="Gemini CLI",
    files=wired_files,
    programs=("gemini",),
    folders=(".gemini",),
    dialect=DIALECT,
    afterwards=(
        RESTART,
        "Trust the folder when it asks, or with /permissions: else it uses no MCP servers and no project settings.",
    ),
    unseen="Gemini CLI uses MCP servers, and the settings of a project, only in a folder that is trusted, "
    "which cannot be seen from here.",
    notice_key="systemMessage",
)
