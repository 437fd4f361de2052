"""The dialect of no host in particular, for scripts and for hosts that run any command.

    {"event": "touched", "files": ["src/a.py"], "kind": "edit", "cwd": "/project", "session": "42"}

`event` is `touched` (the default), `began` or `ended`; `kind` is `edit` (the default), `write`, `patch` or `read`.
`texts` may give the new text by file, `before` the text before the edit, `root` the workspace.
Printed is the feedback as it is.
"""

from typing import Literal

from msgspec import Struct, field

from pilotfish.api.questions import Touch
from pilotfish.errors import Code, Refused
from pilotfish.hosts.shared.dialect import Began, Ended, HostEvent, Nothing, Touched
from pilotfish.protocol.codec import Malformed, decode


class Event(Struct, frozen=True):
    """The bytes, read. What is not named here is ignored."""

    event: Literal["touched", "began", "ended"] = "touched"
    files: tuple[str, ...] = ()
    kind: Literal["edit", "write", "patch", "read"] = "edit"
    texts: dict[str, str] = field(default_factory=dict[str, str])
    before: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    root: str | None = None
    session: str = ""


class Plain:
    def read(self, event: bytes) -> HostEvent:
        try:
            said = decode(event, Event)
        except Malformed as malformed:
            raise Refused(Code.INVALID_INPUT, f"the hook's event cannot be read: {malformed}") from None
        match said.event:
            case "began":
                return Began(said.session, said.cwd, said.root)
            case "ended":
                return Ended(said.session)
            case "touched" if said.files:
                touch = Touch(said.files, said.kind, said.texts or None, before=said.before or None)
                return Touched(touch, said.session, said.cwd, said.root)
            case "touched":
                return Nothing()

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace") + b"\n"


dialect = Plain()
