"""Pi. Its extension sends what `tool_result` got, and appends to the tool's content what comes back.

    {"event": "touched", "toolName", "input": {…}, "isError", "session", "cwd"}

Pi takes a path with an `@` before it, as people mention files, for the path without it.
"""

from typing import Literal

from msgspec import Struct

from pilotfish.api.questions import Touch
from pilotfish.hosts.shared.dialect import Began, Ended, HostEvent, Nothing, Touched
from pilotfish.hosts.shared.tool_hooks import Tool, files_of, shaped

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
                named = files_of(TOOLS, said.toolName, said.input)
                files = tuple(path.removeprefix("@") for path in named)
                if said.isError or not files:
                    return Nothing()
                return Touched(Touch(files, TOOLS[said.toolName].kind), said.session, said.cwd)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


dialect = Pi()
