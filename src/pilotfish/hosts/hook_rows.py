"""Hosts that start a program after each edit. Facts about each: its documentation, checked on the running program."""

import sys

from pilotfish.config.jsonc import BadJson
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit, Member
from pilotfish.hosts.edits.json_text import value_of
from pilotfish.hosts.edits.toml_edit import TomlEdit
from pilotfish.hosts.edits.whole_file import WholeFile
from pilotfish.hosts.edits.yaml_edit import YamlEdit
from pilotfish.hosts.shared.host_row import HostRow, Where, Wiring
from pilotfish.hosts.shared.packaged import packaged
from pilotfish.hosts.shared.programs import shell
from pilotfish.protocol.wire import Json

TIMEOUT_SECONDS = 10
"""For one hook. The hook program gives up by itself two seconds earlier."""

UNHEARD = frozenset({"PreToolUse", "SessionStart", "SessionEnd"})
"""Events whose hook has nothing to say: should the daemon hang, an edit waits for the others only."""

UNHEARD_MILLISECONDS = 2000

RESTART = "Sessions that are open now notice it when they are started again."


def server(command: list[str], **more: Json) -> Json:
    """An MCP server as most hosts write it."""
    return {**more, "command": command[0], "args": list[Json](command[1:])}


def _hooks(where: Where, host: str, events: dict[str, str | None], timeout: int, **more: Json) -> tuple[Hooks, ...]:
    """A group for each event; None where an event has no tools to choose from."""

    def hook(event: str) -> Json:
        bound = ["--deadline-ms", str(UNHEARD_MILLISECONDS)] if event in UNHEARD else []
        return {"type": "command", "command": shell([*where.programs.hook(host), *bound]), "timeout": timeout, **more}

    return tuple(
        Hooks(("hooks", event), {**({} if matcher is None else {"matcher": matcher}), "hooks": [hook(event)]})
        for event, matcher in events.items()
    )


# --- Claude Code ----------------------------------------------------------------------------------------------------

CLAUDE_EDITS = "Write|Edit|MultiEdit|NotebookEdit"

CLAUDE_TOOL: Json = {
    "type": "mcp_tool",
    "server": "pilotfish",
    "tool": "hook_post_edit",
    "input": {"file_path": "${tool_input.file_path}", "format": "hook"},
    "timeout": TIMEOUT_SECONDS,
}


def claude_code(where: Where) -> tuple[Wiring, ...]:
    folder = where.folder(".claude", "CLAUDE_CONFIG_DIR", project=".claude")
    above = where.folder(".", "CLAUDE_CONFIG_DIR")
    events = {
        "PreToolUse": CLAUDE_EDITS,
        "PostToolUse": f"{CLAUDE_EDITS}|Read",
        "PostToolBatch": None,
        "SessionStart": None,
        "SessionEnd": None,
    }
    hooks = _hooks(where, "claude-code", events, TIMEOUT_SECONDS)
    if where.way == "mcp":
        hooks = (Hooks(("hooks", "PostToolUse"), {"matcher": "Write|Edit|MultiEdit", "hooks": [CLAUDE_TOOL]}),)
    tools = JsonEdit((Member(("mcpServers", "pilotfish"), server(where.programs.mcp, type="stdio")),))
    command = packaged("claude-code/commands/lsp.md").replace("pilotfish status", shell(where.programs.status))
    return (
        folder.gets("settings.json" if where.is_global else "settings.local.json", JsonEdit(hooks)),
        above.gets(".claude.json" if where.is_global else ".mcp.json", tools),
        folder.gets("commands/lsp.md", WholeFile(command), optional=True),
    )


def _claude_has_another(where: Where) -> bool:
    folder = where.folder(".claude", "CLAUDE_CONFIG_DIR", project=".claude")
    plugins = setting(f"{folder.path}/settings.json", "enabledPlugins")
    return isinstance(plugins, dict) and any(on is True and "-lsp@" in name for name, on in plugins.items())


def setting(path: str, key: str) -> Json:
    """One value of a host's settings; None when it cannot be had."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            value = value_of(file.read())
    except (OSError, UnicodeDecodeError, BadJson):
        return None
    return value.get(key) if isinstance(value, dict) else None


# --- The others -----------------------------------------------------------------------------------------------------


def codex(where: Where) -> tuple[Wiring, ...]:
    folder = where.folder(".codex", "CODEX_HOME", project=".codex")
    events = {"PostToolUse": "apply_patch", "SessionStart": None, "SessionEnd": None}
    command = where.programs.mcp
    return (
        folder.gets("hooks.json", JsonEdit(_hooks(where, "codex", events, TIMEOUT_SECONDS))),
        folder.gets("config.toml", TomlEdit("mcp_servers", "pilotfish", {"command": command[0], "args": command[1:]})),
    )


def gemini(where: Where) -> tuple[Wiring, ...]:
    events = {"AfterTool": "write_file|replace|read_file", "SessionStart": None, "SessionEnd": None}
    hooks = _hooks(where, "gemini", events, TIMEOUT_SECONDS * 1000, name="pilotfish")
    return (where.folder(".gemini", project=".gemini").gets("settings.json", _with_server(where, hooks)),)


def qwen(where: Where) -> tuple[Wiring, ...]:
    events = {"PostToolUse": "write_file|edit|read_file", "SessionStart": None, "SessionEnd": None}
    hooks = _hooks(where, "qwen", events, TIMEOUT_SECONDS, name="pilotfish")
    return (where.folder(".qwen", project=".qwen").gets("settings.json", _with_server(where, hooks)),)


LLXPRT_EDITS = "write_file|replace|ast_edit|insert_at_line|delete_line_range|apply_patch"


def llxprt(where: Where) -> tuple[Wiring, ...]:
    events = {
        "AfterTool": f"{LLXPRT_EDITS}|read_file|read_line_range|ast_read_file",
        "SessionStart": None,
        "SessionEnd": None,
    }
    hooks = _hooks(where, "llxprt", events, TIMEOUT_SECONDS * 1000, name="pilotfish")
    edit = JsonEdit((Member(("hooks", "enabled"), value=True, shared=True), *_with_server(where, hooks).parts))
    # Its settings are where macOS keeps those of applications, and where everybody else does elsewhere.
    below = where.folder if sys.platform == "darwin" else where.below_config
    name = "Library/Preferences/llxprt-code" if sys.platform == "darwin" else "llxprt-code"
    return (below(name, "LLXPRT_CONFIG_HOME", project=".llxprt").gets("settings.json", edit),)


def _with_server(where: Where, hooks: tuple[Hooks, ...]) -> JsonEdit:
    return JsonEdit((*hooks, Member(("mcpServers", "pilotfish"), server(where.programs.mcp))))


def cline(where: Where) -> tuple[Wiring, ...]:
    folder = where.folder(".cline", "CLINE_DIR", project=".cline")
    text = f"#!/bin/sh\n# Written by `pilotfish setup cline`.\nexec {shell(where.programs.hook('cline'))}\n"
    events = ("PostToolUse", "TaskStart", "SessionShutdown")
    hooks = tuple(folder.gets(f"hooks/{event}.sh", WholeFile(text), executable=True) for event in events)
    if not where.is_global:
        return hooks
    tools = JsonEdit((Member(("mcpServers", "pilotfish"), server(where.programs.mcp)),))
    return (*hooks, folder.gets("data/settings/cline_mcp_settings.json", tools))


def aider(where: Where) -> tuple[Wiring, ...]:
    edit = YamlEdit("lint-cmd", shell(where.programs.lint))
    return (where.folder(".").gets(".aider.conf.yml", edit),)


HOOK_ROWS = (
    HostRow(
        "claude-code",
        "Claude Code",
        claude_code,
        ("claude",),
        (".claude",),
        afterwards=(RESTART, "In a project, Claude Code asks once whether to use the MCP server of .mcp.json."),
        cautions={
            "A plugin with a language server of its own is on: it says later what Pilotfish says at once. "
            "Turn it off with /plugin.": _claude_has_another
        },
    ),
    HostRow(
        "codex",
        "Codex",
        codex,
        ("codex",),
        (".codex",),
        afterwards=("Start codex, type /hooks and trust the hooks of Pilotfish: Codex skips new ones until then.",),
        unseen="Codex runs the hooks only once they are trusted in /hooks, which cannot be seen from here.",
    ),
    HostRow(
        "gemini",
        "Gemini CLI",
        gemini,
        ("gemini",),
        (".gemini",),
        afterwards=(
            RESTART,
            "Trust the folder when it asks, or with /permissions: else it uses no MCP servers and no project settings.",
        ),
        unseen="Gemini CLI uses MCP servers, and the settings of a project, only in a folder that is trusted, "
        "which cannot be seen from here.",
    ),
    HostRow("qwen", "Qwen Code", qwen, ("qwen",), (".qwen",), afterwards=(RESTART,)),
    HostRow("llxprt", "LLxprt Code", llxprt, ("llxprt",), (".config/llxprt-code", ".llxprt"), afterwards=(RESTART,)),
    HostRow("cline", "Cline", cline, ("cline",), (".cline",), afterwards=(RESTART,)),
    HostRow(
        "aider", "Aider", aider, ("aider",), (".aider", ".aider.conf.yml"), probes=("lint",), afterwards=(RESTART,)
    ),
)
