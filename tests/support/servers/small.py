"""Small real servers for the tests of `host.process`: what they run, and how to hear them."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from textwrap import dedent

import anyio

from pilotfish.model import AbsPath
from pilotfish.system.ports import Launch, Process
from pilotfish.system.process import spawn
from support.process_tree import member

BOUND_SECONDS = 10.0
"""For a whole test: none takes a second."""

ECHO = """
while data := os.read(0, 1 << 20):
    while data:
        data = data[os.write(1, data):]
"""
"""Says what it hears, to the end of its input."""

TREES = {
    "a child": """
        pid = os.fork() or hold("child")
        """,
    "a child that ignores SIGTERM": """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.fork() or hold("child")
        """,
    "a grandchild in its own session that ignores SIGTERM": """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            os.fork() or hold("grandchild")
            hold("child")
        """,
    "a double-forked daemon": """
        if os.fork() == 0:
            os.setsid()
            os.fork() or hold("daemon")
            os._exit(0)
        os.wait()
        """,
    "a daemon that started a daemon": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                if os.fork() == 0:
                    os.setsid()
                    os.fork() or hold("daemon")
                    os._exit(0)
                os.wait()
                hold("daemon")
            os._exit(0)
        os.wait()
        """,
}
MEMBERS = dict(zip(TREES, (2, 2, 3, 2, 3), strict=True))
"""How many processes each tree has, the server included."""

PREAMBLE = """
import os, signal, sys

def say(text):
    os.write(1, text.encode() + b"\\n")

def hold(name):
    say(f"{name} {os.getpid()}")
    while True:
        signal.pause()

"""


def launch(code: str, *arguments: str, environment: dict[str, str] | None = None, cwd: str = "/") -> Launch:
    argv = [sys.executable, "-I", "-S", "-c", PREAMBLE + dedent(code), *arguments]
    return Launch(argv, AbsPath(cwd), environment or {}, "small-server")


@asynccontextmanager
async def running(code: str, *, write_stall_seconds: float = 5.0) -> AsyncGenerator[Process]:
    with anyio.fail_after(BOUND_SECONDS):
        async with spawn(launch(code), write_stall_seconds=write_stall_seconds) as server:
            yield server


async def hear(server: Process, count: int) -> list[str]:
    """The next lines that the server says, so many and no more."""
    heard = b""
    while heard.count(b"\n") < count:
        data = await server.receive()
        assert data, f"it ended after {heard!r}; {server.stderr_tail()}"
        heard += data
    return heard.decode().splitlines()


async def line(server: Process) -> str:
    """The one line that the server says now."""
    (said,) = await hear(server, 1)
    return said


def tree(shape: str) -> str:
    """A server with such a tree, which exits with 3 when it is sent a byte."""
    return dedent(TREES[shape]) + "os.read(0, 1)\nos._exit(3)\n"


async def members(server: Process, shape: str) -> list[int]:
    """The pids of a tree of that shape, its server's first, once all have said theirs."""
    return [server.pid, *(int(said.split()[1]) for said in await hear(server, MEMBERS[shape] - 1))]


def supervisor_of(server: Process) -> int:
    found = member(server.pid)
    assert found is not None
    return found.parent
