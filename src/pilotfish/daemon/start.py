"""The daemon's first steps: detach, claim the place, listen, report. Only then is the rest of the program imported."""

import os
import signal
import sys
from typing import Never

from pilotfish.daemon.claim import claim_daemon, make_private
from pilotfish.ipc.rendezvous import DaemonPlace


def main(saying: int) -> Never:
    """Be the program that `surfaces.starter` runs. `saying` is the pipe on which a client waits for word."""
    if os.fork():
        os._exit(0)
    os.set_inheritable(saying, False)  # noqa: FBT003 - its only signature
    place = DaemonPlace(os.environ)
    try:
        settle(place)
        claim = claim_daemon(place)
    except Exception as error:  # noqa: BLE001 -- whoever waits must hear of anything, and nobody else is there to
        _say(saying, f"failed {error}")
        os._exit(1)
    _say(saying, "ready" if claim else "running")
    if claim is not None:
        from pilotfish.daemon.main import run

        run(claim)
    os._exit(0)


def settle(place: DaemonPlace) -> None:
    """Leave what was inherited behind: signals, folder and standard streams; what is printed goes to the log."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir("/")
    make_private(place.folder)
    make_private(os.path.dirname(place.log))
    log = os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def _say(saying: int, word: str) -> None:
    line = " ".join(word.split())
    try:
        os.write(saying, line.encode(errors="replace")[:1000])
    except BrokenPipeError:
        # The client has given up. The next one finds us.
        print(line, file=sys.stderr)  # noqa: T201 -- standard error is the log
    os.close(saying)
