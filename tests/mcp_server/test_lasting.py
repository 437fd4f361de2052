"""A connection of a host that outlives the daemon: the next one is introduced, and all that was owed is answered."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from pilotfish.surfaces.daemon_stream import DaemonStream
from pilotfish.surfaces.mcp import proxy
from pilotfish.surfaces.mcp.proxy import LOST, LastingConnection
from support.clients.raw_mcp import initialize, request
from support.clients.wires import MemoryWire

pytestmark = [pytest.mark.anyio, pytest.mark.proves("MCP-1", "F65")]

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class FakeDaemon(MemoryWire):
    async def end_sending(self) -> None:
        self.peer.hang_up()


class Daemons:
    """A daemon for each connection."""

    def __init__(self) -> None:
        self.started: list[FakeDaemon] = []
        self._new = anyio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[DaemonStream]:
        daemon = FakeDaemon()
        self.started.append(daemon)
        self._new.set()
        self._new = anyio.Event()
        try:
            yield cast("DaemonStream", daemon)
        finally:
            daemon.close()

    async def number(self, index: int) -> FakeDaemon:
        while len(self.started) <= index:
            await self._new.wait()
        return self.started[index]


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def test_a_second_daemon_is_introduced_as_the_first_was() -> None:
    host, daemons = MemoryWire(), Daemons()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(LastingConnection(host, daemons.connect).serve)
            first = (await daemons.number(0)).peer
            host.peer.say(line(initialize()))
            assert await first.hear() == line(initialize())
            first.say(b'{"jsonrpc":"2.0","id":"init",')
            first.say(b'"result":{}}\n')
            assert json.loads(await host.peer.hear())["result"] == {}
            host.peer.say(line(INITIALIZED) + line(request(1, "tools/list")))
            await first.hear()
            first.say(b'{"half of an answer')
            first.hang_up()
            second = (await daemons.number(1)).peer
            assert await second.hear() == line(initialize())
            second.say(line({"jsonrpc": "2.0", "id": "init", "result": {}}))
            assert await second.hear() == line(INITIALIZED)
            assert await second.hear() == line(request(1, "tools/list"))
            second.say(line({"jsonrpc": "2.0", "id": 1, "result": {}}))
            assert await heard_id(host) == 1
            host.peer.hang_up()
    host.close()


async def heard_id(host: MemoryWire) -> int:
    """Of the next message that the host hears."""
    while not (said := await host.peer.hear()):
        pass
    return int(json.loads(said)["id"])


async def test_what_may_write_and_what_lost_two_daemons_is_not_asked_again() -> None:
    host, daemons = MemoryWire(), Daemons()
    change = request(1, "tools/call", {"name": "lsp_rename", "arguments": {"apply": True}})
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(LastingConnection(host, daemons.connect).serve)
            first = (await daemons.number(0)).peer
            host.peer.say(line(change))
            await first.hear()
            first.hang_up()
            lost = json.loads(await host.peer.hear())
            assert (lost["id"], lost["error"]["message"]) == (1, LOST)
            assert len(daemons.started) == 1, "one that was stopped on purpose stays stopped"
            host.peer.say(line(request(2, "ping")))
            for number in (1, 2):
                (await daemons.number(number)).peer.hang_up()
            assert await heard_id(host) == 2
            host.peer.hang_up()
    host.close()


async def test_an_answer_that_is_too_long_is_an_error_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MAX_HEARD", 100)
    host, daemons = MemoryWire(), Daemons()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(LastingConnection(host, daemons.connect).serve)
            host.peer.say(line(request(1, "tools/list")))
            for number in (0, 1):
                daemon = (await daemons.number(number)).peer
                assert await daemon.hear() == line(request(1, "tools/list"))
                daemon.say(line({"jsonrpc": "2.0", "id": 1, "result": "x" * 100}))
            while not (said := await host.peer.hear()):
                pass
            assert json.loads(said)["error"]["message"] == LOST
            host.peer.hang_up()
    host.close()


async def test_half_a_message_is_said_to_the_second_daemon_whole() -> None:
    host, daemons = MemoryWire(), Daemons()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(LastingConnection(host, daemons.connect).serve)
            first = (await daemons.number(0)).peer
            host.peer.say(b'{"jsonrpc":"2.0",')
            await first.hear()
            first.hang_up()
            await host.peer.hear()
            host.peer.say(b'"id":1,"method":"ping"}\n')
            second = (await daemons.number(1)).peer
            assert await second.hear() + await second.hear() == b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
            host.peer.hang_up()
    host.close()
