"""What a file gets from us, as two pure steps: `added` puts it in, `removed` takes it out again. One kind per format.

`before` is the file as it was without us (empty for none), and None where nobody knows: what was there already stays
when ours goes, even when it is empty. A file that is not what it should be is refused, and the hint says what to do.
"""

from typing import Protocol

from pilotfish.errors import Code, Refused


class Edit(Protocol):
    def added(self, text: str | None) -> str:
        """The file with our part in it, from a file without; None stands for no file. Raises `Refused`."""
        ...

    def removed(self, text: str, before: str | None) -> str | None:
        """The file without our part; the same text where we have none in it. Raises `Refused`."""
        ...


def unreadable(what: str, why: str) -> Refused:
    """A file that cannot be changed because it cannot be read."""
    return Refused(
        Code.INVALID_CONFIG, f"this is not {what}: {why}", hint="Mend the file or move it away, then run setup again."
    )


def unsuitable(what: str, by_hand: str) -> Refused:
    """A file that is fine, and has no place for our part."""
    return Refused(Code.INVALID_CONFIG, what, hint=f"Nothing was changed. To do it by hand, add: {by_hand}")
