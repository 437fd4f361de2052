"""A program beside a server: when it is started again, and what is known of it. Virtual time, processes by script."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

import anyio
import pytest

from pilotfish.api.status import SidecarRow
from pilotfish.errors import Code, ServerFailed, Unavailable
from pilotfish.model import AbsPath
from pilotfish.pool.sidecar import LONGEST_DELAY, STEADY_SECONDS, Sidecar, running_sidecar
from pilotfish.system.ports import Launch, Process, Spawner
from support.servers.scripted import ScriptedProcess, ScriptedServer
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]


pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-3")]

LAUNCH = Launch(("/bin/generator", "--watch"), AbsPath("/w"), {}, "generator")


@dataclass
class Stage:
    sidecar: Sidecar
    started: list[ScriptedServer]

    @property
    def state(self) -> SidecarRow:
        return self.sidecar.state

    async def until_started(self, count: int) -> ScriptedServer:
        """Wait for the start of that number; returns what was started."""
        while len(self.started) < count:
            await anyio.sleep(0.01)
        return self.started[count - 1]


def spawning(started: list[ScriptedServer], *, failures: int = 0) -> Spawner:
    """Starts nothing the first `failures` times."""
    attempts = iter(range(1_000))

    @asynccontextmanager
    async def spawn(launch: Launch) -> AsyncGenerator[Process]:
        if next(attempts) < failures:
            raise ServerFailed(Code.SERVER_START_FAILED, "no memory")
        server = ScriptedServer(pid=100 + len(started))
        started.append(server)
        try:
            yield ScriptedProcess(server)
        finally:
            server.leave(-9)
            server.release()

    return spawn


@asynccontextmanager
async def stage(*, failures: int = 0) -> AsyncGenerator[Stage]:
    started: list[ScriptedServer] = []
    spawn = spawning(started, failures=failures)
    async with running_sidecar(lambda: LAUNCH, spawn, lambda: 0.0) as sidecar:
        assert sidecar is not None
        yield Stage(sidecar, started)


async def test_it_runs_as_long_as_the_block_and_is_asked_to_end_before_it_is_made_to() -> None:
    async with stage() as on:
        running = await on.until_started(1)
        assert (on.state.pid, on.state.starts, on.state.reason) == (100, 1, None)
        running.stderr = ("generating",)
        assert on.state.stderr == ("generating",)
    assert running.signals == ["terminate"]
    assert running.gone


async def test_one_that_will_not_end_is_made_to() -> None:
    async with stage() as on:
        running = await on.until_started(1)
        running.on_terminate = lambda: None
    assert running.gone


async def test_one_that_ends_is_started_again_later_each_time() -> None:
    async with stage() as on:
        times: list[float] = []
        for count in range(1, 10):
            running = await on.until_started(count)
            times.append(anyio.current_time())
            running.stderr = (f"failure {count}",)
            running.leave(3)
            await anyio.sleep(0.001)
            assert (on.state.pid, on.state.reason, on.state.stderr) == (
                None,
                "it exited with code 3",
                (f"failure {count}",),
            )
        gaps = [round(later - sooner) for sooner, later in pairwise(times)]
        assert gaps == [1, 2, 4, 8, 16, 32, LONGEST_DELAY, LONGEST_DELAY]


async def test_one_that_was_well_for_a_while_starts_a_new_row() -> None:
    async with stage() as on:
        for count in (1, 2, 3):
            (await on.until_started(count)).leave(1)
        await on.until_started(4)
        await anyio.sleep(STEADY_SECONDS)
        before = anyio.current_time()
        on.started[3].leave(-15)
        await anyio.sleep(0.001)
        assert on.state.reason == "it was killed by signal 15"
        await on.until_started(5)
        assert anyio.current_time() - before == pytest.approx(1.0, abs=0.1)


async def test_one_that_cannot_be_started_is_tried_again() -> None:
    async with stage(failures=2) as on:
        await anyio.sleep(0.5)
        assert (on.state.pid, on.state.starts, on.state.reason) == (None, 1, "no memory")
        await on.until_started(1)
        assert (on.state.pid, on.state.starts) == (100, 3)


async def test_what_it_says_is_read_or_it_could_not_go_on() -> None:
    async with stage() as on:
        running = await on.until_started(1)
        for _ in range(100):
            running.send(b"generated\n" * 1_000)
        await anyio.sleep(1)
        assert on.state.pid == 100
        running.close_output()
        await anyio.sleep(1)
        assert on.state.pid == 100


async def test_one_that_may_not_run_says_why_and_is_never_started() -> None:
    started: list[ScriptedServer] = []
    refusal = Unavailable(Code.UNTRUSTED, "not here")
    async with running_sidecar(lambda: refusal, spawning(started), lambda: 0.0) as sidecar:
        assert sidecar is not None
        assert sidecar.state == SidecarRow(reason="not here")
        await anyio.sleep(LONGEST_DELAY * 2)
    assert not started


async def test_where_none_is_wanted_there_is_none() -> None:
    async with running_sidecar(lambda: None, spawning([]), lambda: 0.0) as sidecar:
        assert sidecar is None
