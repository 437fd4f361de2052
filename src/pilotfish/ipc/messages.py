"""The parameters and results of the socket's own methods. `touched` and `ask` take those of `api`.

Unknown fields are ignored, so that an older daemon understands a newer client. Text that may hold any bytes (`hook`,
`command`) is sent as hexadecimal digits, which small programs can write and read without importing anything.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Raw, Struct, field

from pilotfish.errors import Code, Refused
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.rpc import NULL
from pilotfish.service.check_answer import CheckRequest

T = TypeVar("T")


def read_params(params: Raw, shape: type[T], default: T | None = None) -> T:
    """The parameters of a request; `default` where there are none. Raises `Refused`."""
    if default is not None and params == NULL:
        return default
    try:
        return decode(params, shape)
    except Malformed as malformed:
        raise Refused(Code.INVALID_INPUT, f"cannot read the parameters: {malformed}") from None


class Hello(Struct, frozen=True):
    """The first message on a connection. Without a `cwd` it has no session: it can inspect the daemon, and stop it."""

    protocol: int
    build: int = 0
    cwd: str | None = None
    root: str | None = None
    host: str | None = None
    conversation: str | None = None
    pid: int | None = None
    environment: str = ""
    """`NAME=value` entries separated by zero bytes, in hexadecimal; if empty, the daemon's own environment counts."""


class HookCall(Struct, frozen=True):
    """Hello and event in one message; the connection ends after the answer."""

    protocol: int
    host: str
    cwd: str
    event: str
    build: int = 0
    environment: str = ""
    seconds: float | None = None
    """How long the caller waits for the answer."""


class CommandCall(Struct, frozen=True):
    """Hello and a question of the command line in one message; the connection ends after the answer."""

    protocol: int
    cwd: str
    words: str
    """Separated by zero bytes, in hexadecimal: the verb, then its arguments."""
    build: int = 0
    environment: str = ""


class CheckCall(CheckRequest, frozen=True):
    """Files to check; a text in `texts` is checked instead of what is on disk."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    stream: bool = False
    """Folders may be among the paths. The notification `checking` says which files it is about (`FilesToCheck`), and
    one `checked` for each of them what was found (`CheckedFile`), before the answer about all of them."""


class Named(Struct, frozen=True):
    server: str


class Logs(Struct, frozen=True):
    lines: int = 100


class Welcome(Struct, frozen=True):
    """The answer to `hello`."""

    protocol: int
    build: int
    pid: int
    session: str | None = None
    root: str | None = None


class Attendee(Struct, frozen=True):
    """One client session, for people."""

    session: str
    host: str | None
    conversation: str | None
    root: str
    attached: bool
    calls: int


class About(Struct, frozen=True):
    """The daemon itself."""

    pid: int
    protocol: int
    build: int
    seconds: float
    """How long it has been running."""
    socket: str
    log: str
    superseded: bool
    """A client with newer code has called: it ends as soon as no client is attached."""
    sessions: tuple[Attendee, ...]
    servers: Mapping[str, int]
    """Running language servers by id."""
    unread: tuple[str, ...] = ()
    """What hosts have sent to their hooks and could not be read, a sentence for each host."""
