"""The daemon's side of a trace: bounded, without secrets, and over with its client."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.client.connection import Direction, Tap
from pilotfish.daemon.tracing import MAX_READ, MAX_WAITING, TraceLines
from pilotfish.model import AbsPath
from support.daemon.homes import DaemonHome
from support.services.several import MUTE, WallClock, service_on

pytestmark = pytest.mark.anyio


async def lines_in(tmp_path: Path, *messages: bytes, bodies: bool = False) -> list[dict[str, Any]]:
    """What a client is told of messages that all came before it read one."""
    async with service_on(tmp_path, {"toy": MUTE}) as ground:
        lines = TraceLines(ground.service.workspaces.of(ground.client), WallClock(), bodies=bodies)
        for message in messages:
            lines.take(AbsPath(str(ground.root)), Direction.TO_SERVER, message)
        lines.take(AbsPath("/elsewhere"), Direction.TO_SERVER, b"{}")
        return [json.loads(await lines.next()) for _ in range(min(len(messages), MAX_WAITING))]


async def test_a_line_names_the_message_and_not_its_content(tmp_path: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"textDocument/hover","params":{"text":"private"}}'
    (line,) = await lines_in(tmp_path, body)
    assert (line["method"], line["id"], line["bytes"], line["direction"]) == ("textDocument/hover", 7, len(body), "→")
    assert "private" not in json.dumps(line)


async def test_a_body_has_no_secrets(tmp_path: Path) -> None:
    (line,) = await lines_in(tmp_path, b'{"method":"x","params":{"apiKey":"hush","plain":"seen"}}', bodies=True)
    assert ("hush" in line["body"], "seen" in line["body"]) == (False, True)


@pytest.mark.parametrize(
    ("body", "mark"),
    [
        pytest.param(b"no json", "unreadable", id="no JSON"),
        pytest.param(b"[" * 5000, "unreadable", id="deep"),
        pytest.param(b" " * (MAX_READ + 1), "large", id="large"),
    ],
)
async def test_what_cannot_be_read_is_told_without_reading(tmp_path: Path, body: bytes, mark: str) -> None:
    (line,) = await lines_in(tmp_path, body, bodies=True)
    assert line[mark] is True


async def test_what_the_client_does_not_read_in_time_is_dropped_and_counted(tmp_path: Path) -> None:
    lines = await lines_in(tmp_path, *([b"{}"] * (MAX_WAITING + 5)))
    assert lines[0]["lost"] == 5
    assert not any("lost" in line for line in lines[1:])


def test_a_tap_is_closed_when_its_listener_has_gone() -> None:
    heard: list[bytes] = []

    def listen(_root: AbsPath, _direction: Direction, body: bytes) -> None:
        heard.append(body)

    tap = Tap()
    with tap.listening(listen):
        tap.record(AbsPath("/w"), Direction.FROM_SERVER, b"{}")
        assert tap.listeners
    assert (tap.listeners, heard) == ([], [b"{}"])


async def test_a_trace_ends_with_its_client(home: DaemonHome) -> None:
    def trace() -> bytes:
        with home.link() as link:
            connection = link.upgraded("trace", {"server": "toy"})
        try:
            home.write("a.x", "bad\n")
            with home.link() as other:
                other.request("touched", {"paths": ["a.x"], "kind": "edit"})
            return connection.recv(100)
        finally:
            connection.close()

    said = await anyio.to_thread.run_sync(trace)
    assert said.startswith(b'{"at": ')
    with home.control() as control:
        # The session of the trace has ended with its connection, and only with that.
        while control.request("about")["sessions"]:
            await anyio.lowlevel.checkpoint()
