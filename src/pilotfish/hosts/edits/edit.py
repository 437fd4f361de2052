"""Our part of a file, as pure functions: `added` puts it in, `removed` takes it out, `is_in` finds it. One per format.

`before` is the file as it was before (empty for none), and None where that is not known: what was there already stays
when our part goes, even when it is empty. A file of another format is refused, and the hint says what to do.
"""

from typing import Protocol

from msgspec import Struct

from pilotfish.errors import Code, Refused


class Edit(Protocol):
    def added(self, text: str | None) -> str:
        """The file with our part in it, from a file without; None means no file. Raises `Refused`."""
        ...

    def removed(self, text: str, before: str | None) -> str | None:
        """The file without our part; the same text where it has none. Raises `Refused`."""
        ...

    def is_in(self, text: str) -> bool:
        """Whether our part is in the file as `added` would write it, in whatever order and layout. Raises `Refused`."""
        ...


def unreadable(what: str, why: str) -> Refused:
    """A file that cannot be changed because it cannot be parsed."""
    return Refused(
        Code.INVALID_CONFIG, f"not {what}: {why}", hint="Fix the file or move it away, then run setup again."
    )


def unsuitable(what: str, by_hand: str) -> Refused:
    """A valid file without a place for our part."""
    return Refused(Code.INVALID_CONFIG, what, hint=f"Nothing was changed. To do it by hand, add: {by_hand}")


MARK = "pilotfish"
"""In every file of ours; a file without it is not ours."""


class WholeFile(Struct, frozen=True):
    """A file that is ours as a whole: a plugin, a command, a hook that hosts find by its name."""

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


BEGIN, END = "<!-- pilotfish -->\n", "<!-- end of pilotfish -->\n"


class MarkdownSection(Struct, frozen=True):
    """Our section of a Markdown file that others write: between two comments, at its end, every other byte kept."""

    text: str

    def added(self, text: str | None) -> str:
        kept = text or ""
        gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
        return f"{kept}{gap}{BEGIN}{self.text}{END}"

    def is_in(self, text: str) -> bool:
        return f"{BEGIN}{self.text}{END}" in text

    def removed(self, text: str, before: str | None) -> str | None:
        head, begin, rest = text.partition(BEGIN)
        _, end, tail = rest.partition(END)
        if not begin or not end:
            return text
        unchanged = before is not None and head.rstrip("\n") == before.rstrip("\n")
        # The empty line before the section is ours, too.
        head = before if before is not None and unchanged else head.removesuffix("\n")
        return head + tail if head + tail or before else None
