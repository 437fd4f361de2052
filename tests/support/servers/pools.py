"""A pool on scripted servers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.session import Session
from pilotfish.pool.entry import Recipe
from pilotfish.pool.plan import Key, Limits
from pilotfish.pool.pool import Pool
from pilotfish.protocol.documents import Documents
from support.servers.scripted import Scenario, ScriptedServer, spawning
from support.servers.sessions import FILE, options

KEY = Key("scripted", options().root)


@dataclass
class FakeVitals:
    """Memory and processor time as the test says."""

    memory: dict[int, float] = field(default_factory=dict[int, float])
    cpu: dict[int, float] = field(default_factory=dict[int, float])

    async def memory_mib(self, pid: int) -> float | None:
        return self.memory.get(pid)

    async def cpu_seconds(self, pid: int) -> float | None:
        return self.cpu.get(pid, 0.0)


async def reopen(session: Session, before: Documents | None) -> None:
    """What the service does after a restart, in short."""
    for path in before.paths if before else ():
        session.sync(path, "python", before.text(path).string if before else "")


def recipe(key: Key = KEY, fingerprint: str = "", make: Any = None, **changes: Any) -> Recipe:
    def made() -> SessionOptions:
        return options(server=key.server, root=key.root, **changes)

    return Recipe(key, make or made, reopen, fingerprint)


@asynccontextmanager
async def pool_on(
    *scenarios: Scenario, limits: Limits | None = None, vitals: FakeVitals | None = None
) -> AsyncGenerator[tuple[Pool, list[ScriptedServer]]]:
    servers: list[ScriptedServer] = []
    pool = Pool(spawning(*scenarios, servers=servers), vitals or FakeVitals(), limits=limits, jitter=lambda: 0.0)
    async with pool.running():
        yield pool, servers


async def hover(session: Session) -> bytes:
    session.sync(FILE, "python", "x = 1\n")
    return bytes(await session.request("textDocument/hover", {"textDocument": {"uri": "file:///w/a.py"}}))
