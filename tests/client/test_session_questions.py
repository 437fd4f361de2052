"""Requests that end exactly once, documents in order, diagnostics taken in."""

from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from pilotfish.client import connection
from pilotfish.client.session import DELAYS
from pilotfish.errors import Code, ServerFailed, Unavailable
from pilotfish.model import AbsPath
from pilotfish.protocol.diagnostics import Pull
from pilotfish.protocol.watching import Change, PathChange, watch_registrations
from pilotfish.servers.spec import Freshness
from support.servers.script import SILENCE, Fail, Handler, Script
from support.servers.scripted import Scenario
from support.servers.sessions import FILE, URI, session_on

pytestmark = pytest.mark.anyio

EVERYTHING: dict[str, Any] = {"hoverProvider": True, "textDocumentSync": 2, "diagnosticProvider": {}}


def offering(**handlers: Handler) -> Scenario:
    def scenario(script: Script) -> None:
        script.capabilities = EVERYTHING
        script.ignore("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose")
        for method, handler in handlers.items():
            script.on(f"textDocument/{method}", handler)

    return scenario


# --- Answers ----------------------------------------------------------------------------------------------------------


async def test_a_request_returns_what_the_server_answered() -> None:
    async with session_on(offering(hover=lambda params: {"contents": params["x"]})) as (session, _):
        assert bytes(await session.request("textDocument/hover", {"x": "é"})) == '{"contents":"é"}'.encode()
        assert session.connection.waiting == {}


async def test_several_requests_leave_before_the_first_answer_and_are_answered_in_their_order() -> None:
    waiting: list[int] = []

    def answer(params: Any) -> Any:
        waiting.append(len(session.connection.waiting))
        return params["x"]

    async with session_on(offering(hover=answer)) as (session, _):
        answers = await session.request_all("textDocument/hover", [{"x": 1}, {"x": 2}, {"x": 3}])
        assert [bytes(one) for one in answers] == [b"1", b"2", b"3"]
        assert waiting == [3, 3, 3]
        assert session.connection.waiting == {}


async def test_of_several_requests_one_that_fails_fails_all_and_cancels_the_rest() -> None:
    def answer(params: Any) -> Any:
        if params["x"] == 1:
            raise Fail(-32603, "no")
        return SILENCE

    async with session_on(offering(hover=answer)) as (session, server):
        with pytest.raises(ServerFailed, match="no"):
            await session.request_all("textDocument/hover", [{"x": 1}, {"x": 2}, {"x": 3}])
        await anyio.wait_all_tasks_blocked()
        assert session.connection.waiting == {}
        assert len(server.cancelled) == 2


@pytest.mark.proves("C11")
async def test_null_is_an_answer() -> None:
    async with session_on(offering(hover=lambda params: None)) as (session, _):
        assert bytes(await session.request("textDocument/hover", {})) == b"null"


@pytest.mark.proves("C11")
async def test_a_response_with_neither_result_nor_error_is_null() -> None:
    silent = session_on(offering(hover=lambda params: SILENCE))
    async with silent as (session, server), anyio.create_task_group() as tasks:

        async def ask() -> None:
            assert bytes(await session.request("textDocument/hover", {})) == b"null"

        tasks.start_soon(ask)
        asked = await server.until("textDocument/hover")
        body = f'{{"jsonrpc":"2.0","id":{asked.id}}}'.encode()
        server.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


@pytest.mark.proves("RPC-3", "C101")
async def test_a_timed_out_request_is_cancelled_and_its_late_answer_dropped() -> None:
    async with session_on(offering(hover=lambda params: SILENCE)) as (session, server):
        started = anyio.current_time()
        with pytest.raises(ServerFailed) as caught:
            await session.request("textDocument/hover", {}, timeout=4)
        assert caught.value.code is Code.REQUEST_TIMEOUT
        assert caught.value.code == "ETIMEDOUT"
        assert "ask again" in (caught.value.hint or "")
        assert anyio.current_time() - started == pytest.approx(4)
        asked = server.received[-1]
        assert asked.id is not None
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(1):
            while server.cancelled != [asked.id]:
                await anyio.sleep(0.01)
        server.reply(asked.id, {"late": True})
        server.on("textDocument/hover", lambda params: {"fresh": True})
        assert bytes(await session.request("textDocument/hover", {})) == b'{"fresh":true}'


@pytest.mark.proves("RPC-3", "C101", "F72")
async def test_a_cancelled_caller_cancels_the_request_at_once() -> None:
    async with session_on(offering(hover=lambda params: SILENCE)) as (session, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.request, "textDocument/hover", None)
            await server.until("textDocument/hover")
            tasks.cancel_scope.cancel()
        with anyio.fail_after(1):
            while not server.cancelled:
                await anyio.sleep(0.01)
        assert session.connection.waiting == {}
        assert session.failure is None


async def test_a_server_has_caught_up_once_it_has_answered_what_was_given_up() -> None:
    async with session_on(offering(hover=lambda params: SILENCE)) as (session, server):
        with anyio.move_on_after(1):
            await session.request("textDocument/hover", {})
        given_up, asked = anyio.current_time(), server.received[-1].id
        assert asked is not None
        with anyio.move_on_after(connection.CATCH_UP_SECONDS / 2) as waiting:
            await session.connection.caught_up()
        assert waiting.cancelled_caught
        # It may never answer: then it is asked further, and nobody waits again.
        for _ in range(2):
            await session.connection.caught_up()
            assert anyio.current_time() - given_up == pytest.approx(connection.CATCH_UP_SECONDS)
        server.reply(asked, {"late": True})
        with anyio.fail_after(1):
            await session.connection.caught_up()
        server.leave(1)
        await session.connection.caught_up()


@pytest.mark.proves("F37")
async def test_a_server_that_never_answers_cancelled_requests_is_hung_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "MAX_UNANSWERED_CANCELS", 3)
    async with session_on(offering(hover=lambda params: SILENCE)) as (session, _):
        for _ in range(8):
            with pytest.raises(ServerFailed):
                await session.request("textDocument/hover", {}, timeout=10)
        assert (await session.ended()).code is Code.SERVER_HUNG


@pytest.mark.proves("C35", "RPC-7")
async def test_a_method_that_is_not_offered_is_never_sent() -> None:
    async with session_on(offering()) as (session, server):
        with pytest.raises(Unavailable) as caught:
            await session.request("workspace/symbol", {"query": "x"})
        assert caught.value.code is Code.UNSUPPORTED
        assert "workspace/symbol" not in [message.method for message in server.received]


@pytest.mark.proves("C9", "C10", "C8")
async def test_a_server_request_with_the_id_of_ours_is_not_our_answer() -> None:
    async with session_on(offering(hover=lambda params: SILENCE)) as (session, server):
        answers: list[bytes] = []

        async def ask() -> None:
            answers.append(bytes(await session.request("textDocument/hover", {})))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            ours = await server.until("textDocument/hover")
            assert ours.id is not None
            body = f'{{"jsonrpc":"2.0","id":{ours.id},"method":"workspace/workspaceFolders"}}'.encode()
            server.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            server.reply(ours.id, "mine")
        assert answers == [b'"mine"']


# --- Asking again -----------------------------------------------------------------------------------------------------


def refusing(times: int, code: int, data: object = None) -> Handler:
    left = [times]

    def hover(params: object) -> object:
        if left[0]:
            left[0] -= 1
            raise Fail(code, "again", data)
        return "done"

    return hover


@pytest.mark.proves("RPC-6", "C95", "C96")
@pytest.mark.parametrize(
    ("code", "data"), [(-32801, None), (-32802, None), (-32802, {"retriggerRequest": True}), (-32802, 7)]
)
async def test_a_request_that_must_be_asked_again_is(code: int, data: object) -> None:
    async with session_on(offering(hover=refusing(3, code, data))) as (session, server):
        assert bytes(await session.request("textDocument/hover", {})) == b'"done"'
        assert [message.method for message in server.received].count("textDocument/hover") == 4


@pytest.mark.proves("C96")
async def test_a_server_that_says_cancelled_for_changed_is_asked_again() -> None:
    """Pyrefly, whose catalogue entry says so."""
    async with session_on(offering(hover=refusing(2, -32800)), freshness=Freshness(cancels_on_change=True)) as (
        session,
        server,
    ):
        assert bytes(await session.request("textDocument/hover", {})) == b'"done"'
        assert [message.method for message in server.received].count("textDocument/hover") == 3


@pytest.mark.proves("RPC-6", "C95", "C96")
@pytest.mark.parametrize("code", [-32801, -32802])
async def test_a_server_that_always_refuses_is_not_asked_for_ever_and_never_counts_as_empty(code: int) -> None:
    async with session_on(offering(hover=refusing(1000, code))) as (session, server):
        with pytest.raises(ServerFailed) as caught:
            await session.request("textDocument/hover", {}, timeout=60)
        assert caught.value.rpc_code == code
        assert [message.method for message in server.received].count("textDocument/hover") == len(DELAYS) + 1


@pytest.mark.proves("C95", "C97")
@pytest.mark.parametrize(("code", "data"), [(-32802, {"retriggerRequest": False}), (-32800, None), (-32603, None)])
async def test_a_final_error_is_raised_at_once(code: int, data: object) -> None:
    async with session_on(offering(hover=refusing(1, code, data))) as (session, _):
        with pytest.raises(ServerFailed, match="again") as caught:
            await session.request("textDocument/hover", {})
        assert (caught.value.code, caught.value.rpc_code) == (Code.SERVER_ERROR, code)


@pytest.mark.proves("RPC-6")
async def test_asking_again_stays_within_the_time_limit() -> None:
    async with session_on(offering(hover=refusing(1000, -32801))) as (session, _):
        started = anyio.current_time()
        with pytest.raises(ServerFailed):
            await session.request("textDocument/hover", {}, timeout=0.3)
        assert anyio.current_time() - started <= 0.3


# --- Documents --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C65", "C66", "C68", "DOC-1", "DOC-3")
async def test_a_question_is_computed_on_the_change_before_it_a_thousand_times() -> None:
    seen: list[int] = []
    version = 0

    def changed(params: Any) -> None:
        nonlocal version
        assert params["textDocument"]["version"] > version
        version = params["textDocument"]["version"]

    scenario = offering(didOpen=changed, didChange=changed, hover=lambda params: version)
    async with session_on(scenario) as (session, server):
        for number in range(1000):
            ours = session.sync(FILE, "python", f"x = {number}\n")
            seen.append(int(bytes(await session.request("textDocument/hover", {}, about=FILE))))
            assert seen[-1] == ours
        assert [message.method for message in server.received].count("textDocument/didOpen") == 1


@pytest.mark.proves("DOC-1")
async def test_unchanged_text_sends_nothing() -> None:
    async with session_on(offering()) as (session, server):
        first = session.sync(FILE, "python", "x")
        assert session.sync(FILE, "python", "x") == first
        session.close(FILE)
        await server.until("textDocument/didClose")
        assert [message.method for message in server.received][-2:] == ["textDocument/didOpen", "textDocument/didClose"]


async def test_closing_a_document_forgets_what_was_said_about_it() -> None:
    async with session_on(offering()) as (session, server):
        session.sync(FILE, "python", "x")
        server.publish(URI, ["m"])
        await session.changed.wait()
        assert session.reports.files_with_items() == (FILE,)
        session.close(FILE)
        assert session.reports.files_with_items() == ()


@pytest.mark.proves("C36")
async def test_a_server_that_registers_its_synchronisation_later_gets_documents() -> None:
    def dart(script: Script) -> None:
        script.ignore("textDocument/didOpen")

    async with session_on(dart) as (session, server):
        session.sync(FILE, "dart", "x")
        selector = {"documentSelector": [{"language": "dart"}]}
        server.ask(
            "client/registerCapability",
            {
                "registrations": [
                    {"id": "1", "method": "textDocument/didOpen", "registerOptions": selector},
                    {"id": "2", "method": "textDocument/didChange", "registerOptions": {**selector, "syncKind": 2}},
                ]
            },
        )
        await session.changed.wait()
        session.sync(AbsPath("/w/b.dart"), "dart", "y")
        await server.until("textDocument/didOpen", 2)
        opened = [message.params for message in server.received if message.method == "textDocument/didOpen"]
        assert [params["textDocument"]["uri"] for params in opened] == [URI, "file:///w/b.dart"]


# --- Diagnostics ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C19")
async def test_a_thousand_publishes_are_applied_in_order() -> None:
    async with session_on(offering()) as (session, server):
        for version in range(1, 1001):
            server.publish(URI, [f"v{version}"], version)
        while session.reports.arrivals < 1000:
            await session.changed.wait()
        (report,) = session.reports.of(FILE).values()
        assert (report.version, [item.message for item in report.items]) == (1000, ["v1000"])


@pytest.mark.proves("C89", "DIAG-1")
async def test_a_pull_asks_every_provider_and_gives_back_its_result_id() -> None:
    asked: list[Any] = []

    def pulled(params: Any) -> object:
        asked.append((params.get("identifier"), params.get("previousResultId")))
        return {"kind": "full", "items": [], "resultId": f"r{len(asked)}"}

    async with session_on(offering(diagnostic=pulled)) as (session, server):
        session.sync(FILE, "python", "x")
        server.ask(
            "client/registerCapability",
            {
                "registrations": [
                    {"id": "1", "method": "textDocument/diagnostic", "registerOptions": {"identifier": "lint"}}
                ]
            },
        )
        await session.changed.wait()
        assert await session.pull(FILE) == (FILE, FILE)
        await session.pull(FILE)
        assert set(asked[:2]) == {(None, None), ("lint", None)}
        assert {identifier for identifier, _ in asked[2:]} == {None, "lint"}
        assert {previous for _, previous in asked[2:]} == {"r1", "r2"}
        assert set(session.reports.of(FILE)) == {Pull(None), Pull("lint")}


@pytest.mark.proves("C86", "F40")
async def test_a_pull_answer_of_the_wrong_shape_is_a_failure_not_an_empty_list() -> None:
    async with session_on(offering(diagnostic=lambda params: "nothing")) as (session, _):
        session.sync(FILE, "python", "x")
        with pytest.raises(ServerFailed) as caught:
            await session.pull(FILE)
        assert caught.value.code is Code.PROTOCOL_ERROR
        assert dict(session.reports.of(FILE)) == {}


# --- What we never do -------------------------------------------------------------------------------------------------


@pytest.mark.proves("C56")
@pytest.mark.parametrize("cancellable", [True, False])
async def test_work_of_the_server_is_never_cancelled_by_us(cancellable: bool) -> None:
    async with session_on(offering()) as (session, server):
        begin = {"kind": "begin", "title": "indexing", "cancellable": cancellable}
        server.notify("$/progress", {"token": 1, "value": begin})
        await session.changed.wait()
        assert session.readiness.busy
        await anyio.sleep(1000)
    assert "window/workDoneProgress/cancel" not in [message.method for message in server.received]


@pytest.mark.proves("C70", "C69")
async def test_a_save_is_told_once_it_has_happened_and_never_before() -> None:
    def saving(script: Script) -> None:
        script.capabilities = {
            "textDocumentSync": {
                "openClose": True,
                "change": 2,
                "save": {},
                "willSave": True,
                "willSaveWaitUntil": True,
            }
        }
        script.ignore("textDocument/didOpen", "textDocument/didSave")

    async with session_on(saving) as (session, server):
        session.sync(FILE, "python", "x")
        session.save(FILE)
        await server.until("textDocument/didSave")
        claimed = server.received[0].params["capabilities"]["textDocument"]["synchronization"]
        assert not claimed.get("willSave")
        assert not claimed.get("willSaveWaitUntil")


@pytest.mark.proves("WATCH-2", "DIAG-6")
@pytest.mark.parametrize(
    ("saves", "told"),
    [
        pytest.param(False, ["workspace/didChangeWatchedFiles"], id="it reads them by itself"),
        pytest.param(True, ["workspace/didChangeWatchedFiles", "textDocument/didSave"], id="only after a save"),
    ],
)
async def test_a_server_that_reads_other_files_only_after_a_save_is_told_of_one(
    saves: bool,
    told: list[str],
) -> None:
    header = AbsPath("/w/a.h")
    watches = tuple(watch_registrations({"watchers": [{"globPattern": "**/*.h"}]}))

    def saving(script: Script) -> None:
        offering(hover=lambda params: None)(script)
        script.capabilities = {**EVERYTHING, "textDocumentSync": {"openClose": True, "change": 1, "save": True}}
        script.ignore("textDocument/didSave", "workspace/didChangeWatchedFiles")

    async with session_on(saving, watches=watches, freshness=Freshness(dependents_after_save=saves)) as (
        session,
        server,
    ):
        session.sync(FILE, "python", "x")
        await session.request("textDocument/hover", {})
        before = len(server.received)
        assert session.tell_changes([PathChange(header, Change.CHANGED)])
        await session.request("textDocument/hover", {})
    assert [message.method for message in server.received[before:]][: len(told)] == told
    assert [message.method for message in server.received].count("textDocument/didSave") == len(told) - 1


@pytest.mark.proves("WATCH-2", "DIAG-6")
@pytest.mark.parametrize("again", [False, True], ids=["changed", "opened again"])
async def test_a_text_that_counts_for_other_files_only_when_its_own_file_is_asked_about_is_followed_by_that(
    again: bool,
) -> None:
    """Svelte's server answered about a page from what its component had been, for a second."""
    sent, taken = list[int](), list[int]()

    def late(script: Script) -> None:
        offering(hover=lambda params: taken)(script)
        script.capabilities = {**EVERYTHING, "textDocumentSync": 1, "foldingRangeProvider": True}
        for method in ("textDocument/didOpen", "textDocument/didChange"):
            script.on(method, lambda params: sent.append(params["textDocument"]["version"]))
        script.on("textDocument/foldingRange", lambda params: taken.append(sent[-1]) or [])

    async with session_on(late, freshness=Freshness(ask_after_text="textDocument/foldingRange")) as (session, _):
        versions = list[int]()
        for text in ("old", "new", "new"):
            versions.append(session.sync(FILE, "svelte", text))
            answer = await session.request("textDocument/hover", {})
            assert msgspec.json.decode(answer) == sorted(set(versions))
            if again:
                session.close(FILE)
        assert session.connection.waiting == {}


@pytest.mark.proves("WATCH-2", "DIAG-6")
@pytest.mark.parametrize(
    ("kept", "saved"), [(True, ["file:///w/b.py"]), (False, [])], ids=["another document", "the only document"]
)
async def test_a_deleted_document_is_followed_by_a_save_of_another_one(kept: bool, saved: list[str]) -> None:
    """Pyrefly's last check had ended, and was taken for one that knew of the deletion."""
    watches = tuple(watch_registrations({"watchers": [{"globPattern": "**/*.py"}]}))

    def saving(script: Script) -> None:
        offering(hover=lambda params: None)(script)
        script.capabilities = {**EVERYTHING, "textDocumentSync": {"openClose": True, "change": 1, "save": True}}
        script.ignore("textDocument/didSave", "workspace/didChangeWatchedFiles")

    async with session_on(saving, watches=watches, freshness=Freshness(dependents_after_save=True)) as (
        session,
        server,
    ):
        session.sync(FILE, "python", "x")
        if kept:
            session.sync(AbsPath("/w/b.py"), "python", "y")
        assert session.tell_changes([PathChange(FILE, Change.DELETED)])
        assert session.readiness.is_behind("check")
        await session.request("textDocument/hover", {})
    told = [message for message in server.received if message.method == "textDocument/didSave"]
    assert [message.params["textDocument"]["uri"] for message in told] == saved
