"""Cursor: `postToolUse` hooks add to what its model reads, and a `stop` hook may send a follow-up message.

- Not run here: it is on no registry. By its reference (cursor.com/docs/hooks) and by an account of its command line
  2026.09.18, read in its code.
- The answer to `postToolUse` may hold `additional_context`, which is appended after the tool's result; more than 10,000
  characters are dropped, not cut. What `afterFileEdit` answers is ignored: it comes first and has the edits, so the
  file is made ready there.
- The name of the path in the arguments of `Write` is not documented: the usual ones are looked for, and an event
  without any is counted as not read (`pilotfish status`).
- A `stop` hook that answers `followup_message` makes the agent go on; `loop_count` counts that. In `-p` the command
  line runs no `stop` hooks.
- It also runs Claude Code's hooks (`~/.claude/settings.json`), at the same time as its own: `shared/heard.py` knows its
  events, and answers each once.
- A hook file with an unknown event, or without `version`, is rejected whole. Timeouts: seconds.
"""

from typing import cast

from msgspec import Struct

from pilotfish.api.questions import Moment, Touch
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import RESTART, TIMEOUT_SECONDS, hook_command, tools_file
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import (
    MAX_BYTES,
    NO_FILES,
    EndEvent,
    HostEvent,
    MomentEvent,
    OtherEvent,
    StartEvent,
    TouchEvent,
    UnreadEvent,
    event_as,
    host_tools,
    names_in,
    touched,
    without_files,
)
from pilotfish.protocol.codec import Malformed, decode, encode

PATHS = ("file_path", "path", "filePath", "target_file")

TOOLS = host_tools(*PATHS, edit="Write Edit", read="Read")

EVENTS = ("afterFileEdit", "postToolUse", "stop", "sessionStart", "sessionEnd")

OTHER_EVENTS = names_in(
    "preToolUse postToolUseFailure subagentStart subagentStop beforeShellExecution afterShellExecution "
    "beforeMCPExecution afterMCPExecution beforeReadFile beforeSubmitPrompt userPromptSubmit preCompact "
    "afterAgentResponse afterAgentThought beforeTabFileRead afterTabFileEdit workspaceOpen postToolBatch"
)


class CursorEvent(Struct, frozen=True):
    """The event as it is sent. Unknown fields are ignored."""

    hook_event_name: str = ""
    conversation_id: str = ""
    session_id: str = ""
    generation_id: str = ""
    workspace_roots: tuple[str, ...] = ()
    cwd: str | None = None
    tool_name: str = ""
    tool_input: object = None
    tool_use_id: str = ""
    file_path: str = ""
    edits: object = None
    status: str = "completed"
    loop_count: int = 0


class CursorDialect:
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, CursorEvent)
        conversation = said.conversation_id or said.session_id
        cwd = said.workspace_roots[0] if said.workspace_roots else said.cwd
        # Run as one of Claude Code's hooks, an event may have the name that it has there.
        name = said.hook_event_name[:1].lower() + said.hook_event_name[1:]
        identity = f"{name} {said.generation_id} {said.tool_use_id} {said.loop_count}"
        match name:
            case "sessionStart":
                return StartEvent(conversation, cwd)
            case "sessionEnd":
                return EndEvent(conversation)
            case "afterFileEdit" if said.file_path:
                return TouchEvent(Touch((said.file_path,), "read"), conversation, cwd)
            case "postToolUse":
                moment = MomentEvent(Moment("call", max_bytes=MAX_BYTES), conversation, cwd, None, name, identity)
                tool, given = said.tool_name, _arguments(said.tool_input)
                edited = TouchEvent(NO_FILES, conversation, cwd, event=name, id=identity)
                return touched(edited, TOOLS, tool, given) or without_files(moment, TOOLS, tool, given)
            case "stop" if said.status == "completed":
                stop = Moment("stop", max_bytes=MAX_BYTES, again=said.loop_count > 0)
                return MomentEvent(stop, conversation, cwd, None, name, identity)
            case _ if name in OTHER_EVENTS or name == "stop":
                return OtherEvent()
            case _:
                return UnreadEvent(said.hook_event_name)

    def written(self, feedback: str, event: str) -> bytes:
        return encode({"followup_message" if event == "stop" else "additional_context": feedback})


def _arguments(given: object) -> object:
    """The arguments, which some tools have as the text of a JSON object."""
    if not isinstance(given, str):
        return given
    try:
        return cast("object", decode(given.encode(errors="replace"), dict[str, object]))
    except Malformed:
        return {}


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".cursor", project=".cursor")
    hooks = [
        Hooks(("hooks", event), {"command": hook_command(where, "cursor", event), "timeout": TIMEOUT_SECONDS})
        for event in EVENTS
    ]
    edit = JsonEdit((Member(("version",), value=1, shared=True), *hooks))
    return (folder.file("hooks.json", edit), tools_file(where, folder, "mcp.json"))


HOST = HostSpec(
    title="Cursor",
    files=wired_files,
    programs=("cursor", "cursor-agent"),
    folders=(".cursor",),
    dialect=CursorDialect(),
    session_events=(
        '{"hook_event_name":"sessionStart","conversation_id":"%s","workspace_roots":["%s"]}',
        '{"hook_event_name":"sessionEnd","conversation_id":"%s","workspace_roots":["%s"]}',
    ),
    afterwards=(RESTART,),
    in_project=("Cursor runs the hooks of a project only in a folder that is trusted.",),
    missing=(
        "Not run: that its model reads `additional_context` is known by its documentation only.",
        "Its command line runs no `stop` hooks with `-p`: nothing is said before it stops there.",
    ),
)
