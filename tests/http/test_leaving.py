"""Clients that leave while they are being answered, and readers that stop reading."""

import json
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest

from pilotfish_http import routes as http_events
from pilotfish_http.guard import AsgiMessage
from pilotfish_http.overview import Observatory, Watch
from pilotfish_http.routes import Events
from pilotfish_http.shapes import Everything
from support.clients.http import served_here
from support.daemon.in_process import alive
from support.daemon.scenarios import answering
from support.servers.script import SILENCE, Script

pytestmark = [pytest.mark.anyio, pytest.mark.proves("F72", "F85")]


async def test_a_client_that_hangs_up_takes_its_question_with_it(tmp_path: Path) -> None:
    asked = anyio.Event()

    def silent(script: Script) -> None:
        answering(script)

        def answer(_params: Any) -> Any:
            if asked.is_set():
                return {"contents": "a word"}
            asked.set()
            return SILENCE

        script.on("textDocument/hover", answer)

    async with alive(tmp_path, silent) as daemon, served_here(daemon) as (address, headers):
        (daemon.root / "a.x").write_text("some words\n")
        question = {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1, "cwd": str(daemon.root)}
        body = json.dumps(question)
        lines = [
            "POST /conversations/a/lsp HTTP/1.1",
            f"Host: {address.removeprefix('http://')}",
            f"Authorization: {headers['Authorization']}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "",
            body,
        ]
        async with await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2])) as stream:
            await stream.send("\r\n".join(lines).encode())
            await asked.wait()
        [server] = daemon.servers
        async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as client:
            while not server.cancelled:
                await client.post(f"{address}/conversations/a/lsp", json=question)
        questions = [message.id for message in server.received if message.method == "textDocument/hover"]
        assert server.cancelled == questions[:1]
        assert not server.gone


class _Still:
    """An observatory from which nothing is ever seen to change."""

    async def look(self) -> Everything:
        return Everything(generated_at=0, pid=1, uptime_ms=0, workspaces=())

    def watching(self) -> "_Still":
        return self

    async def __aenter__(self) -> Watch:
        return Watch()

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_a_reader_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_events, "STALL_SECONDS", 0.05)
    sent: list[AsgiMessage] = []

    async def receive() -> AsgiMessage:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: AsgiMessage) -> None:
        if message.get("more_body"):
            await anyio.sleep_forever()
        sent.append(message)

    await Events(cast("Observatory", _Still()))({"method": "GET"}, receive, send)
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
