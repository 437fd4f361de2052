"""A question of the command line whose answer goes into a pipe: the daemon reads its words, asks, and prints.

Importing the whole command line takes longer than a warm server's answer. Whatever is not plain (no daemon, one of
another build, wrong words, a terminal) is left to the command line itself: to ask twice changes nothing.
"""

import os
import sys

from pilotfish.ipc.hook_program import RESULT, bodies, framed, write
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL, DaemonPlace, Missed, connect, packed

# `typing` costs as much as the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

VERBS = frozenset({
    "check", "declaration", "definition", "explore", "hover", "impact", "implementation", "references", "signature",
    "source", "symbols", "type-definition", "workspace-symbols",
})  # fmt: skip
"""Those that ask, and change nothing."""

NOT_HERE = frozenset({"-h", "--help", "--no-daemon", "--changed", "--stdin", "--watch"})
"""The last three of `check`: they need git, standard input, and more than one answer."""

WAIT_SECONDS = 600.0
"""Above what any question may take."""

SPINNER_SECONDS = 0.15
"""A person who waits for longer is shown progress, by the command line."""

LAST_SECONDS = 2.0
"""For what is known of a check that was interrupted."""

MAX_PRINTED = 64 * 1024 * 1024
"""Bytes of one message."""

PRINTED = b'{"jsonrpc":"2.0","method":"printed","params":{'
CANCEL = b'Content-Length: 62\r\n\r\n{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}'

NO_VERDICT, INTERRUPTED = 2, 130
CLOSED_PIPE = 141
"""The exit code that shells give to a program whose reader has closed the pipe."""


def answer(arguments: "Sequence[str]", environment: "Mapping[str, str]") -> int | None:
    """Print the answer and return the exit code; None: nothing was printed, and the command line is to do it."""
    if not is_plain(arguments, environment):
        return None
    heard, connection = bytearray(), None
    try:
        try:
            connection = connect(DaemonPlace(environment), WAIT_SECONDS)
            connection.sendall(_request(arguments, environment))
        except (Missed, OSError):
            return None
        # A person who waits is shown progress, by the command line.
        connection.settimeout(SPINNER_SECONDS if os.isatty(2) else WAIT_SECONDS)
        return _print(connection, heard)
    except BrokenPipeError:
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return _interrupt(connection, heard)
    finally:
        if connection is not None:
            connection.close()


def _print(connection: "socket.socket", heard: bytearray) -> int | None:
    """Print what the daemon tells until it gives the exit code; None where it gives none and nothing was printed."""
    printed = False
    try:
        for body in bodies(connection, heard, MAX_PRINTED):
            if body.startswith(RESULT):
                return int(body[len(RESULT) : body.rindex(b'"')])
            if not body.startswith(PRINTED):
                break
            # The members are plain: `"output":"…","error":"…"`, in hexadecimal digits.
            output, error = (bytes.fromhex(digits.decode()) for digits in body[len(PRINTED) :].split(b'"')[3:8:4])
            write(1, output)
            write(2, error)
            printed = True
            connection.settimeout(WAIT_SECONDS)
    except (TimeoutError, ConnectionResetError, ValueError):
        # No daemon of this build, or one that ended: what is not printed yet is for the command line.
        pass
    return NO_VERDICT if printed else None


def _interrupt(connection: "socket.socket | None", heard: bytearray) -> int:
    """Give the question up; a check still prints what it knows."""
    try:
        if connection is not None:
            connection.sendall(CANCEL)
            connection.settimeout(LAST_SECONDS)
            _print(connection, heard)
    except (KeyboardInterrupt, OSError):
        pass
    write(2, b"Interrupted.\n")
    return INTERRUPTED


def is_plain(arguments: "Sequence[str]", environment: "Mapping[str, str]") -> bool:
    """Whether this is a question that the daemon can answer in the place of the command line."""
    asks = bool(arguments) and arguments[0] in VERBS and not any(word in NOT_HERE for word in arguments)
    daemon = environment.get("PILOTFISH_NO_DAEMON", "0") in {"", "0"} and "_PILOTFISH_COMPLETE" not in environment
    return asks and daemon and not os.isatty(1) and sys.stdout.encoding.lower() == "utf-8"


def _request(arguments: "Sequence[str]", environment: "Mapping[str, str]") -> bytes:
    words, cwd = b"\0".join(map(os.fsencode, arguments)).hex(), os.fsencode(os.getcwd()).hex()
    params = f'"protocol":{PROTOCOL},"build":{BUILD},"cwd":"{cwd}","words":"{words}"'
    return framed("command", f'{params},"environment":"{packed(environment)}"')
