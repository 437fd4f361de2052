"""Starting the daemon, for a client that finds none. Waits for word from the new process, and never by the clock.

The new process says on a pipe whether it listens, whether somebody else does already, or why it cannot.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from pilotfish.ipc.rendezvous import DaemonPlace, Missed, NoDaemon, connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from pilotfish.daemon.start import main; main(int(sys.argv[2]))"
"""Run with `-I`: neither the environment nor a current folder decides what is imported."""

PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder that this package lies in, which is where the daemon must find it."""

ATTEMPTS = 3
"""A daemon may end just after it was found running; more often than this in a row is no accident."""

MAX_WORD = 4096
"""Bytes of what the new process says: a line."""


class CannotStart(Missed):
    """The daemon could not be started, or not in time."""


def reach(place: DaemonPlace, environment: Mapping[str, str], seconds: float) -> "socket.socket":
    """A connection to the daemon, which is started when none runs. Raises `Missed`, at the latest after `seconds`."""
    deadline = time.monotonic() + seconds
    for _ in range(ATTEMPTS):
        with suppress(NoDaemon):
            return connect(place, seconds)
        start(environment, deadline)
    return connect(place, seconds)


def start(environment: Mapping[str, str], deadline: float) -> None:
    """Start a daemon and wait until it listens, or another one does; raises `CannotStart` with the reason."""
    hearing, saying = os.pipe()
    try:
        child = _launch(environment, saying)
        word = _word(hearing, deadline)
    finally:
        os.close(hearing)
    if word is None:
        child.kill()
    # It only forks and leaves: the daemon is its child, so that it is nobody's to reap.
    child.wait()
    said, _, reason = (word or b"").decode(errors="replace").strip().partition(" ")
    if said in {"ready", "running"}:
        return
    raise CannotStart(f"the daemon could not be started: {reason or ('it ended' if word == b'' else 'not in time')}")


def _launch(environment: Mapping[str, str], saying: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", BOOTSTRAP, PACKAGES, str(saying)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(saying,),
            start_new_session=True,
            cwd="/",
            env=environment,
        )
    except OSError as error:
        raise CannotStart(f"the daemon could not be started: {error}") from None
    finally:
        os.close(saying)


def _word(hearing: int, deadline: float) -> bytes | None:
    """All that the new process says, up to the end of the pipe; None when that does not come in time."""
    poller = select.poll()
    poller.register(hearing, select.POLLIN)
    word = b""
    while poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
        data = os.read(hearing, MAX_WORD)
        word += data
        if not data or len(word) >= MAX_WORD:
            return word
    return None
