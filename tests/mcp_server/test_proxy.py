"""Carrying bytes between a host and whoever serves it, and what the daemon calls for that."""

import subprocess
import sys

import anyio
import pytest
from msgspec import Raw

from pilotfish.errors import Refused
from pilotfish.operations.schemas import ToolSet
from pilotfish.surfaces.mcp_connection import Options
from pilotfish.surfaces.mcp_proxy import relay
from pilotfish.surfaces.mcp_upgrade import options_of
from support.wires import MemoryWire


@pytest.mark.anyio
@pytest.mark.proves("MCP-1")
async def test_bytes_go_both_ways_as_they_are_until_the_host_ends() -> None:
    host, daemon = MemoryWire(), MemoryWire()
    ended = anyio.Event()

    async def end_there() -> None:
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay, host, daemon, end_there)
        host.peer.say(b"\x00half a mess")
        assert await daemon.peer.hear() == b"\x00half a mess"
        daemon.peer.say(b"an answer\n")
        assert await host.peer.hear() == b"an answer\n"
        host.peer.hang_up()
        await ended.wait()
        daemon.peer.say(b"a last word\n")
        assert await host.peer.hear() == b"a last word\n"
        daemon.peer.hang_up()
    host.close()
    daemon.close()


@pytest.mark.anyio
@pytest.mark.proves("MCP-1", "F65")
@pytest.mark.parametrize("gone", ["the daemon", "the host", "a daemon that does not hang up"])
async def test_it_ends_when_either_side_does(gone: str) -> None:
    host, daemon = MemoryWire(), MemoryWire()

    async def end_there() -> None:
        await anyio.lowlevel.checkpoint()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(relay, host, daemon, end_there)
            await anyio.wait_all_tasks_blocked()
            match gone:
                case "the daemon":
                    daemon.peer.hang_up()
                case "the host":
                    daemon.peer.say(b"for nobody")
                    host.peer.stop_listening()
                case _:
                    host.peer.hang_up()
    host.close()
    daemon.close()


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize(
    ("params", "options"),
    [
        pytest.param(b"null", Options(), id="nothing"),
        pytest.param(b"{}", Options(), id="no choice"),
        pytest.param(b'{"tools": null}', Options(), id="null"),
        pytest.param(b'{"tools": "lsp"}', Options(ToolSet.ONE), id="the one tool"),
        pytest.param(b'{"tools": "named"}', Options(ToolSet.NAMED), id="named tools"),
    ],
)
def test_a_client_of_the_daemon_says_which_tools_it_wants(params: bytes, options: Options) -> None:
    assert options_of(Raw(params)) == options


@pytest.mark.parametrize("params", [b'{"tools": "all"}', b'{"tools": 5}', b"[]", b"nonsense"])
def test_tools_that_are_none_are_refused(params: bytes) -> None:
    with pytest.raises(Refused):
        options_of(Raw(params))


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize(
    "module",
    [
        "pilotfish.surfaces.mcp_proxy",
        "pilotfish.surfaces.mcp_connection",
        "pilotfish.surfaces.mcp_upgrade",
        "pilotfish.surfaces.mcp_tools",
        "pilotfish.surfaces.host_verbs",
        "pilotfish.stdio_service",
        "pilotfish.library.workspace",
    ],
)
def test_nothing_but_the_server_itself_imports_the_sdk(module: str) -> None:
    code = f"import sys, {module}; sys.exit(any(name.split('.')[0] in ('mcp', 'mcp_types') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
