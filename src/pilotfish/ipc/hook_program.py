"""The hook program: copies the host's event to the daemon, and the daemon's answer to the host.

It parses neither. On any failure (no daemon, a daemon that hangs, an event that cannot be read, a deadline) it prints
nothing and exits with 0: an edit never looks as if it had failed (FMT-8, HOOK-2). Only of a host that does not exist,
it tells on standard error.

It runs for every edit and imports next to nothing, so the one message of its protocol is written by hand: bytes are
sent as hexadecimal digits, which need no escaping and no module.
"""

import os
import sys

from pilotfish.ipc.rendezvous import BUILD, PROTOCOL, DaemonPlace, NoDaemon, connect, packed

# `signal` wraps this module in enums. `typing` costs as much.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Iterator, Sequence
    from typing import Never
else:
    import _signal as signal

DEADLINE_SECONDS = 8.0
"""Below the shortest that hosts give their hooks (10 s), and above what a warm server takes."""

SILENT_SECONDS = 2.0
"""What `setup` gives to the hooks of events after which nothing is ever printed: a session begins, a tool is next."""

MAX_EVENT = 24 * 1024 * 1024
"""Bytes of an event, which holds the text of a file or two; as digits it must fit into one message."""

MAX_ANSWER = 1024 * 1024
"""Bytes of an answer: hosts cut at ten thousand characters."""

MAX_HEADER = 100
"""Bytes before the body of a message; ours has thirty."""

RESULT = b'{"jsonrpc":"2.0","id":0,"result":"'
LEAVING = (b'"code":"upgrade"', b'"code":"shutting_down"')
"""In the answer of a daemon that is ending: the next daemon is asked instead."""

UNKNOWN = b"no host is called "
"""In the answer to a name that only a person can have mistyped, who is told so."""


def run(arguments: "Sequence[str]") -> "Never":
    """Run with the arguments `HOST [--deadline-ms N]`."""
    try:
        _limit(deadline(arguments))
        write(1, relay(arguments[0], _read(), deadline(arguments)))
    except BaseException:  # noqa: BLE001, S110 -- the hook promises to stay silent
        pass
    os._exit(0)


def deadline(arguments: "Sequence[str]") -> float:
    """The seconds that this may take."""
    if len(arguments) == 3 and arguments[1] == "--deadline-ms":
        return max(1, int(arguments[2])) / 1000
    if len(arguments) != 1:
        raise ValueError(arguments)
    return DEADLINE_SECONDS


def relay(host: str, event: bytes, seconds: float = DEADLINE_SECONDS) -> bytes:
    """Return what the daemon wants printed. If the daemon is just ending, ask the next one, once."""
    place = DaemonPlace(os.environ)
    message = request(host, os.fsencode(os.getcwd()), event, packed(os.environ), seconds)
    try:
        answer = exchange(_connect(place, seconds), message)
    except ConnectionError:
        answer = b""
    if not answer or (not answer.startswith(RESULT) and any(word in answer for word in LEAVING)):
        answer = exchange(_connect(place, seconds), message)
    if UNKNOWN in answer and not answer.startswith(RESULT):
        write(2, f"pilotfish: no host is called {host}. To see which there are: pilotfish setup --help\n".encode())
    return printed(answer)


def request(host: str, cwd: bytes, event: bytes, environment: str, seconds: float = DEADLINE_SECONDS) -> bytes:
    """The whole message, framed. The daemon answers within these seconds with what it has, and keeps the rest."""
    if not host.isascii() or not host.replace("-", "").isalnum():
        raise ValueError(host)
    greeting = f'"protocol":{PROTOCOL},"build":{BUILD},"host":"{host}","cwd":"{cwd.hex()}"'
    params = f'{greeting},"seconds":{seconds},"environment":"{environment}","event":"{event.hex()}"'
    return framed("hook", params)


def framed(method: str, params: str) -> bytes:
    """A request with the members of its parameters."""
    body = f'{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{{{params}}}}}'.encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def printed(answer: bytes) -> bytes:
    """What to print for an answer: nothing, unless it is a result."""
    if not answer.startswith(RESULT):
        return b""
    return bytes.fromhex(answer[len(RESULT) : answer.rindex(b'"')].decode())


def exchange(connection: "socket.socket", message: bytes) -> bytes:
    """Send the message and return the body of the first one that comes back."""
    connection.sendall(message)
    for body in bodies(connection, bytearray(), MAX_ANSWER):
        connection.close()
        return body
    return b""


def bodies(connection: "socket.socket", heard: bytearray, most: int) -> "Iterator[bytes]":
    """Of the messages that come, each of at most so many bytes. `heard` keeps what is not a whole one, for a caller
    that is interrupted."""
    while data := connection.recv(65536):
        heard += data
        while (end := heard.find(b"\r\n\r\n")) >= 0:
            size = int(heard[:end].partition(b":")[2])
            if not 0 < size <= most:
                raise ValueError(size)
            whole = end + 4 + size
            if len(heard) < whole:
                break
            body = bytes(heard[end + 4 : whole])
            del heard[:whole]
            yield body
        if len(heard) > most + MAX_HEADER:
            raise ValueError(len(heard))


def _connect(place: DaemonPlace, seconds: float) -> "socket.socket":
    try:
        return connect(place, seconds)
    except NoDaemon:
        if seconds == SILENT_SECONDS:
            _let_host_go_on()
        from pilotfish.ipc.starter import reach

        return reach(place, os.environ, seconds)


def _let_host_go_on() -> None:
    """Starting a daemon takes ten times as long as this program: where nothing is printed, nobody waits for it.

    The host waits for the end of this process and of what it may print. A child of its own session goes on.
    """
    if sys.platform == "win32":
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    # A child has no timer of its parent's.
    _limit(DEADLINE_SECONDS)


def _limit(seconds: float) -> None:
    """End this program then. Windows has no such timer: there only the limit of the socket holds."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _read() -> bytes:
    event = b""
    while data := os.read(0, 1 << 20):
        event += data
        if len(event) > MAX_EVENT:
            raise ValueError(len(event))
    return event


def write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
