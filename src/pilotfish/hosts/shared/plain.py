"""The dialect of no host in particular, for scripts and for hosts that run any command.

    {"event": "touched", "files": ["src/a.py"], "kind": "edit", "cwd": "/project", "session": "42"}

`event` is `touched` (the default), `called` (after anything else), `prompted`, `stopping`, `began` or `ended`; `kind`
is `edit` (the default), `write`, `patch` or `read`.
`texts` may give the new text by file, `before` the text before the edit, `root` the workspace.
The feedback is printed as it is.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from pilotfish.api.questions import Moment, Touch
from pilotfish.hosts.shared.dialect import EndEvent, HostEvent, MomentEvent, OtherEvent, StartEvent, TouchEvent
from pilotfish.hosts.shared.tool_hooks import HostTouchKind, event_as

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


class PlainDialect:
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

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace") + b"\n"


DIALECT = PlainDialect()
