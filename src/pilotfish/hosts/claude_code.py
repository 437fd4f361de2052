"""Claude Code: hooks around each tool, and `PostToolBatch` after all calls that the model made at once.

- Run: 2.1.326, without a login (`ANTHROPIC_API_KEY` may be anything).
- What a hook adds is appended to the tool's result as a `<system-reminder>`, in the same turn. 10,000 characters are
  kept; of more, the model gets a preview of 2 KB and the path of a file. What a hook merely prints is not shown.
- A hook is a program, or (`--by mcp`) a tool of our MCP server, which needs no process per edit. Timeouts: seconds.
- `tool_response` has `originalFile`, the old text, for Write and Edit (null for a new file), and `structuredPatch`.
  `PostToolBatch` has only the words of each response.
- The model reads the results of a batch together. So the edits of a batch are judged once, after the last of them, as
  one change. Until a conversation has sent its first `PostToolBatch` (an older version never does), each edit is
  answered on its own, and the batch says only what was not reported yet.
- `PostToolBatch` comes after calls of any kind, so what came late and what commands broke is told there.
- A `Stop` or `SubagentStop` hook whose answer has `decision: "block"` makes the agent go on with the `reason`; the next
  one has `stop_hook_active`.
- Plugins may bring language servers of their own; their diagnostics arrive a turn later, and never for other files.
- MCP servers of a project (`.mcp.json`) are used after the person has agreed once.
"""

from collections.abc import Iterator

from pilotfish.api.questions import Touch
from pilotfish.hosts.edits.edit import WholeFile
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit
from pilotfish.hosts.shared.hook_settings import (
    RESTART,
    TIMEOUT_SECONDS,
    hook_groups,
    read_packaged,
    read_setting,
    tools_file,
)
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, Where, WiredFile, shell
from pilotfish.hosts.shared.tool_hooks import (
    MAX_FILES,
    HostEvent,
    ToolHookEvent,
    ToolHooks,
    TouchEvent,
    event_as,
    failed,
    files_of,
    host_tools,
)
from pilotfish.protocol.codec import fields, items
from pilotfish.protocol.wire import Json

EDIT_TOOLS = "Write|Edit|MultiEdit|NotebookEdit"

TOOL_HOOKS = ToolHooks(
    host_tools("file_path", edit="Edit MultiEdit", write="Write", read="Read")
    | host_tools("notebook_path", edit="NotebookEdit"),
    counts=False,
)

MCP_HOOK: Json = {
    "type": "mcp_tool",
    "server": "pilotfish",
    "tool": "hook_post_edit",
    "input": {"file_path": "${tool_input.file_path}", "format": "hook"},
    "timeout": TIMEOUT_SECONDS,
}


class ClaudeCodeDialect:
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, ToolHookEvent)
        if said.hook_event_name != "PostToolBatch":
            return TOOL_HOOKS.read(event)
        files = tuple(dict.fromkeys(_edited_files(said)))[:MAX_FILES]
        if not files:
            return TOOL_HOOKS.moment(said, "call")
        touch = Touch(files, "patch", max_bytes=TOOL_HOOKS.max_bytes, stops=True, batch="end")
        return TouchEvent(touch, said.session_id, said.cwd, event=said.hook_event_name)

    def written(self, feedback: str, event: str) -> bytes:
        return TOOL_HOOKS.written(feedback, event)


def _edited_files(said: ToolHookEvent) -> Iterator[str]:
    for call in map(fields, items(said.tool_calls)):
        name = str(call.get("tool_name"))
        tool = TOOL_HOOKS.tools.get(name)
        if tool is not None and tool.kind != "read" and not failed(call.get("tool_response")):
            yield from files_of(TOOL_HOOKS.tools, name, call.get("tool_input"))


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = _folder(where)
    above = where.folder(".", "CLAUDE_CONFIG_DIR")
    command = read_packaged("claude-code/commands/lsp.md").replace("pilotfish status", shell(where.programs.status))
    return (
        folder.file("settings.json" if where.is_global else "settings.local.json", JsonEdit(_hooks(where))),
        tools_file(where, above, ".claude.json" if where.is_global else ".mcp.json", type="stdio"),
        folder.file("commands/lsp.md", WholeFile(command), optional=True),
    )


def _hooks(where: Where) -> tuple[Hooks, ...]:
    if where.way == "mcp":
        return (Hooks(("hooks", "PostToolUse"), {"matcher": "Write|Edit|MultiEdit", "hooks": [MCP_HOOK]}),)
    others = ("PostToolBatch", "UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "SessionEnd")
    events = {"PreToolUse": EDIT_TOOLS, "PostToolUse": f"{EDIT_TOOLS}|Read", **dict.fromkeys(others)}
    return hook_groups(where, "claude-code", events, {"": TIMEOUT_SECONDS})


def _folder(where: Where) -> HostFolder:
    return where.folder(".claude", "CLAUDE_CONFIG_DIR", project=".claude")


def _has_language_servers(where: Where) -> bool:
    plugins = read_setting(f"{_folder(where).path}/settings.json", "enabledPlugins")
    return isinstance(plugins, dict) and any(on is True and "-lsp@" in name for name, on in plugins.items())


HOST = HostSpec(
    title="Claude Code",
    files=wired_files,
    programs=("claude",),
    folders=(".claude",),
    dialect=ClaudeCodeDialect(),
    ways=("command", "mcp"),
    afterwards=(RESTART,),
    in_project=("In a project, Claude Code asks once whether to use the MCP server of .mcp.json.",),
    cautions={
        "A plugin with a language server of its own is on: it says later what Pilotfish says at once. "
        "Turn it off with /plugin.": _has_language_servers
    },
    notice_key="systemMessage",
)
