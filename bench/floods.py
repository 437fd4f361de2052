"""A server that floods: diagnostics for ever more files and words on standard error, while somebody asks another one.

`python bench/floods.py [--publishes N] [--stderr-mb N]` prints; it never judges. The server is a real process, the
service runs in this one, and a watchdog in its event loop says how long it was ever kept from running.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import anyio
from harness.pages import options

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation, Question, Touch
from support.daemon.homes import FAKELS, TESTS, fake_server
from support.services.real import RealService, real_service

TICK_SECONDS = 0.005
LIMITS = {"requestTimeoutMs": 1_800_000, "diagnosticsWaitTimeoutMs": 600_000, "firstTouchTimeoutMs": 600_000}


class Watchdog:
    """How late a task was ever woken."""

    def __init__(self) -> None:
        self.worst = 0.0
        self.late = 0

    async def run(self) -> None:
        while True:
            before = time.monotonic()
            await anyio.sleep(TICK_SECONDS)
            blocked = time.monotonic() - before - TICK_SECONDS
            self.worst = max(self.worst, blocked)
            self.late += blocked > 0.1


async def flooded(running: RealService, name: str) -> tuple[float, list[float]]:
    """How long the flood took, and each question to the server beside it."""
    asked: list[float] = []
    hover = Question(operation=Operation.HOVER, file_path=name, line=1, character=1)

    async def neighbour() -> None:
        while True:
            began = time.monotonic()
            answer = await running.service.ask(
                Question(operation=Operation.HOVER, file_path="good.x", line=1, character=1), running.client
            )
            assert answer.meta.state is State.FRESH, answer
            asked.append(time.monotonic() - began)
            await anyio.sleep(0.05)

    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(neighbour)
        answer = await running.service.ask(hover, running.client)
        assert answer.meta.state is State.FRESH, answer
        tasks.cancel_scope.cancel()
    return time.monotonic() - began, asked


async def main() -> None:
    chosen = options(__doc__, publishes=100_000, stderr_mb=1024)
    command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), "support.servers.faults:floods_as_told"]
    environment = {"PUBLISHES": str(chosen.publishes), "STDERR_MB": str(chosen.stderr_mb)}
    flood = {"command": command, "extensions": [".flood"], "env": environment}
    with tempfile.TemporaryDirectory() as folder:
        servers = {"flood": flood, "toy": fake_server("answering")}
        async with real_service(Path(os.path.realpath(folder)), {"lsp": servers, "timing": LIMITS}) as running:
            for name in ("a.flood", "good.x"):
                await running.service.touched(Touch((running.write(name, "good\n"),), "edit"), running.client)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            dog = Watchdog()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(dog.run)
                seconds, asked = await flooded(running, "a.flood")
                tasks.cancel_scope.cancel()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    middle = sorted(asked)[len(asked) // 2] if asked else 0.0
    print(f"{chosen.publishes} publishes and {chosen.stderr_mb} MB of standard error in {seconds:.1f} s")
    print(f"memory at most {peak:.0f} MiB (before {before:.0f})")
    print(f"loop blocked at most {dog.worst * 1000:.0f} ms, {dog.late} times longer than 100 ms")
    print(f"the server beside it answered {len(asked)} times, {middle * 1000:.1f} ms in the middle")


if __name__ == "__main__":
    anyio.run(main)
