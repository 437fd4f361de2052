"""A file that is ours as a whole: a plugin, a command, a hook that hosts find by its name."""

from msgspec import Struct

from pilotfish.errors import Code, Refused

MARK = "pilotfish"
"""In every file of ours; a file without it is not ours."""


class WholeFile(Struct, frozen=True):
    text: str

    def added(self, text: str | None) -> str:
        if text is not None and MARK not in text.lower():
            raise Refused(
                Code.INVALID_CONFIG,
                "a file of this name exists and is not ours",
                hint="Move it away, then run setup again.",
            )
        return self.text

    def is_in(self, text: str) -> bool:
        return text == self.text

    def removed(self, text: str, before: str | None) -> str | None:
        return (before or None) if MARK in text.lower() else text
