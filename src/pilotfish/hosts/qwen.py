"""Qwen Code: `PostToolUse` hooks.

- Run: 0.24.4, with `OPENAI_BASE_URL`.
- What a hook adds is appended to the tool's result, and angle brackets in it are escaped: so our text has none.
- `tool_response.returnDisplay` has `originalContent`, the old text, empty for a new file.
- Timeouts: seconds; from 1000 on they are taken for milliseconds.
- Without a terminal there is no `SessionEnd`.
- Its LSP client is on with `--experimental-lsp` only, and starts the servers of a project's `.lsp.json`. Those of
  extensions are documented and not started: it looks for them before it has loaded its extensions. It tells two
  servers apart by their commands.
- That client says nothing after an edit. It synchronises a file when its model asks about it, and asks for diagnostics
  itself (`textDocument/diagnostic`, `workspace/diagnostic`).
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member, NoHooks
from pilotfish.hosts.shared.hook_settings import (
    RESTART,
    TIMEOUT_SECONDS,
    hook_groups,
    hooks_and_server,
    lsp_server,
    mcp_server,
)
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import ToolHooks, host_tools

DIALECT = ToolHooks(
    host_tools("file_path", edit="edit", write="write_file")
    | host_tools("notebook_path", edit="notebook_edit")
    | host_tools("file_path", "absolute_path", read="read_file"),
    plain=True,
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".qwen", project=".qwen")
    if where.way == "lsp" and where.is_global:
        return ()
    if where.way == "lsp":
        tools = JsonEdit((NoHooks(("hooks",)), Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp))))
        server = Member(("pilotfish",), lsp_server(where, "qwen", "extensionToLanguage"))
        return (folder.file("settings.json", tools), where.folder(".").file(".lsp.json", JsonEdit((server,))))
    others = ("UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "SessionEnd")
    events = {"PostToolUse": ".*", **dict.fromkeys(others)}
    hooks = hook_groups(where, "qwen", events, {"": TIMEOUT_SECONDS}, name="pilotfish")
    return (folder.file("settings.json", hooks_and_server(where, hooks)),)


HOST = HostSpec(
    title="Qwen Code",
    files=wired_files,
    programs=("qwen",),
    folders=(".qwen",),
    dialect=DIALECT,
    ways=("command", "lsp"),
    by_lsp="Start it with --experimental-lsp. It says nothing after an edit: its model reads diagnostics when it asks "
    "with the tool `lsp` (`diagnostics` of a file, `workspaceDiagnostics` of all).",
    afterwards=(RESTART,),
    notice_key="systemMessage",
)
