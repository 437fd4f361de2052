"""VS Code: its agent runs hooks of the names of Claude Code's, with tools and arguments of its own.

- Not run here: it is on no registry. By its reference (code.visualstudio.com/docs/agents/reference/hooks-reference, of
  July 2026) and its source (extensions/copilot in microsoft/vscode, of mid-2026), which differ in three points. Keys:
  `hookEventName` and `sessionId` in the reference, `hook_event_name` and `session_id` in the source; both are read.
  Tools: `editFiles` with `files` in the reference, `create_file`, `replace_string_in_file` and others with `filePath`
  in the source. A stop is put off by `decision: "block"` in `hookSpecificOutput`, in older versions beside it; the
  answer has both.
- It loads `~/.claude/settings.json`, `.claude/settings*.json`, `~/.copilot/hooks` and `.github/hooks` too, so it may
  run the hooks of `setup claude-code` and `setup copilot`, in addition or instead: `shared/heard.py` knows its events,
  and answers each once. All hooks of one event get the same `timestamp`.
- It ignores matchers: a hook runs after every tool.
- `additionalContext` is appended to the tool's result. A report (microsoft/vscode#311138) has it one turn late.
- With a prompt its model can be told nothing; there is no event for the end of a session.
- Its agents read `.vscode/mcp.json` of a workspace. The file of the user is part of a profile, whose place is not
  documented: so the files of the user have hooks only.
- Copilot in a terminal is another host: `pilotfish setup copilot`. It runs the hook files of VS Code too, which leave
  its events to its own.
"""

from msgspec.structs import replace

from pilotfish.hosts.shared.hook_settings import RESTART, TIMEOUT_SECONDS, hook_command, json_file, tools_file
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import (
    HostEvent,
    HostTool,
    MomentEvent,
    ToolHookEvent,
    ToolHooks,
    TouchEvent,
    event_as,
    host_tools,
)
from pilotfish.protocol.codec import encode

PATHS = ("filePath", "files", "path")

EVENTS = ("PreToolUse", "PostToolUse", "Stop", "SubagentStop", "SessionStart")


class VsCodeHooks(ToolHooks, frozen=True):
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, ToolHookEvent)
        found = self.event_of(said)
        if not isinstance(found, TouchEvent | MomentEvent):
            return found
        # Without a time, two events cannot be told from one that came twice.
        name = said.hook_event_name or said.hookEventName
        return replace(found, id=f"{name} {said.timestamp} {said.tool_use_id}" if said.timestamp else "")

    def written(self, feedback: str, event: str) -> bytes:
        if event not in self.stops:
            return super().written(feedback, event)
        stop = {"decision": self.objection, "reason": feedback}
        return encode({**stop, "hookSpecificOutput": {"hookEventName": event, **stop}})


DIALECT = VsCodeHooks(
    {
        **host_tools(
            *PATHS,
            edit="editFiles replace_string_in_file insert_edit_into_file edit_notebook_file",
            write="createFile create_file",
            read="read_file",
        ),
        **host_tools("replacements", edit="multi_replace_string_in_file"),
        "apply_patch": HostTool("patch", PATHS, patch="input"),
    },
    prompt=None,
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    commands = {event: hook_command(where, "vscode", event) for event in EVENTS}
    hooks = {
        event: [{"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}]
        for event, command in commands.items()
    }
    folder = where.folder(".copilot", project=".github")
    told = folder.file("hooks/pilotfish-vscode.json", json_file({"hooks": hooks}))
    if where.is_global:
        return (told,)
    return (told, tools_file(where, where.folder(".vscode", project=".vscode"), "mcp.json", "servers", type="stdio"))


HOST = HostSpec(
    title="VS Code",
    files=wired_files,
    programs=("code",),
    folders=(".config/Code",),
    dialect=DIALECT,
    session_events=(
        '{"hookEventName":"SessionStart","sessionId":"%s","cwd":"%s","source":"new"}',
        '{"hookEventName":"PreCompact","sessionId":"%s","cwd":"%s","trigger":"auto"}',
    ),
    scopes=("project", "global"),
    afterwards=(RESTART, "In your own files it gets hooks only: its tools are set up in a project, with --project."),
    unseen="VS Code runs hooks unless an organisation has turned them off, which cannot be seen from here.",
    missing=(
        "Not run: whether its model reads the text in the same turn, and how much of it, is known by its source only.",
        "With a prompt its model is told nothing.",
    ),
    notice_key="systemMessage",
)
