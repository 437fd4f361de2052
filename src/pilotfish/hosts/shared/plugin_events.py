"""The dialect of hosts whose plugin talks to the daemon itself: for programs that send the same to the hook program.

    {"event": "touched", "tool", "args": {…}, "sessionID", "directory"}                      (OpenCode)
    {"event": "touched", "toolName", "input": {…}, "isError", "session", "cwd"}              (Pi)

`event` is `touched` (the default), `began` or `ended`. The feedback is printed as it is.
"""

from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.hosts.shared.dialect import EndEvent, HostEvent, OtherEvent, StartEvent
from pilotfish.hosts.shared.tool_hooks import FeedbackForm, HostTools, ToolCall, event_as, touch_event


class PluginEvent(Struct, frozen=True):
    """The event as it is sent, under the names of either host. Unknown fields are ignored."""

    event: Literal["touched", "began", "ended"] = "touched"
    tool: str = ""
    toolName: str = ""  # noqa: N815 -- the host's spelling
    args: object = None
    input: object = None
    isError: bool = False  # noqa: N815 -- the host's spelling
    sessionID: str = ""  # noqa: N815 -- the host's spelling
    session: str = ""
    directory: str | None = None
    cwd: str | None = None


class PluginDialect(Struct, frozen=True):
    tools: HostTools

    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, PluginEvent)
        session, cwd = said.sessionID or said.session, said.directory or said.cwd
        match said.event:
            case "began":
                return StartEvent(session, cwd)
            case "ended":
                return EndEvent(session)
            case "touched":
                call = ToolCall(said.tool or said.toolName, _without_mention(said.args or said.input))
                found = touch_event(self.tools, call, FeedbackForm(max_bytes=None))
                if said.isError or found is None:
                    return OtherEvent()
                return replace(found, conversation=session, cwd=cwd)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


def _without_mention(arguments: object) -> object:
    """The arguments with a path as Pi's tools take it: they ignore an `@` before it, as people mention files."""
    given = cast("dict[str, object]", arguments) if isinstance(arguments, dict) else dict[str, object]()
    path = given.get("path")
    return {**given, "path": path.removeprefix("@")} if isinstance(path, str) else given
