"""The dialect of no host in particular, for scripts and for hosts that run any command.

    {"event": "touched", "files": ["src/a.py"], "kind": "edit", "cwd": "/project", "session": "42"}

`event` is `touched` (the default), `called` (after anything else), `prompted`, `stopping`, `began` or `ended`; `kind`
is `edit` (the default), `write`, `patch` or `read`.
`texts` may give the new text by file, `before` the text before the edit, `root` the workspace.
The feedback is printed as it is.

The other dialect is that of hosts whose plugin talks to the daemon itself, for programs that send the same to the hook
program:

    {"event": "touched", "tool", "args": {…}, "sessionID", "directory"}                      (OpenCode)
    {"event": "touched", "toolName", "input": {…}, "isError", "session", "cwd"}              (Pi)

Their `event` is `touched` (the default), `began` or `ended`.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from pilotfish.api.questions import Moment, Touch
from pilotfish.hosts.shared.tool_hooks import (
    EndEvent,
    HostEvent,
    HostTools,
    HostTouchKind,
    MomentEvent,
    OtherEvent,
    PlainAnswer,
    StartEvent,
    TouchEvent,
    event_as,
    touched,
)
from pilotfish.protocol.codec import fields

MOMENTS: Mapping[str, Literal["call", "prompt", "stop"]] = {"called": "call", "prompted": "prompt", "stopping": "stop"}


class PlainEvent(Struct, frozen=True):
    """The event as it is sent. Unknown fields are ignored."""

    event: Literal["touched", "called", "prompted", "stopping", "began", "ended"] = "touched"
    files: tuple[str, ...] = ()
    kind: HostTouchKind = "edit"
    texts: dict[str, str] = field(default_factory=dict[str, str])
    before: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    root: str | None = None
    session: str = ""


class PlainDialect(PlainAnswer):
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, PlainEvent)
        match said.event:
            case "began":
                return StartEvent(said.session, said.cwd, said.root)
            case "ended":
                return EndEvent(said.session)
            case "called" | "prompted" | "stopping":
                return MomentEvent(Moment(MOMENTS[said.event]), said.session, said.cwd, said.root)
            case "touched" if said.files:
                touch = Touch(said.files, said.kind, said.texts or None, before=said.before or None)
                return TouchEvent(touch, said.session, said.cwd, said.root)
            case "touched":
                return OtherEvent()


DIALECT = PlainDialect()


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
                given = fields(said.args or said.input)
                if isinstance(path := given.get("path"), str):
                    # As Pi's tools take it: they ignore an `@` before it, as people mention files.
                    given = {**given, "path": path.removeprefix("@")}
                edited = TouchEvent(Touch((), "edit"), session, cwd)
                found = touched(edited, self.tools, said.tool or said.toolName, given)
                return OtherEvent() if said.isError or found is None else found

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")
