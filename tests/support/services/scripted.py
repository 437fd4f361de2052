"""The service on scripted servers: real files in a temporary folder, no process, so time may be virtual."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotfish.config.places import user_places
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import uri_of
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from support.servers.complaining import silent
from support.servers.pools import FakeVitals
from support.servers.scripted import Scenario, ScriptedServer, spawning

SERVER = "scripted"


@dataclass
class Scripted:
    """A computer whose only language server is a scripted one, for files named `*.fake`."""

    system: System
    root: Path
    servers: list[ScriptedServer]

    def write(self, name: str, text: str) -> str:
        (self.root / name).write_text(text)
        return name

    def uri(self, name: str) -> str:
        return uri_of(AbsPath(str(self.root / name)))

    def configure(self, config: dict[str, Any]) -> None:
        """Write the user's file anew: it names the scripted server and trusts the workspace, whatever else it says."""
        server = {SERVER: {"command": [sys.executable], "extensions": [".fake"]}}
        own = {"lsp": server, "security": {"trustedProjectRoots": [str(self.root)]}, **config}
        file = Path(self.system.places.global_file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(own))


@dataclass
class ScriptedService(Scripted):
    service: Service
    sessions: list[ClientSession] = field(default_factory=list[ClientSession])
    """Every client session that was made, in order."""

    def session(self, root: AbsPath | None = None) -> ClientSession:
        """A client session of a root; of None, that of the workspace."""
        folder = root or AbsPath(str(self.root))
        made = ClientSession(f"test {len(self.sessions)}", folder, folder)
        self.sessions.append(made)
        return made


def scripted(folder: Path, *scenarios: Scenario, config: dict[str, Any] | None = None) -> Scripted:
    """A workspace, a user with this configuration, and a shell that plays the scenarios."""
    real = Path(os.path.realpath(folder))
    root = real / "workspace"
    root.mkdir()
    environment = {"HOME": str(real / "home"), "PILOTFISH_HOME": str(real / "state"), "PATH": os.environ["PATH"]}
    servers: list[ScriptedServer] = []
    spawn = spawning(*(scenarios or (silent,)), servers=servers)
    system = System(spawn, DiskFiles(), WallClock(), FakeVitals(), user_places(environment), environment)
    made = Scripted(system, root, servers)
    made.configure(config or {})
    return made


@asynccontextmanager
async def scripted_service(
    folder: Path, *scenarios: Scenario, config: dict[str, Any] | None = None
) -> AsyncGenerator[ScriptedService]:
    made = scripted(folder, *scenarios, config=config)
    async with Service(made.system).running() as service:
        yield ScriptedService(made.system, made.root, made.servers, service)
