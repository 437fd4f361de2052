"""What a host's hook says and wants to hear: one `HostDialect` per host, all of them run in the daemon.

A dialect is pure. `read` turns the bytes that the host gave to the hook program into one of the events below,
`written` turns feedback into what the host shows its model.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from pilotfish.api.questions import Moment, Touch
from pilotfish.hosts.shared.old_texts import Undo


class TouchEvent(Struct, frozen=True):
    """A tool of the host has changed or read files; `touch.kind` says which."""

    touch: Touch
    conversation: str
    cwd: str | None = None
    root: str | None = None
    event: str = ""
    """The host's name of the event, where the answer must repeat it."""
    undos: Mapping[str, Undo] = {}
    """By path as in the touch: how to get from the new text to the one before, for files without one in the touch."""
    id: str = ""
    """What tells this event from every other one of its conversation. A host that loads several of our hook files sends
    it once for each, and only the first is answered. Empty: the host sends each event once."""


class MomentEvent(Struct, frozen=True):
    """Nothing that is known to have changed a file, but the model can be told something now."""

    moment: Moment
    conversation: str
    cwd: str | None = None
    root: str | None = None
    event: str = ""
    id: str = ""
    """As in `TouchEvent`."""


class StartEvent(Struct, frozen=True):
    """A conversation has begun."""

    conversation: str
    cwd: str | None = None
    root: str | None = None


class EndEvent(Struct, frozen=True):
    """A conversation is over; hosts may say so twice."""

    conversation: str


class OtherEvent(Struct, frozen=True):
    """An event that is known, and with which there is nothing to do."""


class UnreadEvent(Struct, frozen=True):
    """An event that is not known, or lacks what is looked for: of a newer host, or of one that nobody has described."""

    name: str = ""
    keys: tuple[str, ...] = ()
    """What it has in place of what was looked for; the keys of the event itself where this is empty."""
    moment: MomentEvent | None = None
    """What can be done with it all the same."""


HostEvent = TouchEvent | MomentEvent | StartEvent | EndEvent | OtherEvent | UnreadEvent


def names_in(text: str) -> frozenset[str]:
    """The names in a text; of events there are many, and a line for each would hide the rest of a module."""
    return frozenset(text.split())


class HostDialect(Protocol):
    def read(self, event: bytes) -> HostEvent:
        """The host's event; raises `Refused` (`invalid_input`) when it is malformed."""
        ...

    def written(self, feedback: str, event: str) -> bytes:
        """What the hook program prints for feedback that is not empty, about the event of that name."""
        ...
