"""OpenCode. Its plugin sends what `tool.execute.after` got, and appends to the tool's output what comes back.

{"event": "touched", "tool", "args": {…}, "sessionID", "directory"}
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.hosts.shared.dialect import Began, Ended, HostEvent, Nothing
from pilotfish.hosts.shared.tool_hooks import FeedbackForm, Tool, ToolCall, shaped, touched_by

TOOLS = {
    "write": Tool("write", ("filePath",)),
    "edit": Tool("edit", ("filePath",)),
    "multiedit": Tool("edit", ("filePath",)),
    "apply_patch": Tool("patch", patch="patchText"),
    "patch": Tool("patch", patch="patchText"),
    "read": Tool("read", ("filePath",)),
}


class Event(Struct, frozen=True):
    """The bytes, read. What is not named here is ignored."""

    event: Literal["touched", "began", "ended"] = "touched"
    tool: str = ""
    args: object = None
    sessionID: str = ""  # noqa: N815 -- the host's spelling
    directory: str | None = None


class OpenCode:
    def read(self, event: bytes) -> HostEvent:
        said = shaped(event, Event)
        match said.event:
            case "began":
                return Began(said.sessionID, said.directory)
            case "ended":
                return Ended(said.sessionID)
            case "touched":
                found = touched_by(TOOLS, ToolCall(said.tool, said.args), FeedbackForm(max_bytes=None))
                if found is None:
                    return Nothing()
                return replace(found, conversation=said.sessionID, cwd=said.directory)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


dialect = OpenCode()
