"""The whole daemon in this process, on a scripted server: real sockets, and clients in threads."""

import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from pilotfish.config.places import user_places
from pilotfish.daemon.claim import claim_daemon
from pilotfish.daemon.main import Daemon, Settings
from pilotfish.ipc.client import Introduction, Link, Terms, open_link
from pilotfish.ipc.client_sessions import Upgraded
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.pool.plan import Limits
from pilotfish.service.service import System
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from support.daemon.scenarios import answering
from support.servers.pools import FakeVitals
from support.servers.scripted import Scenario, ScriptedServer, spawning
from support.services.several import custom
from support.values.settings import listing_every_error

T = TypeVar("T")


@dataclass
class Alive:
    """A daemon at work in this event loop. Clients block, so they are called in threads."""

    root: Path
    environment: dict[str, str]
    servers: list[ScriptedServer]
    stop: Callable[[], None]

    @property
    def terms(self) -> Terms:
        return Terms(self.environment, start=False)

    def link(self, host: str | None = None) -> Link:
        return open_link(Introduction(cwd=str(self.root), host=host), self.terms)

    async def in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await anyio.to_thread.run_sync(partial(work, *arguments), limiter=anyio.CapacityLimiter(1))


async def echo(upgraded: Upgraded) -> None:
    while data := await upgraded.stream.receive():
        await upgraded.stream.send(data.upper())


@asynccontextmanager
async def alive(folder: Path, scenario: Scenario = answering) -> AsyncGenerator[Alive]:
    real = Path(os.path.realpath(folder))
    root = real / "workspace"
    root.mkdir()
    environment = {"HOME": str(real / "home"), "PILOTFISH_HOME": str(real / "state"), "PATH": ""}
    places = user_places(environment)
    file = Path(places.global_file)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(listing_every_error({"lsp": {"toy": custom()}})))
    servers: list[ScriptedServer] = []
    spawn = spawning(scenario, servers=servers)
    system = System(spawn, DiskFiles(), WallClock(), FakeVitals(), places, environment)
    claim = claim_daemon(DaemonPlace(environment))
    assert claim is not None
    daemon = Daemon(claim, system, Settings(Limits(), 600.0), {"echo": echo})
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(daemon.live, lambda: None)
            yield Alive(root, environment, servers, lambda: daemon.life.stop("the test says so"))
            daemon.life.stop("the test is over")
    finally:
        os.close(claim.lock)
