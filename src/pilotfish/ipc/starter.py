"""Starting the daemon, for a client that finds none. The new process reports on a pipe; nothing is polled.

It reports that it listens, that another daemon does already, or why it cannot.
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
"""A daemon may end just after it was found running, but not more often than this in a row."""

MAX_REPORT = 4096
"""Bytes of the report: a line."""


class CannotStart(Missed):
    """The daemon could not be started, or not in time."""


def reach(place: DaemonPlace, environment: Mapping[str, str], seconds: float) -> "socket.socket":
    """Connect to the daemon, starting it when none runs. Raises `Missed`, at the latest after `seconds`."""
    deadline = time.monotonic() + seconds
    for _ in range(ATTEMPTS):
        with suppress(NoDaemon):
            return connect(place, seconds)
        start(environment, deadline)
    return connect(place, seconds)


def start(environment: Mapping[str, str], deadline: float) -> None:
    """Start a daemon and wait until it listens, or another one does; raises `CannotStart` with the reason."""
    if sys.platform == "win32":
        word = _started_apart(environment, deadline)
    else:
        word = _started(environment, deadline)
    said, _, reason = (word or b"").decode(errors="replace").strip().partition(" ")
    if said in {"ready", "running"}:
        return
    raise CannotStart(f"the daemon could not be started: {reason or ('it exited' if word == b'' else 'timed out')}")


def _started(environment: Mapping[str, str], deadline: float) -> bytes | None:
    """The whole report, up to the end of the pipe; None when that does not come in time."""
    if sys.platform == "win32":
        return None
    reading, writing = os.pipe()
    try:
        try:
            child = subprocess.Popen(
                [sys.executable, "-I", "-c", BOOTSTRAP, PACKAGES, str(writing)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(writing,),
                start_new_session=True,
                cwd="/",
                env=environment,
            )
        except OSError as error:
            raise CannotStart(f"the daemon could not be started: {error}") from None
        finally:
            os.close(writing)
        poller, word = select.poll(), b""
        poller.register(reading, select.POLLIN)
        while poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            data = os.read(reading, MAX_REPORT)
            word += data
            if not data or len(word) >= MAX_REPORT:
                # It only forks and exits: the daemon is its child, so that init reaps it.
                child.wait()
                return word
    finally:
        os.close(reading)
    child.kill()
    child.wait()
    return None


def _started_apart(environment: Mapping[str, str], deadline: float) -> bytes | None:
    """On Windows the program is the daemon: without a console, outside of the host's job, and it reports on its output.

    A pipe is read there by a thread, which ends with it.
    """
    if sys.platform != "win32":
        return None
    from threading import Thread  # noqa: TID251 -- no event loop runs here

    apart = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    words = [sys.executable, "-I", "-c", BOOTSTRAP, PACKAGES, "1"]
    for flags in (apart | subprocess.CREATE_BREAKAWAY_FROM_JOB, apart):  # a job may not let it go
        with suppress(PermissionError):
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=flags,
                env=environment,
            )
            break
    else:
        raise CannotStart("the daemon could not be started: the system refused")
    assert child.stdout is not None
    output, heard = child.stdout, list[bytes]()
    reader = Thread(target=lambda: heard.append(output.read(MAX_REPORT)), daemon=True)
    reader.start()
    reader.join(max(0.0, deadline - time.monotonic()))
    if not heard:
        child.kill()
    return heard[0] if heard else None
