"""Servers start before a client has said anything, and none that a question would not start."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import Client

from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.mcp import connection
from support.clients.mcp import transport
from support.clients.wires import MemoryWire, Peer
from support.servers.complaining import silent
from support.services.scripted import SERVER, ScriptedService, scripted_service

pytestmark = pytest.mark.anyio

NAMED = {"command": ["/bin/true"], "extensions": [".x"]}
PYTHON = {"lsp": {SERVER: {"command": [sys.executable], "extensions": [".py"]}}}
"""A language that counts as code: of others, nobody's first question is expected."""


@asynccontextmanager
async def python_service(folder: Path, **config: Any) -> AsyncGenerator[ScriptedService]:
    async with scripted_service(folder, silent, config={**PYTHON, **config}) as scripted:
        scripted.write("a.py", "some words\n")
        yield scripted


@asynccontextmanager
async def served(scripted: ScriptedService) -> AsyncGenerator[Peer]:
    """The client's end of a connection, as the daemon serves it."""
    wire = MemoryWire()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.serve, wire, scripted.service, scripted.session)
            yield wire.peer
            wire.peer.hang_up()
    finally:
        wire.close()


@pytest.mark.proves("MCP-1")
async def test_servers_start_before_the_client_has_said_anything(tmp_path: Path) -> None:
    async with python_service(tmp_path) as scripted, served(scripted):
        with anyio.fail_after(30):
            while not scripted.servers:
                await anyio.lowlevel.checkpoint()
        await scripted.servers[0].until("initialized")


@pytest.mark.proves("MCP-1", "TRUST-6")
@pytest.mark.parametrize("trusted", [True, False])
async def test_what_a_project_names_itself_starts_where_it_is_trusted(tmp_path: Path, trusted: bool) -> None:
    security = {} if not trusted else {"trustedProjectRoots": [str(tmp_path.resolve() / "workspace")]}
    async with scripted_service(tmp_path, silent, config={"security": security}) as scripted:
        (scripted.root / ".pilotfish").mkdir()
        scripted.write(".pilotfish/lsp.json", json.dumps({"lsp": {"own": NAMED}}))
        scripted.write("a.x", "some words\n")
        await scripted.service.start_servers(scripted.session())
        assert len(scripted.servers) == trusted


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("off", ["lsp", "navigationTools", "startAhead"])
async def test_no_server_starts_where_no_tool_is_offered_or_none_is_wanted(tmp_path: Path, off: str) -> None:
    async with python_service(tmp_path, **{off: False}) as scripted:
        await scripted.service.start_servers(scripted.session())
        if off != "navigationTools":
            await scripted.service.warm_up(scripted.session())
        assert scripted.servers == []


@pytest.mark.proves("MCP-1")
async def test_a_client_is_served_whatever_fails_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(_client: ClientSession) -> None:
        raise RuntimeError("no server today")

    async with python_service(tmp_path) as scripted:
        monkeypatch.setattr(scripted.service, "start_servers", failing)
        async with served(scripted) as peer, Client(transport(peer)) as client:
            assert (await client.list_tools()).tools
