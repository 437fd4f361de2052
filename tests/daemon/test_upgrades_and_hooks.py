"""Connections that become something else, and what the daemon does for hooks."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.daemon import connection as rpc
from pilotfish.ipc import client_sessions as sessions
from pilotfish.ipc.client_sessions import Upgraded
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from pilotfish.model import AbsPath
from support.daemon.desks import DEFINITION, HOVER, Desk, desk_on, eventually
from support.daemon.lines import MemoryLine, Refusal
from support.daemon.scenarios import PLACE, answering, mute
from support.servers.script import SILENCE, Script
from support.services.several import custom

pytestmark = pytest.mark.anyio


async def echo(upgraded: Upgraded) -> None:
    while data := await upgraded.stream.receive():
        await upgraded.stream.send(data.upper())


@pytest.mark.proves("MCP-1")
async def test_an_upgraded_connection_carries_bytes_and_its_sessions_end_with_it(tmp_path: Path) -> None:
    seen: list[Upgraded] = []

    async def surface(upgraded: Upgraded) -> None:
        seen.append(upgraded)
        await echo(upgraded)

    async with desk_on(tmp_path, answering, upgrades={"mcp": surface}) as desk:
        line = await desk.client(host="pi")
        assert await line.request("mcp", {"tools": "lsp"}) is True
        line.upgraded = True
        line.say(b"Content-Length: oops")
        assert await line.until_raw(20) == b"CONTENT-LENGTH: OOPS"
        (upgraded,) = seen
        assert bytes(upgraded.params) == b'{"tools":"lsp"}'
        assert upgraded.service is desk.ground.service
        own = upgraded.session(None)
        assert own.root == str(desk.ground.root)
        assert upgraded.session(own.root) == own
        elsewhere = upgraded.session(AbsPath(str(tmp_path)))
        assert (elsewhere.root, elsewhere.cwd, elsewhere.host) == (str(tmp_path), str(tmp_path), "pi")
        assert desk.sessions.attached == 2
        line.hang_up()
        await line.closed.wait()
        assert desk.sessions.all() == ()


async def test_an_upgraded_connection_that_is_used_does_not_grow_old(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering, upgrades={"mcp": echo}) as desk:
        line = await desk.client()
        await line.request("mcp")
        line.upgraded = True
        for _ in range(3):
            await anyio.sleep(sessions.ATTACHED_SECONDS * 0.9)
            line.say(b"x")
        await anyio.sleep(1)
        assert desk.sessions.attached == 1
        await anyio.sleep(sessions.ATTACHED_SECONDS)
        assert line.closed.is_set()


@pytest.mark.parametrize("ready", [True, False], ids=["calls under way", "no session"])
async def test_an_upgrade_needs_a_session_that_is_at_rest(tmp_path: Path, ready: bool) -> None:
    async with desk_on(tmp_path, mute, upgrades={"mcp": echo}) as desk:
        desk.ground.write("a.x")
        line = await desk.client() if ready else desk.connect()
        if ready:
            line.ask("ask", DEFINITION)
        with pytest.raises(Refusal) as refused:
            await line.request("mcp")
        assert refused.value.code == "invalid_input"


async def test_a_surface_that_fails_ends_its_connection_only(tmp_path: Path) -> None:
    async def broken(upgraded: Upgraded) -> None:
        await upgraded.stream.receive()
        raise ZeroDivisionError

    async with desk_on(tmp_path, answering, upgrades={"mcp": broken}) as desk:
        other = await desk.client()
        line = MemoryLine()

        async def serve() -> None:
            with pytest.raises(ExceptionGroup):
                await rpc.ClientConnection(line, desk.methods, desk.upgrades).run()

        desk.tasks.start_soon(serve)
        await line.hello(cwd=str(desk.ground.root))
        await line.request("mcp")
        line.say(b"x")
        await line.closed.wait()
        assert await other.request("about")
        assert desk.sessions.attached == 1


# --- Hooks ----------------------------------------------------------------------------------------------------------


def hook(desk: Desk, event: bytes, host: str = "plain", **more: Any) -> dict[str, Any]:
    cwd = str(desk.ground.root).encode().hex()
    return {"protocol": PROTOCOL, "build": BUILD, "host": host, "cwd": cwd, "event": event.hex(), **more}


async def hooked(desk: Desk, event: bytes) -> bytes:
    """What a hook program would print."""
    line = desk.connect()
    printed = await line.request("hook", hook(desk, event))
    line.hang_up()
    await line.closed.wait()
    return bytes.fromhex(printed)


@pytest.mark.proves("HOOK-2")
async def test_a_hook_gets_the_words_to_print_and_its_conversation_is_kept(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x", "bad\n")
        printed = await hooked(desk, b'{"files":["a.x"],"session":"7"}')
        assert b"bad word" in printed
        (kept,) = desk.sessions.all()
        assert (kept.hang_up, kept.client.conversation, kept.client.host) == (None, "7", "plain")
        desk.ground.write("a.x", "good\n")
        assert await hooked(desk, b'{"files":["a.x"],"session":"7"}') == b""
        assert desk.sessions.all() == (kept,)
        assert await hooked(desk, b'{"files":["a.x"],"session":"8"}') == b""
        assert len(desk.sessions.all()) == 2
        for _ in range(2):
            assert await hooked(desk, b'{"event":"ended","session":"7"}') == b""
        assert [session.client.conversation for session in desk.sessions.all()] == ["8"]
        assert await hooked(desk, b'{"event":"began","session":"9"}') == b""
        assert await hooked(desk, b"{}") == b""
        assert [session.client.conversation for session in desk.sessions.all()] == ["8", "9"]


@pytest.mark.proves("HOOK-2")
async def test_a_first_event_may_take_longer_than_hello_may(tmp_path: Path) -> None:
    """A hook is its own greeting: that it is still being answered is no reason to hang up."""

    def late(script: Script) -> None:
        answering(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE)

    config = {"lsp": {"toy": custom()}, "timing": {"firstTouchTimeoutMs": 30_000}}
    async with desk_on(tmp_path, late, config=config) as desk:
        desk.ground.write("a.x", "bad\n")

        async def answer_late() -> None:
            await eventually(lambda: bool(desk.ground.started))
            server = desk.ground.server("toy")
            asked = await server.until("textDocument/diagnostic")
            assert asked.id is not None
            for _ in range(int(rpc.HELLO_SECONDS)):
                await anyio.sleep(1.5)
                server.notify("window/logMessage", {"type": 4, "message": "still at it"})
            server.reply(asked.id, {"kind": "full", "items": [{"range": PLACE, "severity": 1, "message": "bad word"}]})

        desk.tasks.start_soon(answer_late)
        assert b"bad word" in await hooked(desk, b'{"files":["a.x"]}')


@pytest.mark.parametrize(
    ("event", "more"),
    [
        pytest.param(b"not JSON", {}, id="event"),
        pytest.param(b'{"files":"a.x"}', {}, id="shape"),
        pytest.param(b"{}", {"host": "nobody"}, id="host"),
        pytest.param(b"{}", {"event": "xyz"}, id="digits"),
        pytest.param(b"{}", {"environment": "xyz"}, id="digits of the environment"),
        pytest.param(b'{"files":["a.x"],"cwd":"relative"}', {}, id="folder"),
    ],
)
async def test_a_hook_that_cannot_be_understood_is_refused(tmp_path: Path, event: bytes, more: dict[str, Any]) -> None:
    async with desk_on(tmp_path, answering) as desk:
        with pytest.raises(Refusal) as refused:
            await desk.connect().request("hook", {**hook(desk, event), **more})
        assert refused.value.code == "invalid_input"


async def test_files_that_were_read_are_made_ready_and_not_waited_for(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x", "bad\n")
        began = anyio.current_time()
        assert await hooked(desk, b'{"files":["a.x"],"kind":"read"}') == b""
        assert anyio.current_time() == began
        await eventually(lambda: bool(desk.ground.started))
        await desk.ground.server("toy").until("textDocument/didOpen")


@pytest.mark.proves("CFG-3")
async def test_nothing_is_said_or_started_when_everything_is_turned_off(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering, config={"lsp": False}) as desk:
        desk.ground.write("a.x", "bad\n")
        line = await desk.client()
        feedback = await line.request("touched", {"paths": ["a.x"], "kind": "write"})
        assert (feedback["text"], feedback["reason"]) == ("", "LSP disabled by configuration")
        assert await hooked(desk, b'{"files":["a.x"]}') == b""
        assert not (await line.request("ask", HOVER))["ok"]
        assert all(row["disabled"] for row in (await line.request("status"))["rows"])
        assert desk.ground.started == {}


@pytest.mark.proves("CFG-10", "F80")
async def test_a_changed_entry_restarts_its_server_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x", "bad\n")
        line = await desk.client()
        assert (await line.request("check", {"paths": ["a.x"]}))["ok"]
        file = tmp_path / "home" / ".config" / "pilotfish" / "lsp.json"
        entry = {"lsp": {"toy": custom(initialization={"new": True})}}
        file.write_text(json.dumps(entry))
        assert (await line.request("check", {"paths": ["a.x"]}))["ok"]
        started = [server.received[0].params.get("initializationOptions") for server in desk.ground.started["toy"]]
        assert started == [None, {"new": True}]
        file.write_text("{ broken")
        assert (await line.request("check", {"paths": ["a.x"]}))["ok"]
        assert len(desk.ground.started["toy"]) == 2
        file.write_text(json.dumps({**entry, "feedback": {"maxPerFile": 3}}))
        assert (await line.request("check", {"paths": ["a.x"]}))["ok"]
        assert len(desk.ground.started["toy"]) == 2
