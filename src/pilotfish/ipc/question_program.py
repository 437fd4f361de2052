"""A question of the command line whose answer goes into a pipe: the daemon reads its words, asks, and prints.

Importing the whole command line takes longer than a warm server's answer. Whatever is not plain (no daemon, one of
another build, wrong words, a terminal) is left to the command line itself: to ask twice changes nothing.
"""

import os
import sys

from pilotfish.ipc.hook_program import exchange, framed, printed, write
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL, DaemonPlace, Missed, connect, packed

# `typing` costs as much as the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
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

MAX_PRINTED = 16 * 1024 * 1024

NO_VERDICT, INTERRUPTED = 2, 130


def answer(arguments: "Sequence[str]", environment: "Mapping[str, str]") -> int | None:
    """Print the answer and return the exit code; None: nothing was printed, and the command line is to do it."""
    if not is_plain(arguments, environment):
        return None
    try:
        result = _ask(arguments, environment, SPINNER_SECONDS if os.isatty(2) else WAIT_SECONDS)
    except KeyboardInterrupt:
        write(2, b"Interrupted.\n")
        return INTERRUPTED
    except (Missed, OSError, ValueError):
        return None
    if not result:
        return None
    code, length, texts = result.split(b"\n", 2)
    try:
        write(1, texts[: int(length)])
        write(2, texts[int(length) :])
    except BrokenPipeError:
        return NO_VERDICT
    return int(code)


def is_plain(arguments: "Sequence[str]", environment: "Mapping[str, str]") -> bool:
    """Whether this is a question that the daemon can answer in the place of the command line."""
    asks = bool(arguments) and arguments[0] in VERBS and not any(word in NOT_HERE for word in arguments)
    daemon = environment.get("PILOTFISH_NO_DAEMON", "0") in {"", "0"} and "_PILOTFISH_COMPLETE" not in environment
    return asks and daemon and not os.isatty(1) and sys.stdout.encoding.lower() == "utf-8"


def _ask(arguments: "Sequence[str]", environment: "Mapping[str, str]", seconds: float) -> bytes:
    words, cwd = b"\0".join(map(os.fsencode, arguments)).hex(), os.fsencode(os.getcwd()).hex()
    params = f'"protocol":{PROTOCOL},"build":{BUILD},"cwd":"{cwd}","words":"{words}"'
    message = framed("command", f'{params},"environment":"{packed(environment)}"')
    return printed(exchange(connect(DaemonPlace(environment), seconds), message, MAX_PRINTED))
