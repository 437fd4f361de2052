"""Many clients at one daemon: `python bench/load.py [--clients 32] [--requests 1000]` prints; it ends with 1 on a loss.

A real daemon with a server that answers at once (a scripted one, as a real process), so that what is measured is ours.
Every client is a thread with a connection of its own and asks one thing after the other: edits, questions, checks, the
daemon itself, files that are not there. In a second round one more client floods: it keeps a thousand calls waiting.

Fairness is the share of the slowest client in what the fastest had: 1.00 when all end at the same time.
"""

import os
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from harness.numbers import percentile
from harness.pages import options
from harness.setting import resident

from pilotfish.ipc.rendezvous import connect
from support.daemon.homes import DaemonHome, daemon_home
from support.daemon.mixed import REQUESTS, is_right, make_workspace

WAITING = 900
"""Calls that the flood keeps at the daemon: below the number at which it says `overloaded`."""


@dataclass
class Heard:
    """What one client has seen."""

    seconds: float = 0.0
    right: int = 0
    times: list[float] = field(default_factory=list)


def client(home: DaemonHome, number: int, requests: int) -> Heard:
    heard = Heard()
    with home.link(host=f"host-{number % 3}") as link:
        began = time.perf_counter()
        for step in range(requests):
            method, params = REQUESTS[(number + step) % len(REQUESTS)]
            asked = time.perf_counter()
            heard.right += is_right(method, params, link.request(method, params))
            heard.times.append((time.perf_counter() - asked) * 1000)
        heard.seconds = time.perf_counter() - began
    return heard


def flood(home: DaemonHome, enough: Event) -> int:
    """Keep the daemon busy with calls of one client; returns how many were answered."""
    body = b'{"jsonrpc":"2.0","id":%d,"method":"check","params":{"paths":["a.x","b.x"]}}'
    said = b'{"jsonrpc":"2.0","id":"h","method":"hello","params":{"protocol":1,"cwd":"%b"}}' % os.fsencode(home.root)
    end: socket.socket = connect(home.place, 60.0)
    end.sendall(_framed(said))
    sent = answered = 0
    while not enough.is_set():
        more = WAITING - (sent - answered)
        end.sendall(b"".join(_framed(body % (sent + number)) for number in range(more)))
        sent += more
        answered += end.recv(1 << 20).count(b"Content-Length: ")
    end.close()
    return answered


def _framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def race(home: DaemonHome, clients: int, requests: int, *, flooded: bool) -> list[Heard]:
    enough = Event()
    with ThreadPoolExecutor(clients + 1) as threads:
        rude = threads.submit(flood, home, enough) if flooded else None
        began = time.perf_counter()
        heard = list(threads.map(lambda number: client(home, number, requests), range(clients)))
        seconds = time.perf_counter() - began
        enough.set()
        if rude is not None:
            print(f"  the flood had {rude.result()} answers meanwhile")
    report(heard, clients * requests, seconds)
    return heard


def report(heard: list[Heard], wanted: int, seconds: float) -> None:
    times = [spent for one in heard for spent in one.times]
    ended = [one.seconds for one in heard]
    right = sum(one.right for one in heard)
    shown = "  ".join(f"p{part} {percentile(times, part / 100):.1f}" for part in (50, 95, 99))
    print(f"  {right} of {wanted} right, {wanted - right} lost or wrong; {wanted / seconds:.0f} requests per second")
    print(f"  ms per request: {shown}  max {max(times):.1f}")
    print(f"  fairness {min(ended) / max(ended):.2f} (clients ended after {min(ended):.1f} to {max(ended):.1f} s)")


def main() -> int:
    given = options(__doc__, clients=32, requests=1000)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, daemon_home(Path(folder)) as home:
        make_workspace(home.root)
        with home.link() as link:
            link.request("check", {"paths": ["a.x", "b.x"]})
            pid = int(link.welcome["pid"])
        before = resident(pid)
        for flooded in (False, True):
            print(f"{given.clients} clients × {given.requests} requests{', one flooding' if flooded else ''}:")
            heard = race(home, given.clients, given.requests, flooded=flooded)
            wrong += given.clients * given.requests - sum(one.right for one in heard)
            print(f"  daemon: {before:.1f} MB before, {resident(pid):.1f} MB after")
        with home.control() as link:
            about = link.request("about")
            print(f"sessions left {len(about['sessions'])}, servers {about['servers']}")
            link.request("stop")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
