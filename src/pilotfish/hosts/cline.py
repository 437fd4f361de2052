"""Cline: a program per event in its folder of hooks, found by its name.

{"taskId", "workspaceRoots", "hookName": "tool_result",
 "tool_result": {"name", "input", "output", "error"?}, "postToolUse": {"success", …}}

- Run: 3.0.65 (its engine; the terminal part exists for a few processors only).
- What comes back under `contextModification` is a user message of its own, `<hook_context source="PostToolUse" …>`.
  The edit waits for it, up to 120 s.
- The old text is not in the event: `old_text` and `new_text` of the `editor`, or the patch, are taken back from the new
  text. The `editor` says in words that it created a file.
- MCP servers are in the user's settings only. One that has not answered `initialize` within three seconds is left out
  of the session, unless its `timeout` says otherwise; ours may have to start the daemon first.
- Its model reads the answer of an MCP tool as JSON, of which 8,000 characters are kept: the begin and the end.
"""

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.questions import Touch
from pilotfish.hosts.edits.edit import WholeFile
from pilotfish.hosts.shared.hook_settings import RESTART, tools_file
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile, shell
from pilotfish.hosts.shared.tool_hooks import (
    MAX_BYTES,
    NO_FILES,
    EndEvent,
    HostEvent,
    HostTool,
    HostTouchKind,
    OtherEvent,
    StartEvent,
    TouchEvent,
    UnreadEvent,
    event_as,
    failed,
    host_tools,
    names_in,
    touched,
)
from pilotfish.protocol.codec import encode, member

PATHS = ("path", "absolutePath", "file_path", "files", "file_paths", "paths")

TOOLS = {
    **host_tools(*PATHS, edit="editor replace_in_file", write="write_to_file", read="read_files read_file"),
    "apply_patch": HostTool("patch", patch="input"),
}

OTHER_EVENTS = names_in("tool_result agent_abort agent_end agent_error prompt_submit pre_compact")
"""Those of its source that say nothing of a file, and the result of a tool that failed."""

MCP_SECONDS = 60
"""For each answer of our MCP server, the first one included."""

CREATED = "File created successfully at: "
"""What the `editor` says about a file that was not there."""


class ClineCall(Struct, frozen=True):
    """A tool call, made or about to be."""

    name: str = ""
    input: object = None
    output: object = None
    error: object = None


class ClineOutcome(Struct, frozen=True):
    success: bool = True


class ClineEvent(Struct, frozen=True):
    """The event as it is sent. Unknown fields are ignored."""

    hookName: str = ""  # noqa: N815 -- the host's spelling
    taskId: str = ""  # noqa: N815 -- the host's spelling
    workspaceRoots: tuple[str, ...] = ()  # noqa: N815 -- the host's spelling
    tool_call: ClineCall = field(default_factory=ClineCall)
    tool_result: ClineCall = field(default_factory=ClineCall)
    postToolUse: ClineOutcome = field(default_factory=ClineOutcome)  # noqa: N815 -- the host's spelling


class ClineDialect:
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, ClineEvent)
        cwd, result = said.workspaceRoots[0] if said.workspaceRoots else None, said.tool_result
        match said.hookName:
            case "agent_start" | "agent_resume":
                return StartEvent(said.taskId, cwd)
            case "session_shutdown":
                return EndEvent(said.taskId)
            case "tool_call":
                return _touch(said.taskId, cwd, said.tool_call, "read")
            case "tool_result" if said.postToolUse.success and not result.error and not failed(result.output):
                tool = TOOLS.get(result.name)
                return _touch(said.taskId, cwd, result, tool.kind) if tool else OtherEvent()
            case name if name in OTHER_EVENTS:
                return OtherEvent()
            case name:
                return UnreadEvent(name)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return encode({"contextModification": feedback})


def _touch(task: str, cwd: str | None, call: ClineCall, kind: HostTouchKind) -> HostEvent:
    arguments = {"input": call.input} if isinstance(call.input, str) else call.input
    found = touched(TouchEvent(NO_FILES, task, cwd), TOOLS, call.name, arguments, call.output)
    if found is None:
        has_path = isinstance(arguments, dict) and any(name in arguments for name in (*PATHS, "input"))
        return OtherEvent() if has_path or kind == "read" else UnreadEvent(f"tool_result of {call.name}")
    if kind == "read":
        return TouchEvent(Touch(found.touch.paths, kind, max_bytes=MAX_BYTES), task, cwd)
    if str(member(call.output, "result")).startswith(CREATED):
        found = replace(found, touch=replace(found.touch, before=dict.fromkeys(found.touch.paths, "")))
    return found


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".cline", "CLINE_DIR", project=".cline")
    text = f"#!/bin/sh\n# Written by `pilotfish setup cline`.\nexec {shell(where.programs.hook('cline'))}\n"
    events = ("PostToolUse", "TaskStart", "SessionShutdown")
    hooks = tuple(folder.file(f"hooks/{event}.sh", WholeFile(text), executable=True) for event in events)
    if not where.is_global:
        return hooks
    return (*hooks, tools_file(where, folder, "data/settings/cline_mcp_settings.json", timeout=MCP_SECONDS))


HOST = HostSpec(
    title="Cline",
    files=wired_files,
    programs=("cline",),
    folders=(".cline",),
    dialect=ClineDialect(),
    session_events=(
        '{"hookName":"agent_start","taskId":"%s","workspaceRoots":["%s"]}',
        '{"hookName":"session_shutdown","taskId":"%s","workspaceRoots":["%s"]}',
    ),
    afterwards=(RESTART,),
    missing=(
        "Of a tool's answer its model reads 8,000 characters: the middle of the longest ones, of up to 8 KiB, is cut.",
    ),
)
