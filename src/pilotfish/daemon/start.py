"""The daemon's first steps: detach, claim the place, listen, report. Only then is the rest of the program imported."""

import gc
import os
import signal
import sys
from typing import Never

from pilotfish.daemon.claim import claim_daemon, make_private
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.system import calls


def main(report: int) -> Never:
    """Run as `ipc.starter` starts it. `report` is the pipe on which the client waits for the outcome."""
    if sys.platform == "win32":
        report = os.dup(report)  # it is standard output, which becomes the log
    elif os.fork():
        os._exit(0)
    os.set_inheritable(report, False)  # noqa: FBT003 - its only signature
    place = DaemonPlace(os.environ)
    try:
        settle(place)
        claim = claim_daemon(place)
    except Exception as error:  # noqa: BLE001 -- the client that waits must learn of any failure
        _report(report, f"failed {error}")
        os._exit(1)
    _report(report, "ready" if claim else "running")
    if claim is not None:
        # What is imported stays for good: looking through it again and again takes a tenth of the start.
        gc.disable()
        from pilotfish.daemon.main import run

        gc.freeze()
        gc.enable()
        run(claim)
    os._exit(0)


def settle(place: DaemonPlace) -> None:
    """Reset what was inherited: signal handlers, working directory, standard streams. Output goes to the log."""
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir("/")
    make_private(place.folder)
    make_private(os.path.dirname(place.log))
    log = os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | calls.O_NOFOLLOW, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def _report(report: int, outcome: str) -> None:
    line = " ".join(outcome.split())
    try:
        os.write(report, line.encode(errors="replace")[:1000])
    except BrokenPipeError:
        # The client has given up waiting; the next one finds this daemon.
        print(line, file=sys.stderr)  # noqa: T201 -- standard error is the log
    os.close(report)
