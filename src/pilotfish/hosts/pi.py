"""Pi. Its extension sends what `tool_result` got, and appends to the tool's content what comes back.

    {"event": "touched", "toolName", "input": {…}, "isError", "session", "cwd"}

Pi takes a path with an `@` before it, as people mention files, for the path without it.
"""

from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.hosts.shared.dialect import Began, Ended, HostEvent, Nothing
from pilotfish.hosts.shared.tool_hooks import FeedbackForm, Tool, ToolCall, shaped, touched_by

TOOLS = {
    "write": Tool("write", ("path",)),
    "edit": Tool("edit", ("path",)),
    "apply_patch": Tool("patch", ("path",), patch="input"),
    "read": Tool("read", ("path",)),
}


class Event(Struct, frozen=True):
    """The bytes, read. What is not named here is ignored."""

    event: Literal["touched", "began", "ended"] = "touched"
    toolName: str = ""  # noqa: N815 -- the host's spelling
    input: object = None
    isError: bool = False  # noqa: N815 -- the host's spelling
    session: str = ""
    cwd: str | None = None


class Pi:
    def read(self, event: bytes) -> HostEvent:
        said = shaped(event, Event)
        match said.event:
            case "began":
                return Began(said.session, said.cwd)
            case "ended":
                return Ended(said.session)
            case "touched":
                call = ToolCall(said.toolName, _unmentioned(said.input))
                found = touched_by(TOOLS, call, FeedbackForm(max_bytes=None))
                if said.isError or found is None:
                    return Nothing()
                return replace(found, conversation=said.session, cwd=said.cwd)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


def _unmentioned(arguments: object) -> object:
    """The arguments with a path as Pi's tools take it."""
    given = cast("dict[str, object]", arguments) if isinstance(arguments, dict) else dict[str, object]()
    path = given.get("path")
    return {**given, "path": path.removeprefix("@")} if isinstance(path, str) else given


dialect = Pi()
