"""What a host's hook says and wants to hear: one `HostDialect` per host, all of them run in the daemon.

A dialect is pure. `read` turns the bytes that the host gave to the hook program into one of five events, `written`
turns feedback into what the host shows its model.
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


class MomentEvent(Struct, frozen=True):
    """Nothing that is known to have changed a file, but the model can be told something now."""

    moment: Moment
    conversation: str
    cwd: str | None = None
    root: str | None = None
    event: str = ""


class StartEvent(Struct, frozen=True):
    """A conversation has begun."""

    conversation: str
    cwd: str | None = None
    root: str | None = None


class EndEvent(Struct, frozen=True):
    """A conversation is over; hosts may say so twice."""

    conversation: str


class OtherEvent(Struct, frozen=True):
    """Nothing to do."""


HostEvent = TouchEvent | MomentEvent | StartEvent | EndEvent | OtherEvent


class HostDialect(Protocol):
    def read(self, event: bytes) -> HostEvent:
        """The host's event; raises `Refused` (`invalid_input`) when it is malformed."""
        ...

    def written(self, feedback: str, event: str) -> bytes:
        """What the hook program prints for feedback that is not empty, about the event of that name."""
        ...
