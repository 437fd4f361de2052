"""Pi: an extension (`plugins/pi`) that appends to the result of its tools.

- Run: 0.87.1 (`@earendil-works`) and 0.73.1 (`@mariozechner`); one file works in both.
- `tool_result` may change the content, so the feedback is inside the tool's result; Pi does not show it to the person,
  whom the status line tells. It is called for an edit that failed, with `isError`.
- `tool_call` is where the extension reads the text before the edit.
- The extensions of a project are skipped in `-p` until that is trusted, so the global place is surer.
- `session_shutdown` may be missing: the end of the socket is the end of the session.
- It has no MCP before 1.0: the extension brings the tool `lsp` and the panel `/lsp`.

The dialect is for programs that send the same to the hook program. Pi ignores an `@` before a path, as people mention
files:

    {"event": "touched", "toolName", "input": {…}, "isError", "session", "cwd"}
"""

from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.hosts.shared.dialect import EndEvent, HostEvent, OtherEvent, StartEvent
from pilotfish.hosts.shared.hook_settings import RESTART, plugin_files
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import FeedbackForm, HostTool, ToolCall, event_as, touch_event

TOOLS = {
    "write": HostTool("write", ("path",)),
    "edit": HostTool("edit", ("path",)),
    "apply_patch": HostTool("patch", ("path",), patch="input"),
    "read": HostTool("read", ("path",)),
}


class PiEvent(Struct, frozen=True):
    """The event as it is sent. Unknown fields are ignored."""

    event: Literal["touched", "began", "ended"] = "touched"
    toolName: str = ""  # noqa: N815 -- the host's spelling
    input: object = None
    isError: bool = False  # noqa: N815 -- the host's spelling
    session: str = ""
    cwd: str | None = None


class PiDialect:
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, PiEvent)
        match said.event:
            case "began":
                return StartEvent(said.session, said.cwd)
            case "ended":
                return EndEvent(said.session)
            case "touched":
                call = ToolCall(said.toolName, _without_mention(said.input))
                found = touch_event(TOOLS, call, FeedbackForm(max_bytes=None))
                if said.isError or found is None:
                    return OtherEvent()
                return replace(found, conversation=said.session, cwd=said.cwd)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


def _without_mention(arguments: object) -> object:
    """The arguments with a path as Pi's tools take it."""
    given = cast("dict[str, object]", arguments) if isinstance(arguments, dict) else dict[str, object]()
    path = given.get("path")
    return {**given, "path": path.removeprefix("@")} if isinstance(path, str) else given


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".pi/agent", "PI_CODING_AGENT_DIR", project=".pi")
    return plugin_files(where, folder, "extensions", "pi")


HOST = HostSpec(
    name="pi",
    title="Pi",
    files=wired_files,
    programs=("pi",),
    folders=(".pi",),
    dialect=PiDialect(),
    probes=("daemon",),
    afterwards=(RESTART, "Pi skips the extensions of a project until that is trusted; the global place is surer."),
)
