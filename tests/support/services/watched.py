"""The service with a watcher: real files, servers by script, and what these were told of changes on disk."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from pilotfish.api.answers import Answer, State
from pilotfish.api.status import ServerRow
from pilotfish.client.session import Session
from pilotfish.config.places import user_places
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.ports import OpenWatcher, Spawner, WatchHealth
from support.servers.importer import WATCHED_FILES
from support.servers.pools import FakeVitals
from support.servers.script import Message
from support.servers.scripted import Scenario, ScriptedServer, spawning
from support.watching.watched import BOUND_SECONDS

MAIN = "main.fake"
SERVER = "importer"
KINDS = {1: "created", 2: "changed", 3: "deleted"}


def serving(*extensions: str, **more: Any) -> dict[str, Any]:
    """What the user's file says about a server for files of these extensions."""
    return {"command": [sys.executable], "extensions": [*extensions], **more}


@dataclass
class WatchedService:
    """A service with one client, and a workspace whose main file imports things."""

    service: Service
    root: Path
    client: ClientSession
    servers: Sequence[ScriptedServer]

    @property
    def server(self) -> ScriptedServer:
        return self.servers[-1]

    @property
    def session(self) -> Session:
        (entry,) = self.service.pool.entries().values()
        assert entry.session is not None
        return entry.session

    def write(self, name: str, text: str = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def check(self, name: str = MAIN) -> Answer[Any]:
        return await self.service.check(self.client, [name])

    async def errors(self, name: str = MAIN) -> list[str]:
        """What the servers say about a file now."""
        answer = await self.check(name)
        assert answer.meta.state is State.FRESH, answer
        assert answer.data is not None
        return [diagnostic.message for diagnostic in answer.data[name]]

    def told(self, server: ScriptedServer | None = None) -> list[list[str]]:
        """Every notification of changes that a server got, as `created a`, `changed b`."""
        return [self._changes(one) for one in (server or self.server).received if one.method == WATCHED_FILES]

    def _changes(self, message: Message) -> list[str]:
        return [
            f"{KINDS[change['type']]} {os.path.relpath(str(path_of(change['uri'])), self.root)}"
            for change in message.params["changes"]
        ]

    def count(self, method: str) -> int:
        """How often the last server was sent a method."""
        return sum(one.method == method for one in self.server.received)

    @property
    def health(self) -> WatchHealth | None:
        return self.service.disk_changes.health(AbsPath(str(self.root)))

    def row(self, server: str = SERVER) -> ServerRow:
        """What status says of a server."""
        (found,) = [row for row in self.service.status(self.client).rows if row.server_id == server]
        return found

    async def watches(self) -> None:
        """Wait until everything is watched that the servers have registered, and they have been told of the past."""
        entries = self.service.pool.entries().values()
        sessions = [entry.session for entry in entries if entry.session is not None]
        with anyio.fail_after(BOUND_SECONDS):
            while not all(session.capabilities.watchers() for session in sessions):
                await anyio.lowlevel.checkpoint()
            while not (self.health and self.health.watched):
                await self.caught_up()
        await self.caught_up()

    async def caught_up(self) -> None:
        """Let the servers hear of everything that has changed by now."""
        await self.service.disk_changes.catch_up(lambda root: True)
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def watched_service(
    folder: Path,
    *scenarios: Scenario,
    watch: OpenWatcher | None,
    servers: dict[str, Any] | None = None,
    spawn: Spawner | None = None,
    trusted: bool = True,
    programs: Path | None = None,
) -> AsyncGenerator[WatchedService]:
    """`servers` is what the user's file says of them; by default one, for `.fake` files. `spawn` starts real ones.

    Programs are looked for in the folder `programs` first.
    """
    real = Path(os.path.realpath(folder))
    root = real / "workspace"
    root.mkdir()
    path = os.environ["PATH"] if programs is None else f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(real / "home"), "PILOTFISH_HOME": str(real / "state"), "PATH": path}
    places = user_places(environment)
    config: dict[str, Any] = {"lsp": servers or {SERVER: serving(".fake")}}
    if trusted:
        config["security"] = {"trustedProjectRoots": [str(root)]}
    Path(places.global_file).parent.mkdir(parents=True)
    Path(places.global_file).write_text(json.dumps(config))
    started: list[ScriptedServer] = []
    spawner = spawn or spawning(*scenarios, servers=started)
    system = System(spawner, DiskFiles(), WallClock(), FakeVitals(), places, environment, watch=watch)
    client = ClientSession("test", AbsPath(str(root)), AbsPath(str(root)))
    async with Service(system).running() as service:
        yield WatchedService(service, root, client, started)
