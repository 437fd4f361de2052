"""Carrying bytes between a host and whoever serves it, and what the daemon calls for that."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Never

import anyio
import pytest

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.operations.tools import McpOptions, ToolSet
from pilotfish.servers.install import extra_command
from pilotfish.surfaces.daemon_stream import relay
from pilotfish.surfaces.mcp import connection as mcp_connection
from pilotfish.surfaces.mcp import proxy as mcp_proxy
from support.clients.wires import MemoryWire


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
    "module",
    [
        "pilotfish.surfaces.mcp.proxy",
        "pilotfish.surfaces.mcp.connection",
        "pilotfish.daemon.main",
        "pilotfish.surfaces.mcp.tools",
        "pilotfish.surfaces.mcp.verb",
        "pilotfish_llxprt.service",
        "pilotfish.library.workspace",
    ],
)
def test_nothing_but_the_server_itself_imports_the_sdk(module: str) -> None:
    code = f"import sys, {module}; sys.exit(any(name.split('.')[0] in ('mcp', 'mcp_types') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.proves("MCP-1")
def test_the_proxy_imports_no_service_either() -> None:
    heavy = ("mcp", "pydantic", "pilotfish.service", "pilotfish.config", "pilotfish.client")
    code = f"import sys, pilotfish.surfaces.mcp.proxy; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "'pilotfish[mcp]'"),
        ({"url": "file:///w/pilotfish.whl", "archive_info": {}}, "'/w/pilotfish.whl[mcp]'"),
        ({"url": "https://example.org/p.whl", "archive_info": {}}, "'pilotfish[mcp]'"),
        ({"url": "file:///my%20clone", "dir_info": {}}, "'/my clone[mcp]'"),
        ({"url": "file:///clone", "dir_info": {"editable": True}}, "-e '/clone[mcp]'"),
    ],
    ids=["an index", "a file", "another machine", "a folder", "a clone that is worked on"],
)
def test_an_extra_comes_from_where_pilotfish_came_from(
    origin: Mapping[str, Any] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/me/.venv")
    about = tmp_path / "pilotfish-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: pilotfish\n")
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert extra_command("mcp") == f"/home/me/.venv/bin/pip install {command}"


def test_an_extra_is_installed_by_what_installed_pilotfish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / "bundle").write_text("of pilotfish.pyz, which has no pip")
    by_uv = "uv tool install --reinstall 'pilotfish[all,ray]'"
    ways = {
        "/me/uv/tools/p": by_uv,
        str(tmp_path): by_uv,
        "/me/pipx/venvs/p": "pipx install --force 'pilotfish[all,ray]'",
    }
    for prefix, command in ways.items():
        monkeypatch.setattr(sys, "prefix", prefix)
        assert extra_command("ray") == command


def test_without_the_sdk_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        return None

    monkeypatch.setattr(mcp_connection, "find_spec", nowhere)
    with pytest.raises(Unavailable) as told:
        mcp_connection.require_sdk()
    assert told.value.hint == extra_command("mcp")


@pytest.mark.anyio
@pytest.mark.proves("MCP-1", "F65")
@pytest.mark.parametrize(
    ("failure", "serves"),
    [
        pytest.param(Unavailable(Code.SERVER_START_FAILED, "the daemon did not start"), True, id="no daemon"),
        pytest.param(Refused(Code.UNTRUSTED, "the daemon's folder is not safe"), False, id="a place that is not safe"),
    ],
)
async def test_where_no_daemon_can_be_had_it_serves_itself(
    monkeypatch: pytest.MonkeyPatch, failure: Failure, serves: bool
) -> None:
    served: list[object] = []

    def refuse(*_: object) -> Never:
        raise failure

    async def record(options: McpOptions, wire: object) -> None:
        served.append(options)

    monkeypatch.setattr(mcp_proxy, "open_upgraded", refuse)
    monkeypatch.setattr(mcp_proxy, "in_process", record)
    wire, options = MemoryWire(), McpOptions(ToolSet.ONE, structured=True)
    with nullcontext() if serves else pytest.raises(Refused):
        await mcp_proxy.by_daemon(options, wire)
    assert served == ([options] if serves else [])
    wire.close()
