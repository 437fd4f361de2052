"""MCP over HTTP, with the SDK's own client: of the protocol with sessions, and of the one without."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsResult, Root, ToolListChangedNotification

from support.clients.http import HttpServed, http_served, served_here
from support.clients.mcp import text_of
from support.daemon.homes import DaemonHome
from support.daemon.in_process import alive
from support.daemon.scenarios import answering
from support.servers.real import make_user
from support.servers.script import SILENCE, Script

pytestmark = [pytest.mark.anyio, pytest.mark.proves("MCP-1")]

MODES = ["legacy", "auto"]
PLACE = {"filePath": "good.x", "line": 1, "character": 1}


@asynccontextmanager
async def connected(address: str, headers: dict[str, str], **settings: Any) -> AsyncGenerator[Client]:
    """The SDK's client; it ends its session at the end of the block."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), **settings) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", MODES)
async def test_tools_are_listed_and_called_where_serve_was_started(served: HttpServed, mode: str) -> None:
    async with connected(served.said["address"], served.bearer, mode=mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"lsp_goto_definition", "lsp_find_references", "lsp_hover", "lsp_diagnostics"} <= names
        found = await client.call_tool("lsp_goto_definition", PLACE)
        assert text_of(found).startswith("good.x:1:1")
        wrong = await client.call_tool("lsp_diagnostics", {"filePath": "wrong.x"})
        assert "bad word" in str(wrong.content)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_works_where_its_conversation_does(served: HttpServed, mode: str) -> None:
    inner = served.home.root / f"inner-{mode}"
    inner.mkdir()
    (inner / ".git").mkdir()
    (inner / "only-here.x").write_text("fine\n")
    served.ask("PUT", f"/conversations/{mode}/cwd", {"cwd": str(inner)})
    async with (
        httpx2.AsyncClient(headers=served.bearer, timeout=60, trust_env=False) as http,
        Client(
            streamable_http_client(f"{served.said['address']}/mcp?conversation={mode}", http_client=http), mode=mode
        ) as client,
    ):
        found = await client.call_tool("lsp_goto_definition", {**PLACE, "filePath": "only-here.x"})
        assert text_of(found).startswith("only-here.x:1:1")


@pytest.mark.proves("MCP-2")
async def test_tools_that_were_turned_off_are_not_listed_and_their_return_is_told(tmp_path: Path) -> None:
    changed = anyio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with alive(tmp_path) as daemon, served_here(daemon) as (address, headers):
        (daemon.root / "a.x").write_text("some words\n")
        file = Path(daemon.environment["HOME"]) / ".config" / "pilotfish" / "lsp.json"
        config = json.loads(file.read_text())
        file.write_text(json.dumps({**config, "navigationTools": False}))
        async with connected(address, headers, mode="legacy", message_handler=heard) as client:
            assert (await client.list_tools()).tools == []
            file.write_text(json.dumps(config))
            await client.call_tool("lsp_hover", {"filePath": "a.x", "line": 1, "character": 1})
            await changed.wait()
            assert (await client.list_tools(cache_mode="refresh")).tools


async def test_a_client_works_at_the_roots_that_it_names(served: HttpServed) -> None:
    elsewhere = served.home.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "there.x").write_text("fine\n")

    async def roots(_context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate({"uri": elsewhere.as_uri()})])

    async with connected(served.said["address"], served.bearer, mode="legacy", list_roots_callback=roots) as client:
        found = await client.call_tool("lsp_goto_definition", {**PLACE, "filePath": "there.x"})
        assert text_of(found).startswith("there.x:1:1")


async def test_the_end_of_a_session_ends_its_client_sessions(served: HttpServed) -> None:
    async with connected(served.said["address"], served.bearer, mode="legacy") as client:
        await client.call_tool("lsp_goto_definition", PLACE)
        assert _hosts(served).count("mcp") >= 1
        during = _hosts(served).count("mcp")
    assert _hosts(served).count("mcp") == during - 1


def _hosts(served: HttpServed) -> list[str | None]:
    workspaces = served.ask("GET", "/status").json["workspaces"]
    return [known.get("host") for workspace in workspaces for known in workspace["conversations"]]


@pytest.mark.proves("T17", "T18")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 401, id="no token"),
        pytest.param({"Authorization": "Bearer wrong"}, 401, id="a wrong token"),
        pytest.param({"Origin": "http://evil.com"}, 403, id="another origin"),
        pytest.param({"Host": "evil.com"}, 421, id="another host"),
        pytest.param({"Content-Type": "text/plain"}, 415, id="no JSON"),
    ],
)
async def test_who_may_not_come_in_gets_no_session(served: HttpServed, headers: dict[str, str], status: int) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    token = served.bearer if status != 401 else {}
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **token, **headers}
    answer = served.bare("POST", "/mcp", json.dumps(hello).encode(), sent)
    assert answer.status == status
    assert "mcp-session-id" not in answer.headers


async def test_the_sdk_client_says_what_is_wrong_with_its_token(served: HttpServed) -> None:
    with pytest.raises((MCPError, httpx2.HTTPError, ExceptionGroup)):
        async with connected(served.said["address"], {"Authorization": "Bearer wrong"}, mode="legacy"):
            pass


# --- Cancelling and progress, with a server of this process ---------------------------------------------------------


@pytest.mark.proves("F84", "RPC-3")
@pytest.mark.parametrize("mode", MODES)
async def test_cancelling_a_call_cancels_the_question_at_the_language_server(tmp_path: Path, mode: str) -> None:
    asked = anyio.Event()

    def first_silent(script: Script) -> None:
        answering(script)

        def answer(_params: Any) -> Any:
            if asked.is_set():
                return {"contents": "a word"}
            asked.set()
            return SILENCE

        script.on("textDocument/hover", answer)

    async with alive(tmp_path, first_silent) as daemon, served_here(daemon) as (address, headers):
        (daemon.root / "a.x").write_text("some words\n")
        hover = {"filePath": "a.x", "line": 1, "character": 1}
        async with connected(address, headers, mode=mode) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "lsp_hover", hover)
                await asked.wait()
                tasks.cancel_scope.cancel()
            [server] = daemon.servers
            while not server.cancelled:
                await client.call_tool("lsp_hover", hover)
            questions = [message.id for message in server.received if message.method == "textDocument/hover"]
            assert server.cancelled == questions[:1]


@pytest.mark.parametrize("mode", MODES)
async def test_who_asked_for_progress_hears_it(tmp_path: Path, mode: str) -> None:
    heard = anyio.Event()

    def slow(script: Script) -> None:
        answering(script)
        script.on("textDocument/hover", lambda _params: SILENCE)

    async def told(progress: float, total: float | None, message: str | None) -> None:
        heard.set()

    async with alive(tmp_path, slow) as daemon, served_here(daemon) as (address, headers):
        (daemon.root / "a.x").write_text("some words\n")
        arguments = {"filePath": "a.x", "line": 1, "character": 1}
        async with connected(address, headers, mode=mode) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                await client.call_tool("lsp_hover", arguments, progress_callback=told)

            tasks.start_soon(call)
            await heard.wait()
            tasks.cancel_scope.cancel()


# --- A real server --------------------------------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path: Path) -> Iterator[HttpServed]:
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=True)
    (user.workspace / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    (user.workspace / "main.py").write_text("from greeting import greet\n\ngreet(1)\n")
    home = DaemonHome(user.workspace, dict(user.environment))
    try:
        with http_served(home) as served:
            yield served
    finally:
        home.kill_all()


@pytest.mark.server("basedpyright")
async def test_a_definition_of_a_real_server(real: HttpServed) -> None:
    async with connected(real.said["address"], real.bearer) as client:
        found = await client.call_tool("lsp_goto_definition", {"filePath": "main.py", "line": 3, "character": 1})
        assert text_of(found) == "greeting.py:1:5  def greet(name: str) -> str:"
        errors = await client.call_tool("lsp_diagnostics", {"filePath": "main.py"})
        assert "greet" in str(errors.content) or "int" in str(errors.content)
