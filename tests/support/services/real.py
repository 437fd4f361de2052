"""The service on real servers: a workspace in a temporary folder, a home of its own, programs of this clone on PATH."""

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pilotfish.config.places import user_places
from pilotfish.model import AbsPath
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Limits
from pilotfish.servers.catalogue import load
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.process import spawn
from pilotfish.system.vitals import SystemVitals
from pilotfish.system.watching.watcher import open_watcher

CLONE = Path(__file__).resolve().parents[3]
PROGRAMS = (CLONE / ".venv" / "bin", CLONE / ".tools" / "npm" / "node_modules" / ".bin")


@dataclass(frozen=True)
class RealService:
    service: Service
    root: Path
    client: ClientSession

    def write(self, name: str, text: str) -> str:
        (self.root / name).write_text(text)
        return name

    def entry(self, server: str) -> Entry:
        (found,) = [entry for key, entry in self.service.pool.entries().items() if key.server == server]
        return found

    def another_client(self) -> ClientSession:
        return ClientSession("another", self.client.root, self.client.cwd)


@asynccontextmanager
async def real_service(
    folder: Path,
    config: dict[str, Any] | None = None,
    limits: Limits | None = None,
    watch: OpenWatcher | None = open_watcher,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> AsyncGenerator[RealService]:
    """`config` is the user's own file: it may name commands, and trusts the workspace."""
    root, home = folder / "workspace", folder / "home"
    root.mkdir(exist_ok=True)
    (home / ".config" / "pilotfish").mkdir(parents=True, exist_ok=True)
    trusting = {"security": {"trustedProjectRoots": [str(root)]}, **(config or {})}
    (home / ".config" / "pilotfish" / "lsp.json").write_text(json.dumps(trusting))
    environment = {
        "HOME": str(home),
        "PILOTFISH_HOME": str(folder / "state"),
        "PATH": os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]]),
        "LANG": "C.UTF-8",
        **variables,
    }
    system = System(spawn, DiskFiles(), WallClock(), SystemVitals(), user_places(environment), environment, watch=watch)
    client = ClientSession("test", AbsPath(str(root)), AbsPath(str(root)))
    async with Service(system, limits).running() as service:
        yield RealService(service, root, client)


def only(server: str) -> dict[str, Any]:
    """A configuration in which no other server of the catalogue runs."""
    return {"lsp": {other: {"disabled": True} for other in load() if other != server}}
