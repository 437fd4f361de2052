"""Opening a `Session` on a scripted server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.session import Session, open_session
from pilotfish.model import AbsPath
from pilotfish.system.ports import Launch
from support.servers.scripted import Scenario, ScriptedServer, spawning

ROOT = AbsPath("/w")
FILE = AbsPath("/w/a.py")
URI = "file:///w/a.py"


def options(**changes: Any) -> SessionOptions:
    launch = Launch(argv=("/bin/scripted",), cwd=ROOT, environment={}, name="scripted")
    return replace(SessionOptions("scripted", ROOT, launch), **changes)


@asynccontextmanager
async def session_on(scenario: Scenario, **changes: Any) -> AsyncGenerator[tuple[Session, ScriptedServer]]:
    servers: list[ScriptedServer] = []
    async with open_session(options(**changes), spawning(scenario, servers=servers)) as session:
        yield session, servers[0]
