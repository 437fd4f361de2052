"""An MCP client that says whatever bytes a test wants, and reads what comes back without any library."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pilotfish.operations.tools import McpOptions
from support.clients.mcp import peer_on
from support.clients.wires import Peer
from support.services.scripted import ScriptedService

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Those that begin with a handshake."""


def request(identifier: int | str, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, **({} if params is None else {"params": params})}


def initialize(version: str = VERSIONS[-1]) -> dict[str, Any]:
    info = {"name": "raw", "version": "0"}
    return request("init", "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info})


class RawClient:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._rest = b""
        self._heard: list[Any] = []

    def say(self, *messages: Any) -> None:
        for message in messages:
            self.peer.say((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")

    async def hear(self) -> Any:
        """The next message."""
        while not self._heard:
            data = await self.peer.hear()
            assert data, "the server has hung up"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._heard += map(json.loads, lines)
        return self._heard.pop(0)

    async def ask(self, *messages: Any) -> Any:
        """Say something and return the next message."""
        self.say(*messages)
        return await self.hear()

    async def shake_hands(self, version: str = VERSIONS[-1]) -> dict[str, Any]:
        answer = await self.ask(initialize(version))
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    async def is_well(self) -> bool:
        """Whether the server answers, and says nothing that nobody asked for."""
        return await self.ask(request("well?", "ping")) == {"jsonrpc": "2.0", "id": "well?", "result": {}}


@asynccontextmanager
async def raw_client(scripted: ScriptedService, options: McpOptions | None = None) -> AsyncGenerator[RawClient]:
    async with peer_on(scripted, options) as peer:
        yield RawClient(peer)
