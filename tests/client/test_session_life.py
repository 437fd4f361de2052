"""From spawn to exit: the handshake, the stop ladder, and every way it can fail."""

import os
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pilotfish.client.connection import STOP_SECONDS
from pilotfish.client.handshake import client_capabilities
from pilotfish.client.session import open_session
from pilotfish.errors import Code, Failure, ServerFailed, Unavailable
from pilotfish.model import Encoding
from pilotfish.servers.spec import Freshness
from support.servers.script import SILENCE, Fail, Script
from support.servers.scripted import ScriptedServer, spawning
from support.servers.sessions import FILE, options, session_on

pytestmark = pytest.mark.anyio


def methods(server: ScriptedServer) -> list[str]:
    return [message.method for message in server.received]


DEAD = {"type": 1, "message": "[client] worker exited. Signal: SIGKILL"}


def plain(script: Script) -> None:
    """A server that does nothing special."""


def synchronising(script: Script) -> None:
    script.capabilities = {"textDocumentSync": 2}
    script.ignore("textDocument/didOpen")


# --- Handshake ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C26", "C32", "C47", "RPC-2")
async def test_initialize_comes_first_then_initialized_once_then_the_settings() -> None:
    async with session_on(plain, settings={"python": {"a": 1}}) as (session, server):
        await server.until("workspace/didChangeConfiguration")
        assert methods(server) == ["initialize", "initialized", "workspace/didChangeConfiguration"]
        assert server.received[2].params == {"settings": {"python": {"a": 1}}}
        assert session.info.name == "scripted"


@pytest.mark.proves("DIAG-2")
@pytest.mark.parametrize("asks", [True, False], ids=["asks", "never asks"])
async def test_a_server_that_needs_its_settings_first_is_given_no_document_before(*, asks: bool) -> None:
    """Of two scripts that were opened at once, bash-language-server 5.8 checked the last one, and never the other."""

    told: list[list[Any]] = []

    def asking(script: Script) -> None:
        script.capabilities = {"textDocumentSync": 1}
        script.on("textDocument/didOpen", lambda _: told.append([*script.answers.values()]))
        if asks:
            script.on(
                "initialized", lambda _: script.ask("workspace/configuration", {"items": [{"section": "a"}]}) and None
            )

    async with session_on(asking, freshness=Freshness(settings_first=True), settings={"a": {"b": 1}}) as (
        session,
        server,
    ):
        session.sync(FILE, "x", "text")
        await server.until("textDocument/didOpen")
        assert told == [[[{"b": 1}]] if asks else []]


@pytest.mark.proves("C29", "C30", "C31")
async def test_the_initialize_request_names_us_and_one_root_in_three_agreeing_ways() -> None:
    async with session_on(plain, initialization={"x": [1]}) as (_, server):
        params = server.received[0].params
        assert params["processId"] == os.getpid()
        assert params["clientInfo"]["name"] == "pilotfish"
        assert params["rootPath"] == "/w"
        assert params["rootUri"] == "file:///w"
        assert params["workspaceFolders"] == [{"uri": "file:///w", "name": "w"}]
        assert params["initializationOptions"] == {"x": [1]}
        assert params["capabilities"] == client_capabilities()


async def test_without_initialization_options_the_field_is_absent() -> None:
    async with session_on(plain) as (_, server):
        assert "initializationOptions" not in server.received[0].params


@pytest.mark.proves("C27", "C28")
async def test_the_server_is_served_before_it_answers_initialize() -> None:
    asked: dict[str, Any] = {}

    def impatient(script: Script) -> None:
        def initialize(params: object) -> object:
            script.notify("window/logMessage", {"type": 3, "message": "starting"})
            script.notify("window/showMessage", {"type": 3, "message": "hello"})
            script.notify("telemetry/event", {"any": 1})
            script.notify("$/progress", {"token": 1, "value": {"kind": "begin", "title": "loading"}})
            asked["create"] = script.ask("window/workDoneProgress/create", {"token": 1})
            asked["register"] = script.ask(
                "client/registerCapability", {"registrations": [{"id": "1", "method": "textDocument/hover"}]}
            )
            asked["message"] = script.ask("window/showMessageRequest", {"type": 3, "message": "ok?", "actions": []})
            asked["configuration"] = script.ask("workspace/configuration", {"items": [{"section": "a"}]})
            return SILENCE

        script.on("initialize", initialize)

    servers: list[ScriptedServer] = []
    async with anyio.create_task_group() as tasks:

        async def answer_when_served() -> None:
            while not servers:
                await anyio.lowlevel.checkpoint()
            server = servers[0]
            answers = {name: await server.answered(identifier) for name, identifier in asked.items()} if asked else {}
            while len(answers) < 4:
                await server.until("initialize")
                answers = {name: await server.answered(identifier) for name, identifier in asked.items()}
            assert answers == {"create": None, "register": None, "message": None, "configuration": [{}]}
            first = server.received[0]
            assert first.id is not None
            server.reply(first.id, {"capabilities": {}})

        tasks.start_soon(answer_when_served)
        async with open_session(options(), spawning(impatient, servers=servers)) as session:
            assert session.supports("textDocument/hover")
            assert session.messages() == ("starting", "hello", "asked: ok? []")
            assert session.readiness.busy


@pytest.mark.proves("C34", "F4")
async def test_a_server_that_never_answers_initialize_is_killed_at_the_deadline() -> None:
    servers: list[ScriptedServer] = []

    def mute(script: Script) -> None:
        script.on("initialize", lambda params: SILENCE)

    started = anyio.current_time()
    with pytest.raises(ServerFailed) as caught:
        async with open_session(options(initialize_seconds=7), spawning(mute, servers=servers)):
            pytest.fail("it never initialized")
    assert caught.value.code is Code.INIT_TIMEOUT
    assert caught.value.scene.phase == "initializing"
    assert caught.value.scene.server == "scripted"
    assert 7 <= anyio.current_time() - started <= 7 + STOP_SECONDS
    assert servers[0].gone
    assert "shutdown" not in methods(servers[0])


@pytest.mark.proves("F2", "F3")
@pytest.mark.parametrize("code", [0, 1, -11])
async def test_a_server_that_ends_before_it_answers_initialize_says_why(code: int) -> None:
    def dying(script: Script) -> None:
        assert isinstance(script, ScriptedServer)
        script.stderr = ("cannot find module",)
        script.on("initialize", lambda params: script.leave(code) or SILENCE)

    with pytest.raises(ServerFailed) as caught:
        async with open_session(options(), spawning(dying)):
            pytest.fail("it never initialized")
    assert caught.value.code is Code.SERVER_START_FAILED
    assert caught.value.scene.stderr == ("cannot find module",)
    assert ("signal 11" if code < 0 else f"code {code}") in caught.value.message


@pytest.mark.proves("C33")
async def test_an_initialize_error_fails_the_start_once_even_if_it_asks_for_a_retry() -> None:
    servers: list[ScriptedServer] = []

    def refuse(params: object) -> object:
        raise Fail(-32002, "no tsdk", {"retry": True})

    with pytest.raises(ServerFailed, match="no tsdk") as caught:
        async with open_session(options(), spawning(lambda script: script.on("initialize", refuse), servers=servers)):
            pytest.fail("it never initialized")
    assert (caught.value.code, caught.value.rpc_code) == (Code.SERVER_START_FAILED, -32002)
    assert methods(servers[0]).count("initialize") == 1


@pytest.mark.parametrize("result", [None, 3, {"capabilities": 7}])
async def test_a_malformed_answer_to_initialize_fails_the_start(result: object) -> None:
    with pytest.raises(ServerFailed) as caught:
        async with open_session(options(), spawning(lambda script: script.on("initialize", lambda params: result))):
            pytest.fail("it never initialized")
    assert caught.value.code is Code.SERVER_START_FAILED


@pytest.mark.proves("C75", "C76")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32", None])
async def test_the_encoding_is_what_the_server_picked(encoding: str | None) -> None:
    def picky(script: Script) -> None:
        script.capabilities = {} if encoding is None else {"positionEncoding": encoding}

    async with session_on(picky) as (session, _):
        assert session.encoding is Encoding(encoding or "utf-16")


@pytest.mark.proves("C75")
async def test_a_server_with_an_encoding_that_nobody_offered_is_refused() -> None:
    def odd(script: Script) -> None:
        script.capabilities = {"positionEncoding": "utf-7"}

    with pytest.raises(ServerFailed, match="utf-7") as caught:
        async with open_session(options(), spawning(odd)):
            pytest.fail("it must not be used")
    assert caught.value.code is Code.SERVER_START_FAILED


@pytest.mark.proves("C36")
async def test_a_server_whose_synchronisation_cannot_be_read_is_refused() -> None:
    def odd(script: Script) -> None:
        script.capabilities = {"textDocumentSync": "everything"}

    with pytest.raises(ServerFailed) as caught:
        async with open_session(options(), spawning(odd)):
            pytest.fail("it must not be used")
    assert caught.value.code is Code.SERVER_START_FAILED


# --- Stopping -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C37", "POOL-4")
async def test_stopping_is_shutdown_exit_end_of_input_and_nothing_else() -> None:
    async with session_on(plain) as (_, server):
        await server.until("workspace/didChangeConfiguration")
        server.received.clear()
        server.on("exit", lambda params: None)
        server.on_end_of_input = lambda: server.leave(0)
    assert [(message.method, message.params) for message in server.received] == [("shutdown", None), ("exit", None)]
    assert server.signals[0] == "end of input"
    assert "terminate" not in server.signals


@pytest.mark.proves("C37")
async def test_shutdown_and_exit_travel_without_a_params_member() -> None:
    async with session_on(plain) as (_, server):
        await server.until("workspace/didChangeConfiguration")
        server.bytes_taken.clear()
    assert b"".join(server.bytes_taken) == (
        b'Content-Length: 44\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"shutdown"}'
        b'Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"exit"}'
    )


@pytest.mark.proves("C39", "F10", "F11", "POOL-4")
async def test_a_server_that_ignores_everything_is_killed_within_five_seconds() -> None:
    def stubborn(script: Script) -> None:
        assert isinstance(script, ScriptedServer)
        script.on("shutdown", lambda params: SILENCE)
        script.on("exit", lambda params: None)
        script.on_terminate = lambda: None

    async with session_on(stubborn) as (_, server):
        started = anyio.current_time()
    assert anyio.current_time() - started == pytest.approx(1.5 + 0.5 + 2.0)
    assert server.signals == ["end of input", "terminate", "kill"]
    assert server.gone


@pytest.mark.proves("C38")
async def test_a_server_that_asks_after_shutdown_gets_null_and_can_leave() -> None:
    def curious(script: Script) -> None:
        script.on("shutdown", lambda params: script.ask("workspace/configuration", {"items": []}) and None)

    async with session_on(curious) as (_, server):
        pass
    assert list(server.answers.values()) == [None]


async def test_nothing_can_be_asked_after_the_stop() -> None:
    async with session_on(synchronising) as (session, _):
        pass
    assert isinstance(await session.ended(), Unavailable)
    with pytest.raises(Unavailable) as caught:
        session.sync(FILE, "python", "x")
    assert caught.value.code is Code.SHUTTING_DOWN


async def test_an_error_in_the_block_reaches_the_caller_bare_and_the_server_is_stopped() -> None:
    servers: list[ScriptedServer] = []
    with pytest.raises(KeyError, match="mine"):
        async with open_session(options(), spawning(plain, servers=servers)):
            raise KeyError("mine")
    assert servers[0].gone
    assert methods(servers[0])[-2:] == ["shutdown", "exit"]


async def test_a_cancelled_block_still_stops_the_server() -> None:
    servers: list[ScriptedServer] = []
    with anyio.move_on_after(3):
        async with open_session(options(), spawning(plain, servers=servers)):
            await anyio.sleep_forever()
    assert servers[0].gone
    assert methods(servers[0])[-2:] == ["shutdown", "exit"]


# --- Death ----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C43", "F6", "P5")
async def test_a_crash_fails_every_pending_request_at_once_with_the_exit_status_and_last_words() -> None:
    def hoverless(script: Script) -> None:
        script.capabilities = {"hoverProvider": True}
        script.on("textDocument/hover", lambda params: SILENCE)

    failures: list[Failure] = []
    crashed_at = 0.0
    async with session_on(hoverless) as (session, server):

        async def ask() -> None:
            with pytest.raises(ServerFailed) as caught:
                await session.request("textDocument/hover", {})
            failures.append(caught.value)

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
            await server.until("textDocument/hover", 50)
            crashed_at = anyio.current_time()
            server.stderr = ("panic: out of bytes",)
            server.leave(-11)
        assert anyio.current_time() == crashed_at
        assert session.connection.waiting == {}
        assert (await session.ended()).code is Code.SERVER_CRASHED
    assert len(failures) == 50
    assert {failure.code for failure in failures} == {Code.SERVER_CRASHED}
    assert "signal 11" in failures[0].message
    assert failures[0].scene.stderr == ("panic: out of bytes",)


@pytest.mark.proves("F9")
async def test_a_kill_by_signal_nine_is_said_to_be_possibly_memory() -> None:
    async with session_on(plain) as (session, server):
        server.leave(-9)
        assert "signal 9 (possibly out of memory)" in (await session.ended()).message


@pytest.mark.proves("F8", "T38")
async def test_a_server_that_logs_the_death_of_its_worker_has_crashed_for_us() -> None:
    def hoverless(script: Script) -> None:
        script.capabilities = {"hoverProvider": True}
        script.on("textDocument/hover", lambda params: script.notify("window/logMessage", DEAD) or None)

    async with session_on(hoverless, death_signs=("worker exited",)) as (session, server):
        server.notify("window/logMessage", {"type": 3, "message": "all is well"})
        with pytest.raises(ServerFailed, match="still runs, but its worker process died") as caught:
            await session.request("textDocument/hover", {})
        assert caught.value.code is Code.SERVER_CRASHED
    assert server.gone


@pytest.mark.proves("C44", "F16")
async def test_a_server_that_closes_its_output_and_lives_on_is_dead_and_killed() -> None:
    async with session_on(plain) as (session, server):
        server.close_output()
        failure = await session.ended()
        assert failure.code is Code.SERVER_CRASHED
        assert "closed its output while still running" in failure.message
    assert server.gone


@pytest.mark.proves("F15")
async def test_a_server_that_closes_its_input_is_dead_after_its_last_words() -> None:
    async with session_on(synchronising) as (session, server):
        await server.until("workspace/didChangeConfiguration")
        server.input_closed = True
        session.sync(FILE, "python", "x")
        server.publish("file:///w/a.py", ["last words"])
        failure = await session.ended()
        assert failure.code is Code.SERVER_CRASHED
        assert "closed its input" in failure.message
        assert session.reports.files_with_items() == (FILE,)


@pytest.mark.proves("F18", "F38")
async def test_a_server_that_takes_no_byte_is_hung() -> None:
    async with session_on(synchronising) as (session, server):
        await server.until("workspace/didChangeConfiguration")
        server.reading = False
        session.sync(FILE, "python", "x")
        assert (await session.ended()).code is Code.SERVER_HUNG


@pytest.mark.proves("F25", "F26", "F27", "F28", "C3")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"Content-Length: 1000000000000\r\n\r\n", Code.LIMIT_EXCEEDED),
        (b"Content-Length: -1\r\n\r\n", Code.PROTOCOL_ERROR),
        (b"Content-Length: 2\r\nContent-Type: x; charset=utf-16\r\n\r\n{}", Code.PROTOCOL_ERROR),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", Code.PROTOCOL_ERROR),
    ],
)
async def test_a_poisoned_stream_ends_the_session_with_a_typed_failure(data: bytes, code: Code) -> None:
    async with session_on(plain) as (session, server):
        server.send(data)
        failure = await session.ended()
        assert failure.code is code
        assert failure.scene.server == "scripted"
        assert failure.scene.phase == "running"
        assert failure.hint
    assert server.gone
