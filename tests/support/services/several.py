"""The service on scripted servers: a workspace and a home in a temporary folder, and programs that are only scenarios.

Servers come from the user's file, so resolving and locating them is real; only what is started is not.
"""

import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotfish.api.answers import Answer, Diagnostic, Feedback
from pilotfish.api.questions import Touch
from pilotfish.config.places import user_places
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Limits
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.files import DiskFiles
from pilotfish.system.ports import Clock, Launch, Memory, OpenWatcher, Process, Spawner
from support.servers.pools import FakeVitals
from support.servers.script import SILENCE, Script
from support.servers.scripted import Scenario, ScriptedProcess, ScriptedServer
from support.services.checks import full, server_with
from support.values.settings import listing_every_error

PROGRAM = "/bin/true"
"""Something that is there: what it would do does not matter."""

Config = dict[str, Any]


def custom(extension: str = ".x", **entry: Any) -> Config:
    """A server that no catalogue knows."""
    return {"command": [PROGRAM], "extensions": [extension], **entry}


@dataclass
class WallClock:
    """A clock on the wall that stands at a time well after every file's."""

    now: float = 4e9

    def wall(self) -> float:
        return self.now


@dataclass
class Ground:
    """A service at work, its workspace, and what it has started."""

    service: Service
    root: Path
    client: ClientSession
    launches: list[Launch] = field(default_factory=list[Launch])
    started: dict[str, list[ScriptedServer]] = field(default_factory=dict[str, list[ScriptedServer]])

    def write(self, name: str, text: str | bytes = "x\n") -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def server(self, server: str, number: int = -1) -> ScriptedServer:
        return self.started[server][number]

    def sent(self, server: str, method: str) -> list[Any]:
        """The parameters of every message of a method that the last process of a server got."""
        return [message.params for message in self.server(server).received if message.method == method]

    async def touched(self, *names: str, kind: Any = "edit", **more: Any) -> Feedback:
        return await self.service.touched(Touch(names, kind, **more), self.client)

    async def check(self, *names: str, **more: Any) -> Answer[Mapping[str, tuple[Diagnostic, ...]]]:
        return await self.service.check(self.client, names, **more)


@asynccontextmanager
async def service_on(
    folder: Path,
    scenarios: Mapping[str, Scenario | Sequence[Scenario]],
    config: Config | None = None,
    limits: Limits | None = None,
    watch: OpenWatcher | None = None,
    clock: Clock | None = None,
    memory: Memory | None = None,
) -> AsyncGenerator[Ground]:
    """Scenarios by server id, one for each start, the last for every further one. Without `config` each is `custom`.

    `clock`: the real one where it matters that files are written after a server has started.
    """
    real = Path(os.path.realpath(folder))
    root, home = real / "workspace", real / "home"
    root.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PILOTFISH_HOME": str(real / "state"), "PATH": str(real / "bin")}
    places = user_places(environment)
    user_file = Path(places.global_file)
    user_file.parent.mkdir(parents=True, exist_ok=True)
    settings = {"lsp": {server: custom() for server in scenarios}} if config is None else config
    user_file.write_text(json.dumps(listing_every_error(settings)))
    launches: list[Launch] = []
    started: dict[str, list[ScriptedServer]] = {}
    spawn = _spawner(scenarios, launches, started)
    system = System(
        spawn, DiskFiles(), clock or WallClock(), FakeVitals(), places, environment, watch=watch, memory=memory
    )
    service = Service(system, limits)
    client = ClientSession("test", AbsPath(str(root)), AbsPath(str(root)))
    ground = Ground(service, root, client, launches, started)
    async with service.running():
        yield ground


def _spawner(
    scenarios: Mapping[str, Scenario | Sequence[Scenario]],
    launches: list[Launch],
    started: dict[str, list[ScriptedServer]],
) -> Spawner:
    @asynccontextmanager
    async def spawn(launch: Launch) -> AsyncGenerator[Process]:
        launches.append(launch)
        known = scenarios[launch.name]
        choices = [known] if callable(known) else list(known)
        mine = started.setdefault(launch.name, [])
        server = ScriptedServer()
        choices[min(len(mine), len(choices) - 1)](server)
        mine.append(server)
        try:
            yield ScriptedProcess(server)
        finally:
            server.leave(-9)
            server.release()
        assert not server.unexpected, f"nobody expected {server.unexpected}"

    return spawn


def answering(*found: str) -> Scenario:
    """A server that is asked for its diagnostics and answers at once."""
    return told_by(lambda text: found)


def told_by(judge: Callable[[str], Any]) -> Scenario:
    """A server whose diagnostics follow from the text that it has."""

    def scenario(script: Script) -> None:
        server_with(diagnosticProvider={})(script)
        texts: dict[str, str] = {}

        def take(params: Any) -> None:
            changes = params.get("contentChanges")
            texts[params["textDocument"]["uri"]] = (changes[-1] if changes else params["textDocument"])["text"]

        script.on("textDocument/didOpen", take)
        script.on("textDocument/didChange", take)
        script.on("textDocument/diagnostic", lambda params: full(*judge(texts[params["textDocument"]["uri"]])))

    return scenario


BY_LINE = told_by(lambda text: [line for line in text.splitlines() if line.startswith("bad")])
"""An error for each bad line."""

MUTE = server_with()
"""A server that takes texts and says nothing at all."""


def dying(script: Script) -> None:
    assert isinstance(script, ScriptedServer)
    script.stderr = ("cannot find module",)
    script.on("initialize", lambda params: script.leave(1) or SILENCE)


def hanging(script: Script) -> None:
    script.on("initialize", lambda params: SILENCE)
    script.ignore("initialized")
