"""What clients of the daemon say: the shapes of the socket's own methods. `touched` and `ask` take those of `api`.

Lenient: what is not named here is ignored, so that an older daemon understands a newer client. Text that may hold any
bytes (`hook`) travels as hexadecimal digits, which the hook program can write and read without importing anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotfish.api import Error


@dataclass(frozen=True, slots=True)
class Hello:
    """The first words on a connection. Without a `cwd` it is no session: it can look at the daemon, and stop it."""

    protocol: int
    build: int = 0
    cwd: str | None = None
    root: str | None = None
    host: str | None = None
    conversation: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class HookCall:
    """A whole conversation in one message: greeting, event, and nothing after the answer."""

    protocol: int
    host: str
    cwd: str
    event: str
    build: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """Files to give a verdict on; a text in `texts` is judged instead of what is on disk."""

    paths: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Paths:
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """Whether some server is for a file; with `error`, it is not there."""

    served: bool
    error: Error | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A language server, by its id."""

    server: str


@dataclass(frozen=True, slots=True)
class Logs:
    lines: int = 100


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to `hello`."""

    protocol: int
    build: int
    pid: int
    session: str | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Attendee:
    """One client session, for people."""

    session: str
    host: str | None
    conversation: str | None
    root: str
    attached: bool
    calls: int


@dataclass(frozen=True, slots=True)
class About:
    """The daemon itself."""

    pid: int
    protocol: int
    build: int
    seconds: float
    """How long it has been running."""
    socket: str
    log: str
    superseded: bool
    """Newer code has called: it ends as soon as nobody is attached."""
    sessions: tuple[Attendee, ...]
    servers: Mapping[str, int]
    """Running language servers by id."""
