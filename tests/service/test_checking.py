"""One file and one server, in virtual time: when a verdict is given, and what it is about."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pilotfish.errors import Code, ServerFailed
from pilotfish.feedback.settle import DISTURBED_SECONDS, ECHO_SECONDS
from pilotfish.model import Position
from pilotfish.protocol.rpc import ErrorCode
from pilotfish.servers.spec import Freshness, OnDemand, Phases, Pull
from pilotfish.service.checking import REGISTRATION_SECONDS, Outcome
from support.checks import OTHER, Bench, bench, full, item, messages
from support.script import SILENCE, Fail
from support.sessions import FILE, URI

pytestmark = pytest.mark.anyio

PULL = Freshness(pull=Pull.STATIC)
PUSH = Freshness(pull=Pull.NONE, versioned=True)
UNVERSIONED = Freshness(pull=Pull.NONE, versioned=False)
SILENT = Freshness(pull=Pull.NONE, barrier="textDocument/documentSymbol", publishes_unchanged=False)
COMMAND = Freshness(pull=Pull.NONE, on_demand=OnDemand("ts.request", ("syntactic", "semantic"), "tsserver"))

PULLED: dict[str, Any] = {"diagnosticProvider": {}}
SYMBOLS: dict[str, Any] = {"documentSymbolProvider": True}
COMMANDS: dict[str, Any] = {"executeCommandProvider": {"commands": ["ts.request"]}}


@asynccontextmanager
async def later(*steps: tuple[float, Callable[[], object]]) -> AsyncGenerator[None]:
    """While the block runs, do each thing at its time, in seconds from now."""

    async def one(seconds: float, action: Callable[[], object]) -> None:
        await anyio.sleep(seconds)
        action()

    async with anyio.create_task_group() as tasks:
        for seconds, action in steps:
            tasks.start_soon(one, seconds, action)
        yield


class Taker:
    """Collects requests of one method, to be answered by the test."""

    def __init__(self, ground: Bench, method: str) -> None:
        self._server = ground.server
        self._method = method
        ground.server.on(method, lambda params: SILENCE)

    def reply(self, number: int, result: Any) -> None:
        """Answer the request of that number, counted from 0."""
        found = [message.id for message in self._server.received if message.method == self._method]
        identifier = found[number]
        assert identifier is not None
        self._server.reply(identifier, result)


# --- Asking ----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-2", "C85")
async def test_a_pull_is_answered_as_soon_as_the_server_answers() -> None:
    async with bench(PULL, **PULLED) as ground:
        pulls = Taker(ground, "textDocument/diagnostic")
        async with later((0.2, lambda: pulls.reply(0, full("wrong")))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.2)


@pytest.mark.proves("DIAG-2")
async def test_a_clean_file_is_answered_as_fast_as_a_broken_one() -> None:
    async with bench(PULL, **PULLED) as ground:
        pulls = Taker(ground, "textDocument/diagnostic")
        async with later((0.2, lambda: pulls.reply(0, full()))):
            outcome = await ground.check("x")
    assert messages(outcome) == []
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.2)


@pytest.mark.proves("DIAG-2", "C24")
async def test_a_pull_that_is_registered_late_is_waited_for_and_a_publish_before_it_is_no_answer() -> None:
    async with bench(Freshness(pull=Pull.DYNAMIC)) as ground:
        ground.answers("textDocument/diagnostic", full("wrong"))
        registration = {"id": "1", "method": "textDocument/diagnostic", "registerOptions": {}}
        register = {"registrations": [registration]}
        async with later(
            (0.1, lambda: ground.publish(version=1)),
            (0.4, lambda: ground.server.ask("client/registerCapability", register)),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(0.4)


async def test_a_server_that_never_registers_what_was_expected_is_believed_by_its_publishes() -> None:
    async with bench(Freshness(pull=Pull.DYNAMIC, versioned=True)) as ground:
        async with later((0.1, lambda: ground.publish("wrong", version=1))):
            early = await ground.check("x")
        assert early.diagnostics is None
        assert early.why == "the server does not offer its diagnostics yet"
        await anyio.sleep(REGISTRATION_SECONDS)
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh


async def test_a_server_of_which_nothing_is_known_is_pulled_from_when_it_registers_that() -> None:
    async with bench(Freshness()) as ground:
        ground.answers("textDocument/diagnostic", full("wrong"))
        registration = {"id": "1", "method": "textDocument/diagnostic", "registerOptions": {}}
        async with later(
            (1.0, lambda: ground.server.ask("client/registerCapability", {"registrations": [registration]}))
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(1.0)


@pytest.mark.proves("C89")
async def test_unchanged_keeps_the_list_that_we_hold() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("wrong", result_id="r1"), {"kind": "unchanged", "resultId": "r1"})
        first, second = await ground.check("x"), await ground.check("y")
    assert messages(first) == messages(second) == ["wrong"]
    assert second.is_fresh
    assert [params.get("previousResultId") for params in ground.sent("textDocument/diagnostic")] == [None, "r1"]


@pytest.mark.proves("C86", "C89", "OPS-6")
@pytest.mark.parametrize(
    "report",
    [
        pytest.param({"kind": "unchanged", "resultId": "r"}, id="unchanged, of a list that we do not hold"),
        pytest.param({"kind": "full"}, id="items missing"),
        pytest.param({"kind": "full", "items": {"a": 1}}, id="items that are no list"),
    ],
)
async def test_an_answer_that_tells_nothing_is_a_failure_and_never_a_clean_file(report: Any) -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", report)
        with pytest.raises(ServerFailed) as failed:
            await ground.check("x")
    assert failed.value.code is Code.PROTOCOL_ERROR


async def test_a_list_with_items_that_are_no_diagnostics_is_not_fresh() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", {"kind": "full", "items": [item("wrong"), {"odd": True}]})
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.skipped == 1
    assert not outcome.is_fresh


@pytest.mark.proves("C98")
async def test_a_refresh_in_between_means_that_the_answer_may_be_old_and_is_asked_for_again() -> None:
    async with bench(PULL, **PULLED) as ground:

        def old(params: Any) -> Any:
            ground.server.ask("workspace/diagnostic/refresh")
            return full()

        ground.answers("textDocument/diagnostic", old, full("wrong"))
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert len(ground.sent("textDocument/diagnostic")) == 2


@pytest.mark.proves("C98")
async def test_a_refresh_after_the_verdict_makes_the_next_check_ask_again() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full(), full("wrong"))
        assert messages(await ground.check("x")) == []
        await ground.server.answered(ground.server.ask("workspace/diagnostic/refresh"))
        assert messages(await ground.check("x")) == ["wrong"]


@pytest.mark.proves("C96", "C95", "RPC-6")
@pytest.mark.parametrize("code", [ErrorCode.CONTENT_MODIFIED, ErrorCode.SERVER_CANCELLED])
async def test_a_server_that_asks_to_be_asked_again_is(code: int) -> None:
    def refuse(params: Any) -> Any:
        raise Fail(code)

    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", refuse, refuse, full("wrong"))
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]


@pytest.mark.proves("DIAG-10", "C89")
async def test_unchanged_of_an_older_list_is_not_taken_for_unchanged_of_a_list_that_overtook_it() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("wrong", result_id="r1"))
        await ground.check("bad")
        pulls = Taker(ground, "textDocument/diagnostic")
        outcomes: dict[str, Outcome] = {}

        async def check(text: str) -> None:
            outcomes[text] = await ground.check(text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, "fine")
            await anyio.sleep(0.1)
            tasks.start_soon(check, "bad")
            await anyio.sleep(0.1)
            # The server computed this for the text in between, when we held r1.
            pulls.reply(1, full(result_id="r2"))
            await anyio.sleep(0.1)
            assert ground.sent("textDocument/diagnostic")[-1]["previousResultId"] == "r2"
            pulls.reply(2, full("wrong", result_id="r1"))
    assert messages(outcomes["bad"]) == ["wrong"]


@pytest.mark.proves("DIAG-10")
async def test_the_check_of_an_older_text_is_served_by_the_answer_for_the_newer() -> None:
    async with bench(PULL, **PULLED) as ground:
        pulls = Taker(ground, "textDocument/diagnostic")
        outcomes: list[list[str] | None] = []

        async def check(text: str) -> None:
            outcomes.append(messages(await ground.check(text)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, "one")
            await anyio.sleep(0.1)
            tasks.start_soon(check, "two")
            await anyio.sleep(0.1)
            pulls.reply(0, full("of one, or of two"))
            await anyio.sleep(0.1)
            pulls.reply(1, full("of two"))
    assert outcomes == [["of two"], ["of two"]]


@pytest.mark.proves("C90", "C93")
async def test_what_a_pull_of_another_file_tells_about_this_one_does_not_replace_our_own_answer() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("wrong"))
        await ground.check("x")
        ground.answers("textDocument/diagnostic", {**full(), "relatedDocuments": {URI: full()}}, full("wrong"))
        await ground.check("y", OTHER)
        assert messages(await ground.check("x")) == ["wrong"]


@pytest.mark.proves("C99")
async def test_a_file_is_asked_about_again_when_another_one_changed() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full(), full(), full("broken by the other"))
        await ground.check("x")
        await ground.check("y", OTHER)
        assert messages(await ground.check("x")) == ["broken by the other"]


async def test_a_text_that_was_judged_already_is_judged_again_without_a_word_to_the_server() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("wrong"))
        await ground.check("x")
        before = len(ground.server.received)
        outcome = await ground.check("x")
        assert len(ground.server.received) == before
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == 0


@pytest.mark.proves("C100")
async def test_a_push_counts_beside_the_pull_only_if_it_names_this_version() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("pulled", "both"))
        for version, expected in ((1, ["both", "pulled", "pushed"]), (None, ["both", "pulled"])):
            async with later((0.0, lambda version=version: ground.publish("pushed", "both", version=version))):
                await anyio.sleep(0.1)
            outcome = await ground.check("x")
            assert sorted(messages(outcome) or ()) == expected
            await ground.check(f"another {version}", OTHER)


# --- On demand -------------------------------------------------------------------------------------------------------


def found(text: str, line: int = 1, **more: Any) -> dict[str, Any]:
    return {"start": {"line": line, "offset": 3}, "end": {"line": line, "offset": 4}, "text": text, **more}


@pytest.mark.proves("DIAG-2")
async def test_a_server_that_tells_on_demand_is_asked_every_question_of_its_command() -> None:
    def answer(params: Any) -> Any:
        syntactic = params["arguments"][0] == "syntactic"
        more = {"category": "suggestion", "code": 6133} if syntactic else {"category": "error", "code": 2304}
        return {"success": True, "body": [found(params["arguments"][0], line=2 if syntactic else 1, **more)]}

    async with bench(COMMAND, **COMMANDS) as ground:
        ground.answers("workspace/executeCommand", answer)
        outcome = await ground.check("abcd\nefgh\n")
        asked = ground.sent("workspace/executeCommand")
    assert sorted(asked, key=str) == [
        {"command": "ts.request", "arguments": ["semantic", {"file": FILE}]},
        {"command": "ts.request", "arguments": ["syntactic", {"file": FILE}]},
    ]
    assert outcome.is_fresh
    assert outcome.diagnostics is not None
    assert [
        (one.message, one.range.start, one.severity.name, one.code, one.source) for one in outcome.diagnostics
    ] == [
        ("semantic", Position(0, 2), "ERROR", "2304", "typescript"),
        ("syntactic", Position(1, 2), "HINT", "6133", "typescript"),
    ]


async def test_what_such_a_server_publishes_by_itself_is_no_answer() -> None:
    async with bench(COMMAND, **COMMANDS) as ground:
        questions = Taker(ground, "workspace/executeCommand")
        async with later(
            (0.1, lambda: ground.publish()),
            (1.0, lambda: questions.reply(0, {"body": [found("wrong")]})),
            (1.1, lambda: questions.reply(1, {"body": []})),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(1.1)


async def test_answers_of_different_texts_are_not_put_together() -> None:
    async with bench(COMMAND, **COMMANDS) as ground:
        questions = Taker(ground, "workspace/executeCommand")
        async with later(
            (0.1, lambda: questions.reply(0, {"body": []})),
            (0.2, lambda: ground.session.sync(FILE, "python", "another")),
            (0.3, lambda: questions.reply(1, {"body": []})),
            (0.5, lambda: questions.reply(2, {"body": [found("wrong")]})),
            (0.5, lambda: questions.reply(3, {"body": []})),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]


@pytest.mark.proves("C86")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"success": False, "message": "no project"}, Code.SERVER_ERROR),
        ({"success": True, "body": [{"odd": 1}]}, Code.SERVER_ERROR),
        ({"success": True, "body": "odd"}, Code.PROTOCOL_ERROR),
        ("odd", Code.PROTOCOL_ERROR),
    ],
)
async def test_a_command_that_fails_is_a_failure_and_never_a_clean_file(answer: Any, code: Code) -> None:
    async with bench(COMMAND, **COMMANDS) as ground:
        ground.answers("workspace/executeCommand", answer)
        with pytest.raises(ServerFailed) as failed:
            await ground.check("x")
    assert failed.value.code is code


async def test_without_the_command_its_publishes_must_do() -> None:
    async with bench(COMMAND) as ground, later((0.1, lambda: ground.publish("wrong"))):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]


# --- Publishes -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-2", "C84")
async def test_a_publish_that_names_our_version_is_the_answer_when_it_comes() -> None:
    async with bench(PUSH) as ground, later((0.7, lambda: ground.publish("wrong", version=1))):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.7)


@pytest.mark.proves("C84", "C85", "C86")
async def test_a_publish_of_an_older_version_is_never_an_answer() -> None:
    async with bench(PUSH) as ground:
        async with later((0.1, lambda: ground.publish("old", version=1))):
            await ground.check("one")
        async with later((0.1, lambda: ground.publish("old", version=1))):
            outcome = await ground.check("two")
    assert outcome.diagnostics is None
    assert outcome.why == "the server has said nothing about this text"
    assert outcome.seconds == 3


@pytest.mark.proves("DIAG-10")
async def test_a_publish_of_a_newer_version_answers_the_older_check_too() -> None:
    async with bench(PUSH) as ground:
        outcomes: list[list[str] | None] = []

        async def check(text: str) -> None:
            outcomes.append(messages(await ground.check(text)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check, "one")
            await anyio.sleep(0.1)
            tasks.start_soon(check, "two")
            await anyio.sleep(0.1)
            ground.publish("of two", version=2)
    assert outcomes == [["of two"], ["of two"]]


@pytest.mark.proves("DIAG-10", "C84")
async def test_a_late_publish_of_an_older_text_does_not_undo_a_verdict() -> None:
    async with bench(PUSH) as ground:
        async with later((0.1, lambda: ground.publish(version=1))):
            await ground.check("clean")
        async with later((0.1, lambda: ground.publish("wrong", version=2))):
            await ground.check("broken")
        ground.publish(version=1)
        await anyio.sleep(0.1)
        outcome = await ground.check("broken")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh


@pytest.mark.proves("C83")
async def test_a_publish_after_the_verdict_replaces_what_was_said() -> None:
    async with bench(PUSH) as ground:
        async with later((0.1, lambda: ground.publish("wrong", version=1))):
            await ground.check("x")
        ground.publish("something else", version=1)
        await anyio.sleep(0.1)
        assert messages(await ground.check("x")) == ["something else"]


@pytest.mark.proves("DIAG-2")
async def test_of_a_server_that_publishes_in_phases_the_last_one_counts() -> None:
    def work(ground: Bench, kind: str) -> None:
        ground.server.notify("$/progress", {"token": 1, "value": {"kind": kind, "title": "checking"}})

    async with bench(Freshness(pull=Pull.NONE, phases=Phases.UNTIL_PROGRESS_ENDS)) as ground:
        async with later(
            (0.1, lambda: work(ground, "begin")),
            (0.2, lambda: ground.publish(version=1)),
            (0.6, lambda: ground.publish("wrong", version=1)),
            (0.7, lambda: work(ground, "end")),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(0.7)


@pytest.mark.proves("DIAG-3")
async def test_a_publish_without_a_version_counts_once_it_stays_unreplaced() -> None:
    async with bench(UNVERSIONED) as ground:
        async with later((0.1, lambda: ground.publish()), (0.2, lambda: ground.publish("wrong"))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.35)


@pytest.mark.proves("DIAG-3", "DIAG-4")
async def test_the_pause_never_passes_the_deadline_and_what_stands_there_is_assumed() -> None:
    async with bench(UNVERSIONED) as ground, later((0.95, lambda: ground.publish("wrong"))):
        outcome = await ground.check("x", seconds=1.0)
    assert messages(outcome) == ["wrong"]
    assert outcome.assumed
    assert not outcome.is_fresh
    assert outcome.why == "the server gave no sign that it was done"
    assert outcome.seconds == 1


async def test_what_comes_sooner_than_the_servers_own_pause_is_about_an_older_text() -> None:
    async with bench(Freshness(pull=Pull.NONE, versioned=False, debounce_ms=500)) as ground:
        async with later((0.2, lambda: ground.publish("old")), (0.6, lambda: ground.publish("wrong"))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(0.75)


async def test_a_server_whose_second_publish_came_after_the_pause_is_waited_for_longer_the_next_time() -> None:
    async with bench(UNVERSIONED) as ground:
        async with later((0.1, lambda: ground.publish()), (0.5, lambda: ground.publish("wrong"))):
            assert messages(await ground.check("x")) == []
        await anyio.sleep(1)
        async with later((0.1, lambda: ground.publish()), (0.5, lambda: ground.publish("wrong"))):
            assert messages(await ground.check("y")) == ["wrong"]


async def test_a_text_that_somebody_else_sent_is_not_answered_by_a_publish_before_it() -> None:
    async with bench(UNVERSIONED) as ground:
        async with later((0.1, lambda: ground.publish("of one"))):
            await ground.check("one")
        ground.session.sync(FILE, "python", "two")
        async with later((0.1, lambda: ground.publish("of two"))):
            outcome = await ground.check("two")
    assert messages(outcome) == ["of two"]


# --- Other files -----------------------------------------------------------------------------------------------------


async def two_settled(ground: Bench, *, apart: float) -> None:
    """Two files that the server has judged, and then the other one changes, `apart` seconds later."""
    async with later((0.1, lambda: ground.publish(version=1))):
        assert (await ground.check("x")).is_fresh
    await anyio.sleep(apart)
    async with later((0.1, lambda: ground.publish("own", path=OTHER, version=2))):
        assert (await ground.check("y", OTHER)).is_fresh


@pytest.mark.proves("C85")
async def test_a_publish_about_an_unchanged_file_after_another_changed_is_fresh_if_it_cannot_be_an_echo() -> None:
    async with bench(PUSH) as ground:
        await two_settled(ground, apart=ECHO_SECONDS)
        async with later((0.2, lambda: ground.publish("broken by the other", version=1))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["broken by the other"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.2)


@pytest.mark.proves("C85")
async def test_such_a_publish_is_not_believed_while_it_may_be_about_the_time_before() -> None:
    async with bench(PUSH) as ground:
        await two_settled(ground, apart=1.0)
        async with later((0.2, lambda: ground.publish(version=1))):
            outcome = await ground.check("x")
    assert outcome.assumed
    assert outcome.why is not None


async def test_silence_about_an_unchanged_file_after_another_changed_is_assumed_to_mean_no_change() -> None:
    async with bench(PUSH) as ground:
        await two_settled(ground, apart=10.0)
        outcome = await ground.check("x")
    assert messages(outcome) == []
    assert outcome.assumed
    assert outcome.seconds == pytest.approx(DISTURBED_SECONDS - 0.1)


async def test_a_publish_without_a_version_from_before_another_file_changed_is_not_fresh() -> None:
    async with bench(UNVERSIONED) as ground:
        async with later((0.1, lambda: ground.publish())):
            await ground.check("x")
        async with later((0.1, lambda: ground.publish(path=OTHER))):
            await ground.check("y", OTHER)
        assert (await ground.check("x")).assumed
        async with later((0.1, lambda: ground.publish("broken by the other"))):
            await anyio.sleep(0.2)
        outcome = await ground.check("x")
    assert messages(outcome) == ["broken by the other"]
    assert outcome.is_fresh


# --- Silence ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-2")
async def test_silence_behind_the_barrier_means_that_nothing_changed() -> None:
    async with bench(SILENT, **SYMBOLS) as ground:
        barriers = Taker(ground, "textDocument/documentSymbol")
        async with later((0.1, lambda: ground.publish("wrong")), (0.2, lambda: barriers.reply(0, []))):
            first = await ground.check("one")
        async with later((0.3, lambda: barriers.reply(1, []))):
            second = await ground.check("two")
    assert messages(first) == messages(second) == ["wrong"]
    assert second.is_fresh
    assert second.seconds == pytest.approx(0.3)


async def test_a_publish_before_the_barrier_may_be_of_an_older_text_and_waits_for_it() -> None:
    async with bench(SILENT, **SYMBOLS) as ground:
        barriers = Taker(ground, "textDocument/documentSymbol")
        async with later(
            (0.1, lambda: ground.publish("old")),
            (1.0, lambda: ground.publish("wrong")),
            (1.1, lambda: barriers.reply(0, [])),
        ):
            outcome = await ground.check("one")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(1.1)


@pytest.mark.proves("C86")
async def test_silence_alone_never_means_clean() -> None:
    async with bench(Freshness(pull=Pull.NONE, publishes_unchanged=False)) as ground:
        outcome = await ground.check("x")
    assert outcome.diagnostics is None
    assert outcome.why == "the server has said nothing about this text"


# --- Before it is ready ----------------------------------------------------------------------------------------------


def progress(ground: Bench, kind: str) -> None:
    ground.server.notify("$/progress", {"token": "load", "value": {"kind": kind, "title": "loading"}})


async def test_nothing_counts_while_the_server_loads() -> None:
    async with bench(PULL, **PULLED) as ground:
        progress(ground, "begin")
        await anyio.sleep(0.1)
        ground.answers("textDocument/diagnostic", full("wrong"))
        async with later((1.0, lambda: progress(ground, "end"))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(1.0)


async def test_an_answer_given_while_it_said_that_it_loads_is_asked_for_again() -> None:
    async with bench(PULL, **PULLED) as ground:

        def unready(params: Any) -> Any:
            progress(ground, "begin")
            return full()

        ground.answers("textDocument/diagnostic", unready, full("wrong"))
        async with later((1.0, lambda: progress(ground, "end"))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]


async def test_after_its_first_verdict_work_of_a_server_holds_nothing_up() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("wrong"))
        await ground.check("x")
        progress(ground, "begin")
        await anyio.sleep(0.1)
        assert (await ground.check("y")).seconds == 0


@pytest.mark.parametrize("pause", [0.0, 0.5])
async def test_an_empty_answer_counts_only_from_a_server_that_is_quiescent(pause: float) -> None:
    def status(*, quiescent: bool) -> None:
        ground.server.notify("experimental/serverStatus", {"health": "ok", "quiescent": quiescent})

    def unready(params: Any) -> Any:
        status(quiescent=False)
        return full()

    async with bench(Freshness(pull=Pull.STATIC, phases=Phases.UNTIL_QUIESCENT), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", unready, full("wrong"))
        async with later((pause, lambda: status(quiescent=True)), (1.0, lambda: status(quiescent=True))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds >= 1


# --- No verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C86", "DIAG-2", "OPS-6")
@pytest.mark.parametrize(
    ("freshness", "capabilities", "why"),
    [
        pytest.param(PUSH, {}, "said nothing about this text", id="says nothing"),
        pytest.param(PULL, PULLED, "has not answered", id="does not answer"),
        pytest.param(SILENT, SYMBOLS, "said nothing about this text", id="does not answer the barrier"),
        pytest.param(Freshness(pull=Pull.DYNAMIC), {}, "does not offer its diagnostics yet", id="registers nothing"),
        pytest.param(
            Freshness(phases=Phases.UNTIL_QUIESCENT), PULLED, "still loading", id="never becomes quiescent"
        ),
    ],
)
async def test_a_time_out_says_why_and_is_never_an_empty_list(
    freshness: Freshness, capabilities: dict[str, Any], why: str
) -> None:
    async with bench(freshness, **capabilities) as ground:
        try:
            outcome = await ground.check("x", seconds=2.0)
        except ServerFailed as failed:
            # The question's own time-out and that of the check fall on the same moment.
            assert failed.code is Code.REQUEST_TIMEOUT
            return
    assert outcome.diagnostics is None
    assert not outcome.is_fresh
    assert outcome.why is not None
    assert why in outcome.why
    assert outcome.seconds == 2


async def test_a_server_that_says_that_it_does_not_check_gives_no_verdict() -> None:
    async with bench(Freshness(pull=Pull.STATIC, cannot_check=("eslint/noConfig",)), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        ground.server.notify("window/logMessage", {"type": 2, "message": "eslint/noConfig: no configuration found"})
        await anyio.sleep(0.1)
        outcome = await ground.check("x")
    assert outcome.diagnostics is None
    assert outcome.why == "the server says that it does not check: eslint/noConfig"


@pytest.mark.proves("F6", "C86")
@pytest.mark.parametrize(("freshness", "capabilities"), [(PULL, PULLED), (PUSH, {}), (SILENT, SYMBOLS)])
async def test_a_crash_ends_the_check_at_once_with_the_crash(
    freshness: Freshness, capabilities: dict[str, Any]
) -> None:
    async with bench(freshness, **capabilities) as ground, later((0.5, lambda: ground.server.leave(-11))):
        began = anyio.current_time()
        with pytest.raises(ServerFailed) as failed:
            await ground.check("x")
        assert anyio.current_time() - began == pytest.approx(0.5)
    assert failed.value.code is Code.SERVER_CRASHED


# --- Sending ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DOC-5", "DOC-1")
async def test_a_changed_text_is_followed_by_didsave_and_an_unchanged_one_by_nothing() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        await ground.check("x")
        await ground.check("x")
        await ground.check("y", saved=False)
        methods = [message.method for message in ground.server.received if "/did" in message.method]
    assert methods[1:] == ["textDocument/didOpen", "textDocument/didSave", "textDocument/didChange"]


@pytest.mark.proves("DIAG-10")
async def test_an_older_text_is_never_sent_after_a_newer_one() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full("of the newer"))
        await ground.check("newer", order=2)
        outcome = await ground.check("older", order=1)
        assert ground.session.documents.text(FILE).string == "newer"
    assert messages(outcome) == ["of the newer"]


async def test_the_same_text_again_makes_what_the_server_has_as_new_as_that() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        await ground.check("x", order=1)
        await ground.check("x", order=3)
        await ground.check("y", order=2)
        assert ground.session.documents.text(FILE).string == "x"


async def test_a_server_that_does_not_follow_changes_is_shown_the_text_anew() -> None:
    async with bench(PULL, textDocumentSync={"openClose": True, "change": 0}, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full(), full("wrong"))
        assert messages(await ground.check("x")) == []
        assert messages(await ground.check("y")) == ["wrong"]
        assert [params["textDocument"]["text"] for params in ground.sent("textDocument/didOpen")] == ["x", "y"]


# --- Turns -----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-9")
async def test_a_preview_waits_for_the_checks_under_way_and_holds_up_those_after_it() -> None:
    done: list[str] = []
    async with bench() as ground, anyio.create_task_group() as tasks:

        async def check(name: str) -> None:
            async with ground.standing.shared():
                await anyio.sleep(1)
                done.append(name)

        async def preview(name: str) -> None:
            async with ground.standing.alone():
                await anyio.sleep(1)
                done.append(name)

        for number, (work, name) in enumerate(
            [(check, "check 1"), (preview, "preview 1"), (preview, "preview 2"), (check, "check 2")]
        ):
            tasks.start_soon(work, name)
            await anyio.sleep(0.1 * (number == 0) + 0.1)
    assert done[:2] == ["check 1", "preview 1"]
    assert set(done[2:]) == {"preview 2", "check 2"}


async def test_a_cancelled_preview_gives_way() -> None:
    async with bench() as ground, anyio.create_task_group() as tasks:

        async def held() -> None:
            async with ground.standing.shared():
                await anyio.sleep(5)

        tasks.start_soon(held)
        await anyio.sleep(0.1)
        with anyio.move_on_after(1):
            async with ground.standing.alone():
                raise AssertionError("a check is under way")
        async with ground.standing.shared():
            pass
        tasks.cancel_scope.cancel()


async def test_a_document_that_is_being_checked_is_not_closed() -> None:
    async with bench(PUSH) as ground:
        async with later(
            (0.1, lambda: ground.standing.close_all_but(0, ground.session)),
            (0.2, lambda: ground.publish("wrong", version=1)),
        ):
            outcome = await ground.check("x")
        assert messages(outcome) == ["wrong"]
        ground.standing.close_all_but(0, ground.session)
        assert not ground.session.documents.is_open(FILE)
