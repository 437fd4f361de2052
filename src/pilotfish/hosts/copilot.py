"""GitHub Copilot CLI: hooks with the names and the shape of Claude Code's, in a file of their own.

- Run: 1.0.102, without an account: `COPILOT_PROVIDER_BASE_URL` names a model of one's own, `COPILOT_OFFLINE` keeps it
  from the network.
- Hooks whose events are written `PostToolUse` get `hook_event_name`, `tool_name` and `tool_input`; those written
  `postToolUse` get another shape. Tools are called `Write` and `Edit` there, their arguments keep Copilot's names, and
  what came of them is `tool_result`.
- The answer's `additionalContext` is not in `hookSpecificOutput`. It is appended to the tool's result, after
  "Additional guidance from postToolUse hooks:", as it is. 10 KB are kept.
- GPT models get `apply_patch`: its event is an `Edit` whose input is the patch itself.
- A `Stop` hook that answers `decision: "block"` makes the agent go on with the `reason` as a prompt, which is reported
  as one.
- After a tool that failed there is another event, `PostToolUseFailure`.
- It tries MCP of 2026-07-28 first and, when that is not answered in time, an older one on the same connection
  (`surfaces/mcp/streams.py`). Its model sees our tools as `pilotfish-NAME`.
- Timeouts: seconds.
- Its LSP client opens a file, asks and closes it again around each question of its model; it shows no diagnostics.
- Hooks and MCP servers of a project are used only in a folder that the person trusts.
"""

import sys

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import (
    RESTART,
    TIMEOUT_SECONDS,
    hook_command,
    json_file,
    lsp_server,
    tools_file,
)
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import HostEvent, HostTool, ToolHookEvent, ToolHooks, event_as, host_tools
from pilotfish.protocol.codec import encode
from pilotfish.system.windows import for_powershell

CREATED = "Created file "
"""What it says about a file that was not there."""

NEW_FILE = {"type": "create", "originalFile": None}
"""The same in the words of Claude Code."""

SHELL = "powershell" if sys.platform == "win32" else "bash"
"""The member of a hook that holds its command line."""

EVENTS = ("PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd")


class CopilotResult(Struct, frozen=True):
    text_result_for_llm: str = ""


class CopilotEvent(ToolHookEvent, frozen=True):
    tool_result: CopilotResult | None = None


class CopilotHooks(ToolHooks, frozen=True):
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, CopilotEvent)
        given = {"patch": said.tool_input} if isinstance(said.tool_input, str) else said.tool_input
        is_new = said.tool_result is not None and said.tool_result.text_result_for_llm.startswith(CREATED)
        return self.event_of(replace(said, tool_input=given, tool_response=NEW_FILE if is_new else None))

    def written(self, feedback: str, event: str) -> bytes:
        return super().written(feedback, event) if event in self.stops else encode({"additionalContext": feedback})


DIALECT = CopilotHooks(
    {**host_tools("path", write="Write", read="Read"), "Edit": HostTool("edit", ("path",), patch="patch")}
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".copilot", "COPILOT_HOME", project=".github")
    if where.way == "lsp":
        server = lsp_server(where, "copilot", "fileExtensions")
        name = "lsp-config.json" if where.is_global else "lsp.json"
        told = folder.file(name, JsonEdit((Member(("lspServers", "pilotfish"), server),)))
    else:
        told = folder.file("hooks/pilotfish.json", json_file(_hooks(where)))
    if not where.is_global:
        return (told,)
    return (told, tools_file(where, folder, "mcp-config.json", type="local", tools=["*"]))


def _hooks(where: Where) -> object:
    def hook(event: str) -> dict[str, object]:
        line = hook_command(where, "copilot", event, on_windows=for_powershell)
        return {"type": "command", SHELL: line, "timeoutSec": TIMEOUT_SECONDS}

    return {"version": 1, "hooks": {event: [hook(event)] for event in EVENTS}}


HOST = HostSpec(
    title="GitHub Copilot CLI",
    files=wired_files,
    programs=("copilot",),
    folders=(".copilot",),
    dialect=DIALECT,
    ways=("command", "lsp"),
    by_lsp="It says nothing after an edit, and its tool `lsp` shows no diagnostics: its model asks for them with the "
    "MCP tool `lsp_diagnostics`.",
    afterwards=(RESTART,),
)
