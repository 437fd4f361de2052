"""`pilotfish mcp` as a host runs it: a byte proxy, the daemon behind it, real processes all the way."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from support.clients.mcp import text_of
from support.clients.raw_mcp import initialize, request
from support.daemon.homes import DaemonHome, daemon_home
from support.process_tree import alive, ends

pytestmark = pytest.mark.slow

MCP = "from pilotfish.surfaces.mcp.verb import mcp; mcp()"
HOVER = {"filePath": "a.x", "line": 1, "character": 1}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    with daemon_home(tmp_path) as made:
        made.write("a.x", "bad\n")
        # The daemon is up before the first client: the SDK gives a server two seconds to end, not to start.
        made.control(start=True).close()
        yield made


def server(home: DaemonHome, *arguments: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-c", MCP, *arguments], env=home.environment, cwd=home.root
    )


@contextmanager
def started(home: DaemonHome) -> Generator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", MCP],
        cwd=home.root,
        env=home.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def talk(process: "subprocess.Popen[bytes]", message: Any) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@pytest.mark.anyio
@pytest.mark.proves("MCP-1", "POOL-6")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_two_clients_share_what_the_daemon_runs(home: DaemonHome, mode: str) -> None:
    async with (
        Client(server(home, "--structured"), mode=mode) as one,
        Client(server(home, "--tools", "lsp"), mode=mode) as two,
    ):
        assert len((await one.list_tools()).tools) == 19
        assert [tool.name for tool in (await two.list_tools()).tools] == ["lsp"]
        found = await one.call_tool("lsp_hover", HOVER)
        assert found.structured_content["data"] == {"contents": ["a word"]}
        same = await two.call_tool("lsp", {"operation": "hover", **HOVER})
        assert same.structured_content is None
        assert text_of(same) == "a word"
        wrong = await one.call_tool("lsp_diagnostics", {"filePath": "a.x"})
        assert [found["line"] for found in wrong.structured_content["data"]["a.x"]] == [1]
        with home.control() as link:
            assert link.request("about")["servers"] == {"toy": 1}


@pytest.mark.proves("MCP-1", "POOL-5")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_a_client_that_leaves_leaves_the_daemon_and_no_session(home: DaemonHome, how: str) -> None:
    with started(home) as process:
        talk(process, initialize())
        with home.control() as link:
            assert len(link.request("about")["sessions"]) == 1
        if how == "end of input":
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(getattr(signal, how))
        assert ends(process.pid)
        assert process.wait() == (-signal.SIGKILL if how == "SIGKILL" else 0)
    (daemon,) = home.daemons()
    assert alive(daemon)
    with started(home) as another:
        assert talk(another, initialize())["id"] == "init"
        with home.control() as link:
            assert len(link.request("about")["sessions"]) == 1


@pytest.mark.proves("MCP-1", "F65")
def test_a_daemon_that_dies_is_replaced_with_the_next_call(home: DaemonHome) -> None:
    hover = request(1, "tools/call", {"name": "lsp_hover", "arguments": HOVER})
    with started(home) as process:
        talk(process, initialize())
        before = talk(process, hover)["result"]["content"]
        (daemon,) = home.daemons()
        os.kill(daemon, signal.SIGKILL)
        assert ends(daemon)
        assert home.daemons() == []
        assert talk(process, hover | {"id": 2}) == {**talk(process, hover), "id": 2}
        assert before == [{"type": "text", "text": "a word"}]


@pytest.mark.proves("F84", "F75")
def test_a_client_that_says_nonsense_disturbs_no_other(home: DaemonHome) -> None:
    with started(home) as noisy, started(home) as calm:
        talk(noisy, initialize())
        talk(calm, initialize())
        assert noisy.stdin is not None
        noisy.stdin.write(b"\xff\x00{[\n" * 1_000 + b"x" * 5_000_000)
        noisy.stdin.flush()
        called = talk(calm, request(1, "tools/call", {"name": "lsp_hover", "arguments": HOVER}))
        assert called["result"]["content"] == [{"type": "text", "text": "a word"}]
