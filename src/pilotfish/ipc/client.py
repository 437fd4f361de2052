"""The blocking client of the daemon, for every program but the hook. Every wait has a limit.

    with open_link(Introduction(cwd="/project")) as link:
        feedback = link.request("touched", {"paths": ["src/a.py"], "kind": "edit"})

A daemon is started when none runs. Every error is a `Failure`: the kind that the daemon reported, or `Unavailable` when
it cannot be reached, does not answer, or closes the connection. After an error the connection is closed, because a late
answer would be taken for the next one.

One thread at a time. Imports the standard library only, and nothing of it that is slow.
"""

import json
import os
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Self, cast

from pilotfish.errors import Bug, Code, Failure, Refused, ServerFailed, Unavailable
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL, Busy, DaemonPlace, Missed, NoDaemon, Unsafe, connect, packed
from pilotfish.protocol.frames import FrameDecoder, FrameError, frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

START_SECONDS = 20.0
"""For a daemon that has to be started first: half a second here, many on a machine that swaps."""

ANSWER_SECONDS = 90.0
"""For an answer, by default: the daemon gives a cold server 60 s."""

RECEIVE_BYTES = 256 * 1024
"""What one read may bring."""

HELLOS = 3
"""How often to connect when the daemon is just ending or being replaced: twice is what happens."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """Who the client is; see `ipc.client_sessions`. Without `cwd` it can only inspect the daemon."""

    cwd: str | None = None
    root: str | None = None
    host: str | None = None
    conversation: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """Which daemon, whether to start it, and how long that may take."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    start: bool = True
    seconds: float = START_SECONDS


def open_link(introduction: Introduction | None = None, terms: Terms | None = None) -> "Link":
    """A connection that has said hello. Raises `Failure`."""
    introduction, terms = introduction or Introduction(), terms or Terms()
    said = {"protocol": PROTOCOL, "build": BUILD, **asdict(introduction)}
    if introduction.cwd is not None:
        said["environment"] = packed(terms.environment)
    last: Failure | None = None
    for _ in range(HELLOS):
        link = Link(_connection(terms))
        try:
            link.welcome = link.request("hello", said, terms.seconds)
        except Unavailable as failure:
            link.close()
            if failure.code not in {Code.UPGRADE, Code.SHUTTING_DOWN}:
                raise
            last = failure
        except BaseException:
            link.close()
            raise
        else:
            return link
    raise last or Bug("no hello in time")


def start_ahead() -> None:
    """Have a daemon run, for a caller that imports what it needs before it connects: both import side by side.

    What fails here fails again when the caller connects, and is reported there.
    """
    with suppress(Failure):
        _connection(Terms()).close()


class Link:
    """One connection. `welcome` is the daemon's answer to hello: `protocol`, `build`, `pid`, `session`, `root`."""

    def __init__(self, connection: "socket.socket") -> None:
        self.welcome: Mapping[str, Any] = {}
        self._connection = connection
        self._decoder = FrameDecoder()
        self._bodies: deque[bytes] = deque()
        self._number = 0
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self,
        method: str,
        params: object = None,
        seconds: float = ANSWER_SECONDS,
        heard: "Callable[[str, Any], None]" = lambda _method, _params: None,
    ) -> Any:
        """The result of a method, as JSON; raises the `Failure` that the daemon answered with, or `Unavailable`.

        `heard` gets the notifications that come before it; each begins the time anew.
        """
        if self._closed:
            raise Unavailable(Code.SHUTTING_DOWN, "the connection to the daemon has ended")
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        try:
            self._connection.settimeout(seconds)
            with suppress(BrokenPipeError):  # it has hung up; what it said last is still to be read
                self._connection.sendall(frame(json.dumps(message).encode()))
            answer = self._answer(seconds, heard)
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError):
                message = f"the daemon did not answer {method} within {seconds:g} s"
                raise Unavailable(Code.REQUEST_TIMEOUT, message) from None
            if isinstance(error, OSError | EOFError | FrameError | ValueError):
                raise Unavailable(
                    Code.SHUTTING_DOWN, f"the daemon closed the connection: {error}", hint=_LOGS
                ) from None
            raise
        if "error" in answer:
            raise failure_of(answer["error"]["message"], answer["error"].get("data") or {})
        return answer.get("result")

    def upgraded(self, method: str, params: object = None) -> "socket.socket":
        """Upgrade the connection (`Upgraded`) and return its socket, which is the caller's from now on."""
        self.request(method, params)
        return self.released()

    def released(self) -> "socket.socket":
        """Give the socket to the caller, between two requests."""
        self._closed = True
        self._connection.settimeout(None)
        return self._connection

    def close(self) -> None:
        """Close the connection, which ends the session; harmless when it is closed already."""
        if not self._closed:
            self._closed = True
            self._connection.close()

    def _answer(self, seconds: float, heard: "Callable[[str, Any], None]") -> dict[str, Any]:
        while True:
            deadline = time.monotonic() + seconds
            while not self._bodies:
                self._connection.settimeout(max(0.001, deadline - time.monotonic()))
                data = self._connection.recv(RECEIVE_BYTES)
                if not data:
                    raise EOFError("it closed the connection")
                self._bodies.extend(self._decoder.feed(data))
            message = cast("dict[str, Any]", json.loads(self._bodies.popleft()))
            if message.get("method") == "closing":
                raise failure_of(message["params"]["message"], message["params"])
            if "method" in message:
                heard(message["method"], message["params"])
            elif message.get("id") == self._number:
                return message


def _connection(terms: Terms) -> "socket.socket":
    place = DaemonPlace(terms.environment)
    try:
        try:
            return connect(place, terms.seconds)
        except NoDaemon:
            if not terms.start:
                raise
        from pilotfish.ipc.starter import reach

        return reach(place, terms.environment, terms.seconds)
    except Unsafe as unsafe:
        hint = f"Inspect it, then remove it: {place.socket_folder}"
        raise Refused(Code.UNTRUSTED, f"the daemon's folder is not safe: {unsafe}", hint=hint) from None
    except Busy as busy:
        raise Unavailable(Code.OVERLOADED, str(busy), hint=_RESTART) from None
    except NoDaemon:
        raise Unavailable(Code.NOT_FOUND, "no daemon is running", hint="Start one: pilotfish daemon start") from None
    except (Missed, OSError) as error:
        raise Unavailable(Code.SERVER_START_FAILED, str(error), hint=_LOGS) from None


def failure_of(message: str, data: Mapping[str, Any]) -> Failure:
    """The failure that the daemon reported, as the same kind again."""
    kind = KINDS.get(str(data.get("kind")), Unavailable)
    if kind is Bug:
        return Bug(message)
    try:
        code = Code(str(data.get("code")))
    except ValueError:
        # Of a daemon that is newer than we are, or of JSON-RPC itself.
        code = Code.PROTOCOL_ERROR
    return kind(code, message, hint=data.get("hint"))


KINDS: Mapping[str, type[Failure]] = {
    "refused": Refused,
    "unavailable": Unavailable,
    "server_failed": ServerFailed,
    "bug": Bug,
}
"""As the daemon names them."""
_LOGS = "See its log: pilotfish daemon logs"
_RESTART = "Stop it and try again: pilotfish daemon stop"
