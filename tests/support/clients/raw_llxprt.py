"""The host of `pilotfish service`, by hand: frames made and read here, so that both ends cannot be wrong alike."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from pilotfish.model import AbsPath
from pilotfish_llxprt.service import serve_host
from support.clients.frames import Frames, framed
from support.clients.wires import MemoryWire, Peer
from support.services.scripted import Scripted


class ServiceHost:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.notifications: list[Any] = []
        self._frames = Frames()
        self._heard: list[Any] = []
        self._next = 0

    def say(self, message: Any) -> None:
        self.peer.say(framed(message))

    def send(self, method: str, params: Any = None) -> int:
        """Make a request; returns its id."""
        self._next += 1
        given = {} if params is None else {"params": params}
        self.say({"jsonrpc": "2.0", "id": self._next, "method": method, **given})
        return self._next

    async def hear(self) -> Any:
        """The next message of whatever kind. Not bounded here: virtual time flies while a thread works."""
        while not self._heard:
            data = await self.peer.hear()
            assert data, "the service has hung up"
            self._heard += self._frames.feed(data)
        return self._heard.pop(0)

    async def answer(self, identifier: int) -> Any:
        """The answer to a request; notifications on the way are kept."""
        while True:
            message = await self.hear()
            if message.get("id") == identifier:
                return message
            assert "id" not in message, f"an answer to {message['id']} when {identifier} was waited for"
            self.notifications.append(message)

    async def ask(self, method: str, params: Any = None) -> Any:
        return (await self.answer(self.send(method, params)))["result"]


@asynccontextmanager
async def service_host(computer: Scripted, navigation: MemoryWire | None = None) -> AsyncGenerator[ServiceHost]:
    """A host whose service runs in this loop and is ready; the service must end when the host does."""
    wire, ended = MemoryWire(), anyio.Event()

    async def serve() -> None:
        await serve_host(AbsPath(str(computer.root)), computer.system, wire, navigation)
        ended.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            host = ServiceHost(wire.peer)
            assert await host.hear() == {"jsonrpc": "2.0", "method": "lsp/ready"}
            yield host
            wire.peer.hang_up()
            await ended.wait()
    finally:
        wire.close()
