"""Windsurf: its hooks show what they print to the person; its model asks with our MCP tools.

- Not run here: it is on no registry. By its documentation (docs.windsurf.com/windsurf/cascade/hooks and …/mcp).
- No hook after an edit reaches the model: `post_write_code` may show its output in Cascade (`show_output`), and only a
  hook *before* an action is heard by the model, by refusing that action, which we never do.
- `tool_info` has `file_path` and `edits` with the replaced strings; `trajectory_id` is the conversation.
"""

import os

from msgspec import Struct, field

from pilotfish.api.questions import Touch
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit
from pilotfish.hosts.shared.hook_settings import RESTART, hook_command, tools_file
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import (
    NO_FILES,
    HostEvent,
    HostTool,
    OtherEvent,
    PlainAnswer,
    TouchEvent,
    UnreadEvent,
    event_as,
    names_in,
    touched,
)

TOOLS = {"post_write_code": HostTool("edit", ("file_path",))}

READY = frozenset({"pre_write_code", "post_read_code"})
"""Before an edit, and after a file was read, its server is made ready."""

OTHER_EVENTS = names_in(
    "pre_read_code pre_run_command post_run_command pre_mcp_tool_use post_mcp_tool_use pre_user_prompt "
    "post_cascade_response post_cascade_response_with_transcript post_setup_worktree"
)


class WindsurfTool(Struct, frozen=True):
    file_path: str = ""
    edits: object = None


class WindsurfEvent(Struct, frozen=True):
    """The event as it is sent. Unknown fields are ignored."""

    agent_action_name: str = ""
    trajectory_id: str = ""
    tool_info: WindsurfTool = field(default_factory=WindsurfTool)


class WindsurfDialect(PlainAnswer):
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, WindsurfEvent)
        name, path = said.agent_action_name, said.tool_info.file_path
        cwd = os.path.dirname(path) if os.path.isabs(path) else None
        if name in READY and path:
            return TouchEvent(Touch((path,), "read"), said.trajectory_id, cwd)
        edited = TouchEvent(NO_FILES, said.trajectory_id, cwd, event=name)
        found = touched(edited, TOOLS, name, {"file_path": path, "edits": said.tool_info.edits})
        return found or (OtherEvent() if name in OTHER_EVENTS else UnreadEvent(name))


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".codeium/windsurf", project=".windsurf")
    hooks = {"post_write_code": True, "pre_write_code": False}
    edit = JsonEdit(
        tuple(
            Hooks(("hooks", event), {"command": hook_command(where, "windsurf", event), "show_output": shown})
            for event, shown in hooks.items()
        )
    )
    told = folder.file("hooks.json", edit)
    return (told, tools_file(where, folder, "mcp_config.json")) if where.is_global else (told,)


HOST = HostSpec(
    title="Windsurf",
    files=wired_files,
    programs=("windsurf",),
    folders=(".codeium/windsurf",),
    dialect=WindsurfDialect(),
    tells="person",
    session_events=(
        '{"agent_action_name":"pre_write_code","trajectory_id":"%s","tool_info":{"file_path":"%s/nothing.txt"}}',
        '{"agent_action_name":"post_cascade_response","trajectory_id":"%s","tool_info":{"response":"%s"}}',
    ),
    afterwards=(RESTART,),
    missing=("Its model is told nothing by itself: Cascade shows the text to you alone. It asks with its tools.",),
)
