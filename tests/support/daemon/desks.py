"""The daemon's connections on a scripted service, in one process and virtual time."""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from pilotfish.daemon.connection import ClientConnection
from pilotfish.daemon.lifetime import Lifetime
from pilotfish.daemon.methods import SocketMethods
from pilotfish.ipc.client_sessions import ClientSessions, Upgrades
from pilotfish.ipc.messages import About
from support.daemon.lines import MemoryLine
from support.servers.scripted import Scenario
from support.services.several import Ground, service_on

HOVER = {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1}
DEFINITION = {"operation": "goToDefinition", "filePath": "a.x", "line": 1, "character": 1}


@dataclass
class Pids:
    """Processes that end when the test says so."""

    ended: dict[int, anyio.Event] = field(default_factory=dict[int, anyio.Event])
    watched: list[int] = field(default_factory=list[int])

    async def gone(self, pid: int) -> None:
        if pid not in self.ended:
            raise ProcessLookupError(pid)
        self.watched.append(pid)
        try:
            await self.ended[pid].wait()
        finally:
            self.watched.remove(pid)


@dataclass
class Desk:
    """Everything that connections share; `connect` opens one."""

    ground: Ground
    sessions: ClientSessions
    life: Lifetime
    methods: SocketMethods
    pids: Pids
    tasks: TaskGroup
    upgrades: Upgrades

    def connect(self) -> MemoryLine:
        line = MemoryLine()
        self.tasks.start_soon(ClientConnection(line, self.methods, self.upgrades).run)
        return line

    async def client(self, **said: Any) -> MemoryLine:
        """A connection that has said hello for the workspace."""
        line = self.connect()
        await line.hello(**{"cwd": str(self.ground.root), **said})
        return line


@asynccontextmanager
async def desk_on(
    folder: Path,
    scenario: Scenario,
    *,
    upgrades: Upgrades | None = None,
    idle_seconds: float = math.inf,
    config: dict[str, Any] | None = None,
) -> AsyncGenerator[Desk]:
    """A service whose server `toy`, for `.x` files, plays the scenario."""
    pids = Pids()
    async with service_on(folder, {"toy": scenario}, config) as ground:
        sessions = ClientSessions(ground.service.end, pids.gone)
        life = Lifetime(sessions, idle_seconds)
        async with sessions.running(), anyio.create_task_group() as tasks:

            def about() -> About:
                return About(1, 1, 1, 0.0, "socket", "log", life.superseded, (), {})

            methods = SocketMethods(ground.service, sessions, life, about, tasks)
            yield Desk(ground, sessions, life, methods, pids, tasks, upgrades or {})
            tasks.cancel_scope.cancel()


async def closed(line: MemoryLine) -> str:
    """Wait until the daemon has hung up; the code that it gave."""
    await line.closed.wait()
    assert line.closing is not None
    return line.closing["code"]


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait, in virtual time, for something that nobody announces."""
    with anyio.fail_after(5):
        while not condition():
            await anyio.sleep(0.001)
