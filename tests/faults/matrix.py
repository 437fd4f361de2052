"""One user with a server for each fault, told apart by the endings of files; asked by the library or the daemon."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread
import msgspec

import pilotfish
from pilotfish.api.questions import Operation
from pilotfish.library.workspace import Workspace, computer
from support.daemon.homes import FAKELS, TESTS, WAIT_SECONDS, DaemonHome, daemon_home

SHORT_MS = 1500
"""The limit of servers that are meant to run into it."""


@dataclass(frozen=True)
class Fault:
    """What a server does, and what its user is told. Without a code the answer is right all the same."""

    scenario: str
    code: str | None = None
    timeouts: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self.scenario.replace("_", "-")

    @property
    def ending(self) -> str:
        return f".{self.server}"

    @property
    def file(self) -> str:
        return f"a{self.ending}"

    def entry(self) -> dict[str, Any]:
        command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), f"support.servers.faults:{self.scenario}"]
        limits = dict.fromkeys(self.timeouts, SHORT_MS)
        return {"command": command, "extensions": [self.ending], **({"timeouts": limits} if limits else {})}


class Surface(Protocol):
    """A way to ask; answers are plain JSON values."""

    async def touched(self, path: str) -> dict[str, Any]: ...

    async def hover(self, path: str) -> dict[str, Any]: ...


class ByLibrary:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def touched(self, path: str) -> dict[str, Any]:
        return msgspec.to_builtins(await self._workspace.after_edit(path))

    async def hover(self, path: str) -> dict[str, Any]:
        answer = await self._workspace.ask(Operation.HOVER, {"filePath": path, "line": 1, "character": 1})
        return msgspec.to_builtins(answer)


class ByDaemon:
    """Each question on a connection of its own, as many agents ask."""

    def __init__(self, home: DaemonHome) -> None:
        self._home = home

    async def touched(self, path: str) -> dict[str, Any]:
        return await self._request("touched", {"paths": [path], "kind": "edit"})

    async def hover(self, path: str) -> dict[str, Any]:
        return await self._request("ask", {"operation": "hover", "filePath": path, "line": 1, "character": 1})

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        def ask() -> Any:
            with self._home.link() as link:
                return link.request(method, params, WAIT_SECONDS)

        return await anyio.to_thread.run_sync(ask)


def configure(home: DaemonHome, faults: tuple[Fault, ...]) -> None:
    file = Path(home.environment["HOME"]) / ".config" / "pilotfish" / "lsp.json"
    servers = {fault.server: fault.entry() for fault in faults}
    toy = json.loads(file.read_text())["lsp"]["toy"]
    file.write_text(json.dumps({"lsp": {**servers, "toy": toy}}))
    home.write("good.x", "bad\n")
    for fault in faults:
        home.write(fault.file, "bad\n")


@asynccontextmanager
async def by_library(folder: Path, faults: tuple[Fault, ...]) -> AsyncGenerator[Surface]:
    with daemon_home(folder) as home:
        configure(home, faults)
        async with pilotfish.open(home.root, shell=computer(home.environment)) as workspace:
            yield ByLibrary(workspace)


@asynccontextmanager
async def by_daemon(folder: Path, faults: tuple[Fault, ...]) -> AsyncGenerator[Surface]:
    with daemon_home(folder) as home:
        configure(home, faults)
        yield ByDaemon(home)


SURFACES = {"library": by_library, "daemon": by_daemon}
