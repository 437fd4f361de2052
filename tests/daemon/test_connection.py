"""One client of the daemon: what it may say and when, and that nothing it does is felt by another."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.daemon import connection as rpc
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from pilotfish.protocol.rpc import ErrorCode
from pilotfish.system import channel
from pilotfish.system.channel import SendQueue
from pilotfish.system.pipes import STALL_SECONDS
from support.daemon.desks import DEFINITION, HOVER, closed, desk_on, eventually
from support.daemon.lines import Refusal
from support.daemon.scenarios import answering, mute

pytestmark = pytest.mark.anyio

NOT_READING = "the client does not read its answers"


async def test_a_session_is_served(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x", "bad\n")
        line = desk.connect()
        welcome = await line.hello(cwd=str(desk.ground.root), host="pi", conversation="7")
        assert welcome["root"] == str(desk.ground.root)
        assert (welcome["protocol"], welcome["build"]) == (PROTOCOL, BUILD)
        feedback = await line.request("touched", {"paths": ["a.x"], "kind": "edit"})
        assert (feedback["state"], "bad word" in feedback["text"]) == ("fresh", True)
        checked = await line.request("check", {"paths": ["a.x"], "texts": {"a.x": "good\n"}})
        assert (checked["meta"]["state"], checked["data"]) == ("fresh", {"a.x": []})
        asked = await line.request("ask", DEFINITION)
        assert [place["path"] for place in asked["data"]] == ["a.x"]
        status = await line.request("status")
        assert [row["serverId"] for row in status["rows"] if row["connectedRoots"]] == ["toy"]
        assert await line.request("end") is True
        assert await line.request("end") is False
        with pytest.raises(Refusal) as refused:
            await line.request("touched", {"paths": ["a.x"], "kind": "edit"})
        assert refused.value.code == "invalid_input"


@pytest.mark.proves("F77", "T24")
async def test_a_session_of_one_root_gets_nothing_of_another(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x", "bad\n")
        other = tmp_path / "other"
        other.mkdir()
        (other / "b.x").write_text("bad\n")
        here, there = await desk.client(), await desk.client(cwd=str(other))
        assert (await here.request("check", {"paths": ["a.x"]}))["ok"]
        for path in (str(desk.ground.root / "a.x"), "../workspace/a.x"):
            answer = await there.request("check", {"paths": [path]})
            assert (answer["ok"], answer["errors"][0]["code"]) == (False, "outside_workspace")
            feedback = await there.request("touched", {"paths": [path], "kind": "write"})
            assert feedback["text"] == ""
        status = await there.request("status")
        assert [row["connectedRoots"] for row in status["rows"] if row["connectedRoots"]] == []


@pytest.mark.parametrize("method", ["touched", "ask", "check", "status", "about", "stop", "logs", "end"])
async def test_the_first_word_is_hello(tmp_path: Path, method: str) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = desk.connect()
        with pytest.raises(Refusal) as refused:
            await line.request(method, {})
        assert refused.value.code == "invalid_input"
        assert not desk.life.ending.is_set()


async def test_a_connection_has_one_session(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = await desk.client()
        with pytest.raises(Refusal):
            await line.hello(cwd=str(tmp_path))
        assert len(desk.sessions.all()) == 1


@pytest.mark.parametrize(
    ("params", "code"),
    [
        pytest.param({"cwd": "relative"}, "invalid_input", id="relative"),
        pytest.param({"cwd": "/nul\0"}, "invalid_input", id="NUL"),
        pytest.param({"cwd": "/nowhere/at/all", "root": "/nowhere/at/all"}, "root_gone", id="gone"),
        pytest.param({"cwd": "/", "host": "x" * 201}, "invalid_input", id="long name"),
        pytest.param({"cwd": 3}, "invalid_input", id="wrong type"),
    ],
)
async def test_an_impossible_session_is_refused(tmp_path: Path, params: dict[str, Any], code: str) -> None:
    async with desk_on(tmp_path, answering) as desk:
        with pytest.raises(Refusal) as refused:
            await desk.connect().hello(**params)
        assert (refused.value.code, refused.value.data["kind"]) == (code, "refused")
        assert desk.sessions.all() == ()


@pytest.mark.proves("F71", "F92", "P32")
async def test_an_older_client_is_told_to_upgrade_and_the_daemon_stays(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        with pytest.raises(Refusal) as refused:
            await desk.connect().request("hello", {"protocol": PROTOCOL - 1, "cwd": "/"})
        assert (refused.value.code, refused.value.data["kind"]) == ("upgrade", "refused")
        assert not desk.life.superseded


@pytest.mark.proves("F71", "F92", "P32")
async def test_a_newer_protocol_is_told_to_come_back_and_the_daemon_goes(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        with pytest.raises(Refusal) as refused:
            await desk.connect().request("hello", {"protocol": PROTOCOL + 1, "build": BUILD + 1, "cwd": "/"})
        assert (refused.value.code, refused.value.data["kind"]) == ("upgrade", "unavailable")
        assert desk.life.ending.is_set()


@pytest.mark.proves("F71", "F92")
async def test_newer_code_waits_for_whoever_is_attached_and_is_served_meanwhile(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x")
        desk.tasks.start_soon(desk.life.run)
        old = await desk.client()
        new = await desk.client(build=BUILD + 1)
        assert (await new.request("check", {"paths": ["a.x"]}))["ok"]
        assert desk.life.superseded
        assert not desk.life.ending.is_set()
        new.hang_up()
        await new.closed.wait()
        assert not desk.life.ending.is_set()
        old.hang_up()
        await desk.life.ending.wait()


async def test_newer_code_of_the_same_protocol_gets_a_daemon_of_its_own_when_nobody_is_attached(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = desk.connect()
        with pytest.raises(Refusal) as refused:
            await line.hello(cwd="/", build=BUILD + 1)
        assert refused.value.code == "upgrade"
        assert desk.life.ending.is_set()


async def test_older_code_of_the_same_protocol_is_served(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        assert await desk.connect().hello(cwd="/", build=BUILD - 1)
        assert not desk.life.superseded


async def test_an_unknown_method_is_said_to_be_unknown(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = await desk.client()
        with pytest.raises(Refusal) as refused:
            await line.request("server/discover")
        assert refused.value.rpc_code == ErrorCode.METHOD_NOT_FOUND


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"operation": "fly"}, id="unknown operation"),
        pytest.param({"operation": "hover"}, id="missing place"),
        pytest.param({"operation": "hover", "filePath": "a.x", "line": "one"}, id="wrong type"),
        pytest.param({}, id="nothing"),
    ],
)
async def test_a_wrong_question_is_answered_with_what_is_wrong(tmp_path: Path, params: dict[str, Any]) -> None:
    async with desk_on(tmp_path, answering) as desk:
        answer = await (await desk.client()).request("ask", params)
        assert (answer["ok"], answer["errors"][0]["code"]) == (False, "invalid_input")


@pytest.mark.parametrize("method", ["touched", "check", "ask"])
async def test_parameters_of_the_wrong_shape_are_refused(tmp_path: Path, method: str) -> None:
    async with desk_on(tmp_path, answering) as desk:
        with pytest.raises(Refusal) as refused:
            await (await desk.client()).request(method, [1])
        assert refused.value.code == "invalid_input"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"Content-Length: 2\r\n\r\n[]", id="batch"),
        pytest.param(b"Content-Length: 1\r\n\r\n{", id="not JSON"),
        pytest.param(b"Content-Length: 4\r\n\r\nnull", id="not a message"),
        pytest.param(b"Content-Length: 99999999999\r\n\r\n", id="too long"),
        pytest.param(b"Content-Length: ten\r\n\r\n", id="no length"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP"),
        pytest.param(b'Content-Length: 36\r\n\r\n{"jsonrpc":"2.0","id":9,"result":0}  ', id="answer to nobody"),
    ],
)
@pytest.mark.proves("F84", "T26")
async def test_what_is_no_message_ends_the_connection_and_no_other(tmp_path: Path, said: bytes) -> None:
    async with desk_on(tmp_path, answering) as desk:
        other, line = await desk.client(), await desk.client()
        line.say(said)
        assert await closed(line) in {"protocol_error", "limit_exceeded"}
        assert await other.request("about")
        assert len(desk.sessions.all()) == 1


@pytest.mark.proves("F73")
async def test_half_a_message_is_waited_for_only_so_long(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        other, line = await desk.client(), await desk.client()
        began = anyio.current_time()
        line.say(b"Content-Length: 100\r\n\r\n{")
        await anyio.sleep(rpc.FRAME_SECONDS / 2)
        line.say(b'"')
        assert await other.request("about")
        assert await closed(line) == "ETIMEDOUT"
        assert anyio.current_time() - began == pytest.approx(rpc.FRAME_SECONDS)
        assert await other.request("about")


@pytest.mark.proves("F73")
async def test_silence_between_messages_is_no_fault(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = await desk.client()
        await anyio.sleep(10 * rpc.FRAME_SECONDS)
        assert await line.request("about")
        await anyio.sleep(10 * rpc.FRAME_SECONDS)
        sent = line.prepared("about")
        line.say(sent.data[:30])
        await anyio.sleep(rpc.FRAME_SECONDS * 0.9)
        line.say(sent.data[30:] + line.prepared("about").data[:30])
        assert await line.answer(sent.id)
        await anyio.sleep(rpc.FRAME_SECONDS * 0.9)
        assert not line.closed.is_set()
        assert await closed(line) == "ETIMEDOUT"


@pytest.mark.proves("F73")
@pytest.mark.parametrize("said", [b"", b"Content-", b"Content-Length: 4\r\n\r\nnu"])
async def test_whoever_does_not_say_hello_is_hung_up_on(tmp_path: Path, said: bytes) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = desk.connect()
        if said:
            line.say(said)
        assert await closed(line) == "ETIMEDOUT"


@pytest.mark.proves("F73")
async def test_words_that_are_refused_do_not_put_off_hello(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = desk.connect()
        began = anyio.current_time()
        while not line.closed.is_set():
            line.ask("about")
            await anyio.sleep(rpc.HELLO_SECONDS * 0.3)
        assert anyio.current_time() - began < rpc.HELLO_SECONDS * 1.5


@pytest.mark.proves("F72")
async def test_a_client_that_is_gone_gives_up_what_it_asked_and_its_server_stays(tmp_path: Path) -> None:
    async with desk_on(tmp_path, mute) as desk:
        desk.ground.write("a.x")
        other, line = await desk.client(), await desk.client()
        await other.request("check", {"paths": ["a.x"]})
        server = desk.ground.server("toy")
        line.ask("ask", DEFINITION)
        asked = await server.until("textDocument/definition")
        line.hang_up()
        await line.closed.wait()
        await eventually(lambda: server.cancelled == [asked.id])
        assert (await other.request("ask", HOVER))["data"]["contents"] == ["a word"]
        assert [len(started) for started in desk.ground.started.values()] == [1]
        assert len(desk.sessions.all()) == 1


@pytest.mark.proves("F72")
async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with desk_on(tmp_path, mute) as desk:
        desk.ground.write("a.x")
        line = await desk.client()
        call = line.ask("ask", DEFINITION)
        await eventually(lambda: bool(desk.ground.started))
        server = desk.ground.server("toy")
        asked = await server.until("textDocument/definition")
        line.cancel(call)
        with pytest.raises(Refusal) as refused:
            await line.answer(call)
        assert refused.value.rpc_code == ErrorCode.REQUEST_CANCELLED
        await eventually(lambda: server.cancelled == [asked.id])
        line.cancel(call)
        assert await line.request("about")


@pytest.mark.proves("F74", "P22")
@pytest.mark.parametrize("late", [True, False], ids=["that reads at last", "that never reads"])
async def test_a_client_that_does_not_read_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    monkeypatch.setattr(SendQueue.__init__, "__defaults__", (10_000, None))
    async with desk_on(tmp_path, answering) as desk:
        other, line = await desk.client(), await desk.client()
        line.taking = False
        for _ in range(100):
            line.ask("about")
        await anyio.sleep(rpc.LAST_WORD_SECONDS / 2)
        assert await other.request("about")
        line.taking = late
        line.took.notify()
        await line.closed.wait()
        assert line.closing == ({"code": "overloaded", "message": NOT_READING} if late else None)
        assert await other.request("about")
        assert desk.sessions.attached == 1


@pytest.mark.proves("F74")
async def test_a_client_that_takes_nothing_is_given_up_after_a_while(tmp_path: Path) -> None:
    async with desk_on(tmp_path, answering) as desk:
        line = await desk.client()
        line.taking = False
        line.ask("about")
        await line.closed.wait()
        assert anyio.current_time() >= STALL_SECONDS


@pytest.mark.proves("F75", "P20")
async def test_a_flood_of_one_client_leaves_the_others_alone_and_none_is_lost(tmp_path: Path) -> None:
    async with desk_on(tmp_path, mute) as desk:
        desk.ground.write("a.x")
        other, flood = await desk.client(), await desk.client()
        await other.request("check", {"paths": ["a.x"]})
        server = desk.ground.server("toy")
        calls = [flood.ask("ask", DEFINITION) for _ in range(channel.MAX_AT_WORK + channel.MAX_WAITING + 3)]
        await server.until("textDocument/definition", channel.MAX_AT_WORK)
        assert (await other.request("ask", HOVER))["ok"]
        for call in calls[-3:]:
            with pytest.raises(Refusal) as refused:
                await flood.answer(call)
            assert (refused.value.code, refused.value.data["kind"]) == ("overloaded", "unavailable")
        for call in reversed(calls[:-3]):
            flood.cancel(call)
        for call in calls[:-3]:
            with pytest.raises(Refusal) as refused:
                await flood.answer(call)
            assert refused.value.rpc_code == ErrorCode.REQUEST_CANCELLED
        asked = [message for message in server.received if message.method == "textDocument/definition"]
        assert len(asked) == channel.MAX_AT_WORK
        assert (await flood.request("ask", HOVER))["ok"]


async def test_waiting_calls_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_WAITING_BYTES", 1000)
    async with desk_on(tmp_path, mute) as desk:
        desk.ground.write("a.x")
        line = await desk.client()
        for _ in range(channel.MAX_AT_WORK):
            line.ask("ask", DEFINITION)
        with pytest.raises(Refusal) as refused:
            await line.request("check", {"paths": ["a.x"], "texts": {"a.x": "x" * 1000}})
        assert refused.value.code == "overloaded"


@pytest.mark.proves("F75", "F90")
async def test_a_fault_of_ours_fails_one_call_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk_on(tmp_path, answering) as desk:
        desk.ground.write("a.x", "bad\n")

        async def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("not for the client")

        line = await desk.client()
        with monkeypatch.context() as patched:
            patched.setattr(desk.ground.service, "check", broken)
            with pytest.raises(Refusal) as refused:
                await line.request("check", {"paths": ["a.x"]})
        assert (refused.value.code, refused.value.data["kind"]) == ("bug", "bug")
        assert "not for the client" not in str(refused.value)
        assert (await line.request("check", {"paths": ["a.x"]}))["ok"]
