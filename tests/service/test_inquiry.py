"""Asking a server for its diagnostics, in virtual time: which answers count, and for what."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.errors import Code, ServerFailed
from pilotfish.model import Position
from pilotfish.protocol.rpc import ErrorCode
from pilotfish.servers.catalogue import load
from pilotfish.servers.spec import Freshness, OnDemand, Phases, PullSupport
from pilotfish.service.diagnostics.inquiry import REGISTRATION_SECONDS, complaint
from pilotfish.service.diagnostics.verdicts import Outcome
from support.servers.script import Fail
from support.servers.sessions import FILE, URI
from support.services.checks import (
    COMMAND,
    COMMANDS,
    OTHER,
    PULL,
    PULLED,
    Bench,
    Taker,
    bench,
    full,
    item,
    later,
    messages,
)

pytestmark = pytest.mark.anyio


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


@pytest.mark.proves("DIAG-2")
async def test_a_server_that_reads_the_text_only_for_other_questions_is_asked_one_first() -> None:
    freshness = Freshness(pull=PullSupport.STATIC, ask_first="textDocument/documentSymbol")
    async with bench(freshness, **PULLED, documentSymbolProvider=True) as ground:
        parsed = list[str]()

        def parse(params: Any) -> list[Any]:
            parsed.append(params["textDocument"]["uri"])
            return []

        def diagnosed(_params: Any) -> Any:
            return full("wrong") if parsed else full()

        ground.answers("textDocument/documentSymbol", parse)
        ground.answers("textDocument/diagnostic", diagnosed)
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert parsed == [URI]


@pytest.mark.proves("DIAG-2")
async def test_a_pull_that_is_known_to_mean_nothing_is_not_asked() -> None:
    async with bench(Freshness(pull=PullSupport.EMPTY), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        async with later((0.3, lambda: ground.publish("wrong", version=1))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert not ground.sent("textDocument/diagnostic")


@pytest.mark.proves("DIAG-2", "C24")
async def test_a_pull_that_is_registered_late_is_waited_for_and_a_publish_before_it_is_no_answer() -> None:
    async with bench(Freshness(pull=PullSupport.DYNAMIC)) as ground:
        ground.answers("textDocument/diagnostic", full("wrong"))
        register = {"registrations": [{"id": "1", "method": "textDocument/diagnostic"}]}
        async with later(
            (0.1, lambda: ground.publish(version=1)),
            (0.4, lambda: ground.server.ask("client/registerCapability", register)),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(0.4)


async def test_a_server_that_never_registers_what_was_expected_is_believed_by_its_publishes() -> None:
    async with bench(Freshness(pull=PullSupport.DYNAMIC)) as ground:
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
        register = {"registrations": [{"id": "1", "method": "textDocument/diagnostic"}]}
        async with later((1.0, lambda: ground.server.ask("client/registerCapability", register))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(1.0)


@pytest.mark.proves("C89")
async def test_unchanged_keeps_the_list_that_we_hold() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers(
            "textDocument/diagnostic", full("wrong", result_id="r1"), {"kind": "unchanged", "resultId": "r1"}
        )
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


@pytest.mark.proves("DIAG-2", "RPC-6")
async def test_luau_is_asked_again_until_it_has_read_its_configuration() -> None:
    """Its messages are those that the source of luau-lsp 1.69.0 states: no registry has the program."""
    provider = {"identifier": "luau", "interFileDependencies": True, "workspaceDiagnostics": True}
    async with bench(load()["luau"].freshness, diagnosticProvider=provider) as ground:
        configured = list[bool]()

        def pull(_params: Any) -> Any:
            if not configured:
                raise Fail(
                    ErrorCode.SERVER_CANCELLED, "server not yet received configuration", {"retriggerRequest": True}
                )
            return full("wrong")

        ground.answers("textDocument/diagnostic", pull)
        await ground.server.answered(ground.server.ask("workspace/configuration", {"items": [{"section": "luau-lsp"}]}))
        async with later((0.5, lambda: configured.append(True))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds >= 0.5
    assert {pull["identifier"] for pull in ground.sent("textDocument/diagnostic")} == {"luau"}


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
    assert [(one.message, one.range.start, one.severity.name, one.code, one.source) for one in outcome.diagnostics] == [
        ("semantic", Position(0, 2), "ERROR", "2304", "typescript"),
        ("syntactic", Position(1, 2), "HINT", "6133", "typescript"),
    ]


REFRESH = Freshness(pull=PullSupport.NONE, on_demand=OnDemand("java.refresh", arguments=("", False, True)))
REFRESHES: dict[str, Any] = {"executeCommandProvider": {"commands": ["java.refresh"]}}


@pytest.mark.proves("DIAG-2")
async def test_a_server_that_publishes_on_demand_is_believed_by_what_it_has_published_before_it_answers() -> None:
    """On a busy machine what jdtls publishes by itself of an older text comes long after the newer one."""
    async with bench(REFRESH, **REFRESHES) as ground:
        questions = Taker(ground, "workspace/executeCommand")
        async with later(
            (0.1, lambda: ground.publish("of an older text")),
            (2.0, lambda: (ground.publish("wrong"), questions.reply(0, None))),
        ):
            outcome = await ground.check("x")
        asked = ground.sent("workspace/executeCommand")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(2.0)
    assert asked == [{"command": "java.refresh", "arguments": [URI, "", False, True]}]


@pytest.mark.proves("DIAG-2")
async def test_an_answer_before_which_nothing_was_published_is_no_verdict() -> None:
    async with bench(REFRESH, **REFRESHES) as ground:
        ground.answers("workspace/executeCommand", None)
        ground.publish("of an older text")
        await anyio.sleep(0.1)
        outcome = await ground.check("x", seconds=0.5)
    assert outcome.diagnostics is None


@pytest.mark.proves("DIAG-2")
async def test_what_is_published_before_the_server_has_loaded_and_registers_the_command_is_no_answer() -> None:
    freshness = replace(REFRESH, loaded_by="language/status ServiceReady")
    register = {"registrations": [{"id": "1", "method": "workspace/executeCommand"}]}

    async with bench(freshness) as ground:

        def answer(_params: Any) -> None:
            ground.publish("wrong")

        ground.answers("workspace/executeCommand", answer)
        async with later(
            (0.1, ground.publish),
            (0.2 + REGISTRATION_SECONDS, lambda: ground.server.ask("client/registerCapability", register)),
            (0.3 + REGISTRATION_SECONDS, lambda: ground.server.notify("language/status", {"type": "ServiceReady"})),
        ):
            outcome = await ground.check("x", seconds=2 * REGISTRATION_SECONDS)
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh


async def test_such_a_server_is_sent_one_check_at_a_time_and_none_before_it_has_done_what_was_given_up() -> None:
    """It cancels nothing: whatever waits there stands in the way of the next edit."""
    nothing: dict[str, object] = {"success": True, "body": []}
    async with bench(COMMAND, **COMMANDS) as ground, anyio.create_task_group() as tasks:
        questions = Taker(ground, "workspace/executeCommand")
        with anyio.move_on_after(1.0):
            await ground.check("x")
        tasks.start_soon(ground.check, "y")
        tasks.start_soon(ground.check, "z", OTHER)
        for answered in (0, 2, 4):
            await anyio.wait_all_tasks_blocked()
            assert len(ground.sent("workspace/executeCommand")) == answered + 2
            questions.reply(answered, nothing)
            questions.reply(answered + 1, nothing)


async def test_what_such_a_server_publishes_by_itself_is_no_answer() -> None:
    async with bench(COMMAND, **COMMANDS) as ground:
        questions = Taker(ground, "workspace/executeCommand")
        async with later(
            (0.1, ground.publish),
            (1.0, lambda: questions.reply(0, {"success": True, "body": [found("wrong")]})),
            (1.1, lambda: questions.reply(1, {"success": True, "body": []})),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(1.1)


async def test_answers_of_different_texts_are_not_put_together() -> None:
    async with bench(COMMAND, **COMMANDS) as ground:
        questions = Taker(ground, "workspace/executeCommand")
        async with later(
            (0.1, lambda: questions.reply(0, {"success": True, "body": []})),
            (0.2, lambda: ground.session.sync(FILE, "python", "another")),
            (0.3, lambda: questions.reply(1, {"success": True, "body": []})),
            (0.5, lambda: questions.reply(2, {"success": True, "body": [found("wrong")]})),
            (0.5, lambda: questions.reply(3, {"success": True, "body": []})),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]


@pytest.mark.proves("P7", "F95")
async def test_answers_between_which_another_wrote_a_file_are_not_put_together() -> None:
    """The write is not noticed before somebody looks, and the server may read the file itself."""
    async with bench(COMMAND, **COMMANDS) as ground:
        unnoticed = [ground.ledger.note_disk_change]

        async def tell() -> None:
            while unnoticed:
                unnoticed.pop()()

        ground.ledger.tell = tell
        questions = Taker(ground, "workspace/executeCommand")
        async with later(
            (0.1, lambda: questions.reply(0, {"success": True, "body": []})),
            (0.3, lambda: questions.reply(1, {"success": True, "body": []})),
            (0.5, lambda: questions.reply(2, {"success": True, "body": [found("wrong")]})),
            (0.5, lambda: questions.reply(3, {"success": True, "body": []})),
        ):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh


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


@pytest.mark.proves("P8", "DIAG-2")
async def test_an_answer_that_the_end_of_loading_follows_in_the_same_breath_is_asked_for_again() -> None:
    async with bench(PULL, **PULLED) as ground:
        pulls = Taker(ground, "textDocument/diagnostic")

        def in_one_breath() -> None:
            progress(ground, "begin")
            pulls.reply(0, full())
            progress(ground, "end")

        async with later((0.2, in_one_breath), (1.0, lambda: pulls.reply(1, full("wrong")))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh


async def test_a_server_that_tells_of_work_around_every_question_is_believed_all_the_same() -> None:
    async with bench(PULL, **PULLED) as ground:

        def at_work(params: Any) -> Any:
            progress(ground, "begin")
            progress(ground, "end")
            return full("wrong")

        ground.answers("textDocument/diagnostic", at_work)
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh


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

    async with bench(Freshness(pull=PullSupport.STATIC, phases=Phases.UNTIL_QUIESCENT), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", unready, full("wrong"))
        async with later((pause, lambda: status(quiescent=True)), (1.0, lambda: status(quiescent=True))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds >= 1


def test_of_a_refusal_the_time_and_the_level_are_left_out() -> None:
    said = "04:06:12.691 WARNING ⛔️ ShellCheck: disabling linting as no executable was found"
    assert complaint([said], ["disabling linting"]) == said[said.index("ShellCheck") :]


# --- What was found on the way to another file ------------------------------------------------------------------------


KEEPING = Freshness(pull=PullSupport.STATIC, keeps_findings=True)


class Keeper:
    """A server that looks into a second file whenever it is asked about the first one, and keeps what it finds there
    for its next answer about the second, unless that was shown anew."""

    def __init__(self, ground: Bench) -> None:
        self._ground = ground
        self.found = list[str]()
        self._kept: tuple[list[str], int] = ([], 0)
        ground.answers("textDocument/diagnostic", self._answer)

    def _answer(self, params: Any) -> Any:
        if params["textDocument"]["uri"] == URI:
            self._kept = (self.found, self.texts)
            return full()
        kept, at = self._kept
        self._kept = ([], 0)
        return full(*sorted({*(kept if at == self.texts else ()), *self.found}))

    @property
    def texts(self) -> int:
        """How many texts of the second file it was sent."""
        sent = [*self._ground.sent("textDocument/didOpen"), *self._ground.sent("textDocument/didChange")]
        return len([params for params in sent if params["textDocument"]["uri"] != URI])


@pytest.mark.proves("DIAG-2", "DIAG-3")
async def test_what_a_change_has_mended_is_not_told_because_it_was_found_on_the_way_to_another_file() -> None:
    async with bench(KEEPING, **PULLED) as ground:
        server = Keeper(ground)
        assert messages(await ground.check("y", OTHER)) == []
        server.found = ["wrong"]
        await ground.check("bad")
        server.found = []
        ground.ledger.note_disk_change()
        outcome = await ground.check("y", OTHER)
    assert messages(outcome) == []
    assert outcome.is_fresh


@pytest.mark.proves("DIAG-2")
async def test_what_is_still_wrong_is_told_after_a_second_look_and_what_cannot_be_old_without_one() -> None:
    async with bench(KEEPING, **PULLED) as ground:
        server = Keeper(ground)
        await ground.check("y", OTHER)
        server.found = ["wrong"]
        await ground.check("bad")
        assert messages(await ground.check("y", OTHER)) == ["wrong"]
        assert server.texts == 1
        ground.ledger.note_disk_change()
        assert messages(await ground.check("y", OTHER)) == ["wrong"]
        assert server.texts == 2
        assert ground.sent("textDocument/didChange")[-1]["contentChanges"] == [{"text": "y"}]
