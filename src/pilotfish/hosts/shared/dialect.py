"""What a host's hook says and wants to hear: one `Dialect` per host, all of them run in the daemon.

A dialect is pure. `read` makes one of four things of the bytes that the host gave to the hook program, `written` makes
what the host shows its model. A new host is a module with a dialect and a line in `DIALECTS`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

from msgspec import Struct

from pilotfish.api.questions import Touch
from pilotfish.errors import Code, Refused
from pilotfish.hosts.shared.old_texts import Undo

DIALECTS: Mapping[str, str] = {
    "aider": "pilotfish.hosts.aider",
    "claude-code": "pilotfish.hosts.claude_code",
    "cline": "pilotfish.hosts.cline",
    "codex": "pilotfish.hosts.codex",
    "gemini": "pilotfish.hosts.gemini",
    "llxprt": "pilotfish.hosts.llxprt",
    "opencode": "pilotfish.hosts.opencode",
    "pi": "pilotfish.hosts.pi",
    "plain": "pilotfish.hosts.plain",
    "qwen": "pilotfish.hosts.qwen",
}
"""Host → the module whose `dialect` speaks for it; imported when that host first calls."""


class Touched(Struct, frozen=True):
    """A tool of the host has changed or read files; `touch.kind` says which."""

    touch: Touch
    conversation: str
    cwd: str | None = None
    root: str | None = None
    event: str = ""
    """What the host calls this, where its answer must say so again."""
    undos: Mapping[str, Undo] = {}
    """By path as in the touch: how to get from the new text to the one before, for files without one in the touch."""


class Began(Struct, frozen=True):
    """A conversation has begun."""

    conversation: str
    cwd: str | None = None
    root: str | None = None


class Ended(Struct, frozen=True):
    """A conversation is over; hosts may say so twice."""

    conversation: str


class Nothing(Struct, frozen=True):
    """None of our business: another tool, or an edit that failed."""


HostEvent = Touched | Began | Ended | Nothing


class Dialect(Protocol):
    def read(self, event: bytes) -> HostEvent:
        """What the host says; raises `Refused` (`invalid_input`) when that cannot be understood."""
        ...

    def written(self, feedback: str, event: str) -> bytes:
        """What the hook program prints for feedback that is not empty, about the event of that name."""
        ...


def dialect_of(host: str) -> Dialect:
    """Raises `Refused` for a host that nobody knows."""
    if host not in DIALECTS:
        known = ", ".join(sorted(DIALECTS))
        raise Refused(Code.INVALID_INPUT, f"no host is called {host!r}", hint=f"Known are: {known}.")
    return import_module(DIALECTS[host]).dialect
