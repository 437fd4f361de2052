"""MCP beside the service's own protocol: another wire, the same servers.

In real time: the SDK is imported in a thread, for which virtual time would not wait.
"""

from pathlib import Path

import pytest
from mcp import Client
from msgspec.structs import replace

from support.clients.mcp import text_of, transport
from support.clients.raw_llxprt import ServiceHost, service_host
from support.clients.wires import MemoryWire
from support.servers.complaining import complaining
from support.servers.script import Script
from support.services.scripted import scripted

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def lines(host: ServiceHost, path: str) -> list[int]:
    return [one["line"] for one in await host.ask("lsp/checkFile", {"filePath": path})]


def complaining_and_hovering(script: Script) -> None:
    complaining(script)
    script.capabilities["hoverProvider"] = True
    script.on("textDocument/hover", lambda params: {"contents": "a word"})


@pytest.mark.proves("SVC-1", "MCP-1")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_beside_it_asks_the_same_servers(tmp_path: Path, mode: str) -> None:
    computer = scripted(tmp_path, complaining_and_hovering)
    computer.write("a.fake", "wrong\n")
    navigation = MemoryWire()
    async with service_host(computer, navigation) as host:
        assert await lines(host, "a.fake") == [1]
        async with Client(transport(navigation.peer), mode=mode) as client:
            hovered = await client.call_tool("lsp_hover", {"filePath": "a.fake", "line": 1, "character": 1})
            assert text_of(hovered) == "a word"
            known = await client.call_tool("lsp_diagnostics", {})
            assert text_of(known).startswith("a.fake:1:")
        assert len(computer.servers) == 1
        assert await lines(host, "a.fake") == [1]
    navigation.close()


@pytest.mark.proves("SVC-1", "CFG-6")
@pytest.mark.parametrize("arguments", [{}, {"filePath": "a.fake"}], ids=["all files", "one file"])
async def test_the_diagnostics_that_a_model_asks_for_are_of_the_configured_severities(
    tmp_path: Path, arguments: dict[str, str]
) -> None:
    computer = scripted(tmp_path, complaining)
    computer.write("a.fake", "odd\nwrong\n")
    navigation = MemoryWire()
    async with service_host(computer, navigation) as host:
        assert await lines(host, "a.fake") == [2]
        async with Client(transport(navigation.peer), mode="legacy") as client:
            shown = text_of(await client.call_tool("lsp_diagnostics", arguments))
    assert "a.fake:2:" in shown
    assert "odd" not in shown
    navigation.close()


@pytest.mark.proves("SVC-1", "MCP-2", "CFG-7")
async def test_mcp_beside_it_lists_nothing_when_navigation_is_off(tmp_path: Path) -> None:
    computer = scripted(tmp_path, complaining)
    computer.system = replace(computer.system, handed_over={"navigationTools": False})
    computer.write("a.fake", "wrong\n")
    navigation = MemoryWire()
    async with service_host(computer, navigation) as host:
        async with Client(transport(navigation.peer), mode="legacy") as client:
            assert (await client.list_tools()).tools == []
        assert await lines(host, "a.fake") == [1]
    navigation.close()


@pytest.mark.proves("SVC-1")
async def test_whatever_happens_on_the_other_wire_the_checks_go_on(tmp_path: Path) -> None:
    class Broken(MemoryWire):
        async def receive(self) -> bytes:
            raise OSError("the descriptor is of no use")

    computer = scripted(tmp_path, complaining)
    computer.write("a.fake", "wrong\n")
    broken = Broken()
    async with service_host(computer, broken) as host:
        assert await lines(host, "a.fake") == [1]
    broken.close()
