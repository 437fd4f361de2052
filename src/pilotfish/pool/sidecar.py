"""A program that runs beside a server and ends with it, for example a generator of files that the server reads.

What it writes reaches the server by the watcher, like every change on disk. When it fails it is started again, later
each time, and the server goes on without it; `state` says why.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from msgspec.structs import replace

from pilotfish.api.status import SidecarRow
from pilotfish.errors import Failure
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Launch, Process, Spawner
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
JITTER = 0.2
"""Back-off: 1 s × 2ⁿ up to 60 s, ±20 %. No request waits for it, so it may be tried sooner than a server."""

STEADY_SECONDS = 60.0
"""One that ran for this long was healthy: however it ended, the back-off starts again."""

TERMINATE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL: time to finish the file that it is writing."""

SidecarRequest = Callable[[], Launch | Failure | None]
"""What is to run: a launch, the reason why it may not or cannot run, or nothing."""


@asynccontextmanager
async def running_sidecar(
    wanted: SidecarRequest, spawn: Spawner, jitter: Callable[[], float]
) -> AsyncGenerator["Sidecar | None"]:
    """Run it for as long as the block lasts; at its end nothing of it is left."""
    launch = wanted()
    why = launch.message if isinstance(launch, Failure) else None
    async with owned_tasks() as tasks:
        sidecar = None if launch is None else Sidecar(spawn, jitter, SidecarRow(reason=why))
        if sidecar is not None and isinstance(launch, Launch):
            tasks.start_soon(sidecar.keep_running, launch)
        try:
            yield sidecar
        finally:
            tasks.cancel_scope.cancel()


class Sidecar:
    def __init__(self, spawn: Spawner, jitter: Callable[[], float], state: SidecarRow) -> None:
        self._spawn = spawn
        self._jitter = jitter
        self._state = state
        self._process: Process | None = None

    @property
    def state(self) -> SidecarRow:
        process = self._process
        return self._state if process is None else replace(self._state, stderr=process.stderr_tail())

    async def keep_running(self, launch: Launch) -> None:
        failures = 0
        while True:
            started = current_time()
            why = await self._run_once(launch)
            now = current_time()
            failures = 1 if now - started >= STEADY_SECONDS else failures + 1
            delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (failures - 1)) * (1 + JITTER * self._jitter())
            self._state = replace(self._state, pid=None, reason=why)
            logger.warning("ended sidecar=%s why=%s again_in=%.0f", launch.name, why, delay)
            await anyio.sleep(delay)  # noqa: TID251 -- the back-off

    async def _run_once(self, launch: Launch) -> str:
        """From start to end; returns why it ended."""
        try:
            async with self._spawn(launch) as process:
                self._state = SidecarRow(process.pid, self._state.starts + 1)
                self._process = process
                try:
                    while await process.receive():
                        # Its output is dropped, but it must be able to write it.
                        pass
                    status = await process.wait()
                    killed = f"was killed by signal {status.signal}"
                    return f"it exited with code {status.code}" if status.signal is None else f"it {killed}"
                finally:
                    with anyio.move_on_after(TERMINATE_SECONDS, shield=True):
                        await process.terminate()
                        await process.wait()
                    self._state = replace(self._state, stderr=process.stderr_tail())
                    self._process = None
        except Failure as failure:
            self._state = replace(self._state, starts=self._state.starts + 1, stderr=failure.scene.stderr)
            return failure.message
