"""A file that is all ours: a plugin, a command, a hook that hosts find by its name."""

from msgspec import Struct

from pilotfish.errors import Code, Refused

MARK = "pilotfish"
"""Every file of ours says it; one that does not is somebody else's."""


class WholeFile(Struct, frozen=True):
    text: str

    def added(self, text: str | None) -> str:
        if text is not None and MARK not in text.lower():
            raise Refused(
                Code.INVALID_CONFIG, "there is another file of this name", hint="Move it away, then run setup again."
            )
        return self.text

    def removed(self, text: str, before: str | None) -> str | None:
        return (before or None) if MARK in text.lower() else text
