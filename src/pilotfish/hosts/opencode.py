"""OpenCode. Its plugin sends what `tool.execute.after` got, and appends to the tool's output what comes back.

{"event": "touched", "tool", "args": {…}, "sessionID", "directory"}
"""

from typing import Literal

from msgspec import Struct

from pilotfish.api.questions import Touch
from pilotfish.hosts.shared.dialect import Began, Ended, HostEvent, Nothing, Touched
from pilotfish.hosts.shared.tool_hooks import Tool, files_of, shaped

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
                files = files_of(TOOLS, said.tool, said.args)
                if not files:
                    return Nothing()
                return Touched(Touch(files, TOOLS[said.tool].kind), said.sessionID, said.directory)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


dialect = OpenCode()
