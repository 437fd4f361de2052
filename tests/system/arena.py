"""Where the owners of servers are killed, and where the kernel is asked what is left of them.

Run as `python arena.py VICTIM CYCLES`; prints one JSON object. The arena is the child subreaper of all that it starts:
whatever an owner, a supervisor or a server leaves behind becomes the arena's own child, so "no child is left" is a
proof and not a search. Owners are forked from here, with everything imported, a batch at a time.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress

import anyio

from pilotfish.model import AbsPath
from pilotfish.system.ports import Exit, Launch, Process
from pilotfish.system.process import spawn
from pilotfish.system.supervisor import PR_SET_CHILD_SUBREAPER
from support.process_tree import below, member

BATCH = 8
"""Owners at once: enough to keep two processors busy while interpreters start."""

GONE_SECONDS = 5.0
"""How long what is left of a batch has to go: a hundred times what it takes."""

MOMENTS = ("starting", "started", "working", "stopping", "ending")
"""When the victim is killed: somewhere on the way to a running server, when it has just been executed, when its tree
stands, after SIGTERM was sent (and ignored), after SIGKILL was asked for."""

START_SPREAD_SECONDS = 0.2
"""A batch needs this to start, so kills spread over it fall into each step of a start."""

SERVER = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(1, b"up")
    while True:
        signal.pause()
while data := os.read(0, 65536):
    os.write(1, data)
while True:
    signal.pause()
"""
"""Ignores SIGTERM and the end of its input, and has a child and a grandchild, each in its own session."""


def main(victim: str, cycles: int) -> None:
    anyio.run(anyio.lowlevel.checkpoint)  # imports the event loop here, once, and not in every owner
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    faults: list[str] = []
    slowest = 0.0
    for start in range(0, cycles, BATCH):
        faults += fight(victim, range(start, min(start + BATCH, cycles)))
        began = time.monotonic()
        faults += remains(began + GONE_SECONDS)
        slowest = max(slowest, time.monotonic() - began)
    print(json.dumps({"faults": faults, "slowest": slowest}))


def fight(victim: str, numbers: range) -> list[str]:
    """Run a batch of owners, until each has been killed or has seen its server end; return those that ended wrong."""
    owners = {number: fork_owner(victim, number) for number in numbers}
    if victim.startswith("owner"):
        starting = [number for number in numbers if MOMENTS[number % len(MOMENTS)] == "starting"]
        for number in starting:
            signal.sigtimedwait((), number * 0.037 % START_SPREAD_SECONDS / len(starting))
            os.kill(owners[number], signal.SIGKILL)
    wanted = -signal.SIGKILL if victim.startswith("owner") else 0
    codes = {number: os.waitstatus_to_exitcode(os.waitpid(owner, 0)[1]) for number, owner in owners.items()}
    return [f"the owner of cycle {number} ended with {code}" for number, code in codes.items() if code != wanted]


def remains(deadline: float) -> list[str]:
    """Wait until the kernel says that no child is left; what is there at the deadline is named, and ended."""
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        signal.sigtimedwait({signal.SIGCHLD}, max(0.0, deadline - time.monotonic()))
    named = [f"left: {each}" for each in below(os.getpid())]
    while found := below(os.getpid()):
        for each in found:
            os.kill(each.pid, signal.SIGKILL)
        os.waitpid(-1, 0)
    return named


def fork_owner(victim: str, number: int) -> int:
    owner = os.fork()
    if owner == 0:
        code = 70
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            anyio.run(live, victim, MOMENTS[number % len(MOMENTS)])
            code = 0
        finally:
            os._exit(code)
    return owner


async def live(victim: str, moment: str) -> None:
    """Own a server up to the moment, and strike then; an owner that survives sees its server end."""
    async with spawn(Launch([sys.executable, "-I", "-S", "-c", SERVER], AbsPath("/"), {}, "doomed")) as server:
        supervisor = member(server.pid)
        assert supervisor is not None
        if moment not in ("starting", "started"):
            assert await server.receive() == b"up"
            await server.send(b"work")
        if moment == "stopping":
            await server.terminate()
        if moment == "ending":
            await server.kill()
        strike(victim, server, supervisor.parent)
        assert await server.wait() == Exit(-signal.SIGKILL)


def strike(victim: str, server: Process, supervisor: int) -> None:
    """Kill the victim, with the signal that nothing can answer."""
    if victim == "owner with a forked copy" and os.fork() == 0:
        outlive(server.pid)
    targets = {"supervisor": supervisor, "server": server.pid}
    with suppress(ProcessLookupError):  # the server of a tree that is ending may be gone
        os.kill(targets.get(victim, os.getpid()), signal.SIGKILL)


def outlive(pid: int) -> None:
    """Be a copy of an owner that still holds all its descriptors, until the server is gone."""
    with suppress(ProcessLookupError):
        poller = select.poll()
        poller.register(os.pidfd_open(pid), select.POLLIN)
        poller.poll()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
