"""Our part of a file, as pure functions: `added` puts it in, `removed` takes it out, `is_in` finds it. One per format.

`before` is the file as it was before (empty for none), and None where that is not known: what was there already stays
when our part goes, even when it is empty. A file of another format is refused, and the hint says what to do.
"""

from typing import Protocol

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
