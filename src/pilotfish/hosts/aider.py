"""Aider. It has no hooks but runs a linter on the files it has edited, and shows the model what one says that fails.

The event is what `aider_lint` was given on its command line: the names of the files, each followed by a zero.
"""

from pilotfish.api.questions import Touch
from pilotfish.errors import Code, Refused
from pilotfish.hosts.shared.dialect import HostEvent, Nothing, Touched
from pilotfish.hosts.shared.tool_hooks import MAX_BYTES, MAX_FILES


class Aider:
    def read(self, event: bytes) -> HostEvent:
        *names, rest = event.split(b"\0")
        if rest:
            raise Refused(Code.INVALID_INPUT, "the hook's event cannot be read: no zero at the end")
        files = tuple(dict.fromkeys(name.decode(errors="surrogateescape") for name in names if name))[:MAX_FILES]
        if not files:
            return Nothing()
        return Touched(Touch(files, "edit", plain=True, max_bytes=MAX_BYTES), "")

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace") + b"\n"


dialect = Aider()
