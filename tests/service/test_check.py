"""One file and one server, in virtual time: when a verdict is given, and what it is about."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.errors import Code, ServerFailed
from pilotfish.feedback.settle import DISTURBED_SECONDS, ECHO_SECONDS, ENOUGH, FIRST_GAP_SECONDS, MARGIN
from pilotfish.model import AbsPath
from pilotfish.protocol.readiness import RESTART_SECONDS
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import MAX_FILES, MAX_NAMED, MAX_SEARCHED, input_evidence
from pilotfish.servers.spec import Freshness, Phases, PullSupport
from pilotfish.service.diagnostics.check import SECOND_CHECK_SECONDS
from pilotfish.service.diagnostics.ledger import FileToSend
from support.servers.sessions import FILE
from support.services.checks import (
    OTHER,
    PULL,
    PULLED,
    PUSH,
    SILENT,
    SYMBOLS,
    UNKNOWN,
    Bench,
    Taker,
    bench,
    full,
    later,
    messages,
)

pytestmark = pytest.mark.anyio


# --- Publishes -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-2", "C84")
async def test_a_publish_that_names_our_version_is_the_answer_when_it_comes() -> None:
    async with bench(PUSH) as ground, later((0.7, lambda: ground.publish("wrong", version=1))):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.7)


@pytest.mark.proves("F100")
async def test_the_later_of_two_publishes_for_one_version_counts() -> None:
    async with (
        bench(UNKNOWN) as ground,
        later((0.1, lambda: ground.publish(version=1)), (0.2, lambda: ground.publish("wrong", version=1))),
    ):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.2 + FIRST_GAP_SECONDS)


@pytest.mark.proves("F100", "DIAG-3")
async def test_how_far_apart_publishes_for_one_version_are_is_learned() -> None:
    gap = 2 * FIRST_GAP_SECONDS
    async with bench(UNKNOWN) as ground:
        for version, expected in ((1, []), (2, ["wrong"])):
            steps = (
                (0.1, lambda version=version: ground.publish(version=version)),
                (0.1 + gap, lambda version=version: ground.publish("wrong", version=version)),
            )
            async with later(*steps):
                outcome = await ground.check(f"text {version}")
            assert messages(outcome) == expected
            await anyio.sleep(1)


@pytest.mark.proves("F100", "DIAG-3")
async def test_a_publish_that_may_be_replaced_is_given_at_the_deadline_and_said_to_be_unsettled() -> None:
    async with bench(UNKNOWN) as ground, later((0.95, lambda: ground.publish("wrong", version=1))):
        outcome = await ground.check("x", seconds=1.0)
    assert messages(outcome) == ["wrong"]
    assert outcome.assumed
    assert outcome.seconds == pytest.approx(1.0)


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


@pytest.mark.proves("C84", "DIAG-2")
async def test_a_document_of_which_only_its_last_time_was_spoken_is_opened_once_more() -> None:
    async with bench(PUSH) as ground, later((0.1, lambda: ground.publish("wrong", version=1))):
        await ground.check("x")
        ground.ledger.let_go(ground.session, FileToSend(FILE, "python", "x"))
        # What is found for the last version comes after the new one was sent, and is not sent again for that.
        steps = (0.2, lambda: ground.publish("wrong", version=1)), (2.0, lambda: ground.publish("right", version=3))
        async with later(*steps):
            outcome = await ground.check("x", seconds=60)
    assert messages(outcome) == ["right"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(2.0)
    assert [sent["textDocument"]["version"] for sent in ground.sent("textDocument/didOpen")] == [1, 2, 3]


@pytest.mark.proves("C84", "DIAG-2")
async def test_a_document_whose_text_was_changed_is_not_opened_again() -> None:
    async with bench(PUSH) as ground:
        async with later((0.1, lambda: ground.publish("old", version=1))):
            await ground.check("one")
        async with later((0.1, lambda: ground.publish("old", version=1)), (20, lambda: ground.publish(version=2))):
            outcome = await ground.check("two", seconds=60)
    assert messages(outcome) == []
    assert len(ground.sent("textDocument/didOpen")) == 1


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


@pytest.mark.proves("DIAG-10", "C84", "A15.7")
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

    async with (
        bench(Freshness(pull=PullSupport.NONE, phases=Phases.UNTIL_PROGRESS_ENDS)) as ground,
        later(
            (0.1, lambda: work(ground, "begin")),
            (0.2, lambda: ground.publish(version=1)),
            (0.6, lambda: ground.publish("wrong", version=1)),
            (0.7, lambda: work(ground, "end")),
        ),
    ):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(0.7)


@pytest.mark.proves("DIAG-2")
async def test_what_was_published_before_its_loading_has_ended_is_void() -> None:
    def work(ground: Bench, kind: str) -> None:
        ground.server.notify("$/progress", {"token": 1, "value": {"kind": kind, "title": "indexing"}})

    async with (
        bench(Freshness(pull=PullSupport.NONE, phases=Phases.AFTER_PROGRESS)) as ground,
        later(
            (0.1, ground.publish),
            (0.6, lambda: work(ground, "begin")),
            (0.7, lambda: work(ground, "end")),
            (1.5, lambda: ground.publish("wrong")),
        ),
    ):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(1.5 + FIRST_GAP_SECONDS)


@pytest.mark.proves("DIAG-2")
async def test_work_without_an_end_holds_up_only_a_server_whose_diagnostics_wait_for_it() -> None:
    seen = list[list[str] | None]()
    for waits in (False, True):
        async with bench(Freshness(pull=PullSupport.NONE, waits_for_work=waits)) as ground:
            ground.server.notify("$/progress", {"token": 1, "value": {"kind": "begin", "title": "indexing"}})
            async with later((0.1, lambda ground=ground: ground.publish("wrong"))):
                outcome = await ground.check("x", seconds=2.0)
            seen.append(messages(outcome))
    assert seen == [["wrong"], None]


@pytest.mark.proves("DIAG-2", "DIAG-3")
async def test_a_server_that_pauses_after_edits_alone_is_heard_at_once_of_a_file_that_was_opened() -> None:
    async with bench(Freshness(pull=PullSupport.NONE, debounce_ms=500, debounces_opens=False)) as ground:
        async with later((0.05, lambda: ground.publish("opened"))):
            opened = await ground.check("x")
        async with later((0.05, lambda: ground.publish("old")), (0.6, lambda: ground.publish("changed"))):
            changed = await ground.check("y")
    assert (messages(opened), opened.seconds) == (["opened"], pytest.approx(0.05 + 0.25))
    assert messages(changed) == ["changed"]
    assert opened.is_fresh
    assert changed.is_fresh


@pytest.mark.proves("DIAG-3")
async def test_a_publish_without_a_version_counts_once_it_stays_unreplaced() -> None:
    async with bench(PUSH) as ground, later((0.1, ground.publish), (0.2, lambda: ground.publish("wrong"))):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds == pytest.approx(0.35)


@pytest.mark.proves("DIAG-3", "DIAG-4")
async def test_the_pause_never_passes_the_deadline_and_what_stands_there_is_assumed() -> None:
    async with bench(PUSH) as ground, later((0.95, lambda: ground.publish("wrong"))):
        outcome = await ground.check("x", seconds=1.0)
    assert messages(outcome) == ["wrong"]
    assert outcome.assumed
    assert not outcome.is_fresh
    assert outcome.why == "the server did not signal that it was done"
    assert outcome.seconds == 1


async def test_what_comes_sooner_than_the_servers_own_pause_is_about_an_older_text() -> None:
    async with (
        bench(Freshness(pull=PullSupport.NONE, debounce_ms=500)) as ground,
        later((0.2, lambda: ground.publish("old")), (0.6, lambda: ground.publish("wrong"))),
    ):
        outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds == pytest.approx(0.75)


async def test_a_server_whose_second_publish_came_after_the_pause_is_waited_for_longer_the_next_time() -> None:
    async with bench(PUSH) as ground:
        async with later((0.1, ground.publish), (0.5, lambda: ground.publish("wrong"))):
            assert messages(await ground.check("x")) == []
        await anyio.sleep(1)
        async with later((0.1, ground.publish), (0.5, lambda: ground.publish("wrong"))):
            assert messages(await ground.check("y")) == ["wrong"]


async def test_a_text_that_somebody_else_sent_is_not_answered_by_a_publish_before_it() -> None:
    async with bench(PUSH) as ground:
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


async def test_nor_is_it_soon_after_the_file_itself_was_spoken_of_at_last() -> None:
    async with bench(PUSH) as ground:
        async with later((ECHO_SECONDS + 1, lambda: ground.publish(version=1))):
            assert (await ground.check("x", seconds=10)).is_fresh
        async with later((0.1, lambda: ground.publish(path=OTHER, version=2))):
            await ground.check("y", OTHER)
        async with later((0.1, lambda: ground.publish(version=1))):
            assert (await ground.check("x")).assumed


@pytest.mark.proves("DIAG-10")
@pytest.mark.parametrize(
    "is_old", [pytest.param(True, id="was there before"), pytest.param(False, id="is new, and silence proves nothing")]
)
async def test_opening_a_file_changes_others_only_if_the_server_cannot_have_read_it(
    is_old: bool,
) -> None:
    async with bench(PUSH) as ground:

        def publish(path: AbsPath) -> None:
            ground.publish("wrong", path=path, version=ground.session.documents.version(path))

        for path in (FILE, OTHER):
            async with later((0.1, partial(publish, path))):
                assert (await ground.check("x", path, is_old=is_old)).is_fresh
        await anyio.sleep(10)
        again = await ground.check("x", is_old=is_old)
    assert messages(again) == ["wrong"]
    assert again.is_fresh == is_old
    assert again.seconds == 0


async def test_silence_about_an_unchanged_file_after_another_changed_is_assumed_to_mean_no_change() -> None:
    async with bench(PUSH) as ground:
        await two_settled(ground, apart=10.0)
        outcome = await ground.check("x")
    assert messages(outcome) == []
    assert outcome.assumed
    assert outcome.seconds == pytest.approx(DISTURBED_SECONDS - 0.1)


async def test_a_publish_without_a_version_from_before_another_file_changed_is_not_fresh() -> None:
    async with bench(PUSH) as ground:
        async with later((0.1, ground.publish)):
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


@pytest.mark.proves("DIAG-2")
async def test_silence_is_no_verdict_on_a_text_that_was_sent_meanwhile() -> None:
    async with bench(SILENT, **SYMBOLS) as ground:
        barriers = Taker(ground, "textDocument/documentSymbol")
        newer = FileToSend(FILE, "python", "two")
        async with later(
            (0.1, lambda: ground.ledger.send(ground.session, newer)),
            (0.3, lambda: barriers.reply(0, [])),
        ):
            outcome = await ground.check("one")
    assert not outcome.is_fresh
    assert outcome.why == "the file was changed while it was checked"


@pytest.mark.proves("C86")
async def test_silence_alone_never_means_clean() -> None:
    async with bench(Freshness(pull=PullSupport.NONE, publishes_unchanged=False)) as ground:
        outcome = await ground.check("x")
    assert outcome.diagnostics is None
    assert outcome.why == "the server has said nothing about this text"


async def test_the_silence_of_a_server_that_speaks_only_of_what_is_wrong_is_learned() -> None:
    async with bench(PUSH) as ground:
        for number in range(ENOUGH):
            async with later((0.1, lambda: ground.publish("wrong"))):
                await ground.check(f"broken {number}")
        for number in range(ENOUGH):
            silent = await ground.check(f"the same {number}")
            assert silent.diagnostics is None
        learned = await ground.check("the same again")
    assert learned.assumed
    assert learned.seconds == pytest.approx(0.1 * MARGIN)


# --- No verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C86", "DIAG-2", "OPS-6")
@pytest.mark.parametrize(
    ("freshness", "capabilities", "why"),
    [
        pytest.param(PUSH, {}, "said nothing about this text", id="says nothing"),
        pytest.param(PULL, PULLED, "has not answered", id="does not answer"),
        pytest.param(SILENT, SYMBOLS, "said nothing about this text", id="does not answer the barrier"),
        pytest.param(
            Freshness(pull=PullSupport.DYNAMIC), {}, "does not offer its diagnostics yet", id="registers nothing"
        ),
        pytest.param(Freshness(phases=Phases.UNTIL_QUIESCENT), PULLED, "still loading", id="never becomes quiescent"),
    ],
)
async def test_a_time_out_says_why_and_is_never_an_empty_list(
    freshness: Freshness, capabilities: dict[str, Any], why: str
) -> None:
    async with bench(freshness, **capabilities) as ground:
        outcome = await ground.check("x", seconds=2.0)
    assert outcome.diagnostics is None
    assert not outcome.is_fresh
    assert outcome.why is not None
    assert why in outcome.why
    assert outcome.seconds == 2


async def test_a_server_that_says_that_it_does_not_check_gives_no_verdict() -> None:
    async with bench(Freshness(pull=PullSupport.STATIC, cannot_check=("eslint/noConfig",)), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        ground.server.notify("window/logMessage", {"type": 2, "message": "eslint/noConfig: no configuration found"})
        await anyio.sleep(0.1)
        outcome = await ground.check("x")
    assert outcome.diagnostics is None
    assert outcome.why == "the server reports that it cannot check: eslint/noConfig: no configuration found"


LOG = "window/logMessage"
FAILING = Freshness(pull=PullSupport.STATIC, failed_check=("An error occurred:",))


@pytest.mark.proves("F94")
async def test_an_answer_that_the_server_says_has_failed_is_no_verdict_and_the_next_may_be_one() -> None:
    async with bench(FAILING, **PULLED) as ground:

        def fail(_params: Any) -> Any:
            ground.server.notify(LOG, {"type": 1, "message": "An error occurred:"})
            ground.server.notify(LOG, {"type": 1, "message": "Error: the configuration throws\n    at x.js:1"})
            return full()

        ground.answers("textDocument/diagnostic", fail, fail, full("wrong"))
        for _ in range(2):
            outcome = await ground.check("x")
            assert outcome.diagnostics is None
            words = "An error occurred: Error: the configuration throws"
            assert outcome.why == f"the server reports that it cannot check: {words}"
        assert messages(await ground.check("x")) == ["wrong"]


STATUS = "experimental/serverStatus"


@pytest.mark.proves("F94")
async def test_a_server_in_bad_health_gives_no_verdict_in_its_own_words_until_it_is_well() -> None:
    async with bench(PULL, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        assert (await ground.check("x")).is_fresh
        bad = {"health": "error", "quiescent": True, "message": "Failed to load\n  Cargo.toml"}
        ground.server.notify(STATUS, bad)
        await anyio.sleep(0.1)
        outcome = await ground.check("x")
        assert outcome.diagnostics is None
        assert outcome.why == "the server reports that it cannot check: Failed to load Cargo.toml"
        ground.server.notify(STATUS, {"health": "warning", "quiescent": True, "message": "no rust-src"})
        await anyio.sleep(0.1)
        outcome = await ground.check("x")
        assert (outcome.assumed, outcome.why) == (True, "the server reports: no rust-src")
        ground.server.notify(STATUS, {"health": "ok", "quiescent": True})
        await anyio.sleep(0.1)
        assert (await ground.check("x")).is_fresh


@pytest.mark.proves("F94")
async def test_what_a_server_does_not_check_makes_its_verdict_partial() -> None:
    async with bench(Freshness(pull=PullSupport.STATIC, not_checked="types are not checked"), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        outcome = await ground.check("x")
    assert (messages(outcome), outcome.assumed, outcome.why) == ([], True, "types are not checked")


@pytest.mark.proves("F95")
async def test_an_import_from_outside_makes_the_verdict_of_a_server_that_notices_it_late_partial() -> None:
    late = Freshness(pull=PullSupport.STATIC, late_imports=load()["vtsls"].freshness.late_imports)
    async with bench(late, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        assert (await ground.check('import { x } from "./b";\nimport "package";\n')).is_fresh
        for text in ('import { x } from "../outer/b";', 'import "../b"', "const x = require( '../../b' )"):
            outcome = await ground.check(text)
            assert outcome.assumed
            assert "noticed late" in (outcome.why or "")


@pytest.mark.proves("F95")
async def test_of_a_server_that_no_case_is_about_the_same_is_assumed() -> None:
    async with bench(Freshness(pull=PullSupport.STATIC), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        for text in ("x = 1", "a ... b", "see ./b/c"):
            assert (await ground.check(text)).is_fresh
        for text in ("source ../b.sh", '`include "../../b.vh"', "(load ./../b)", "<a href=../b>"):
            outcome = await ground.check(text)
            assert outcome.assumed
            assert "noticed late" in (outcome.why or "")
        inside = f"../{os.path.basename(os.path.dirname(FILE))}/b "
        many = await ground.check(inside * (MAX_NAMED + 1))
        assert (many.assumed, many.why) == (True, "the file names too many files to look at each")
        assert (await ground.check(inside * MAX_NAMED)).is_fresh


@pytest.mark.proves("F95", "T43")
async def test_a_text_that_is_too_long_to_be_searched_has_a_partial_verdict() -> None:
    cgo = load()["gopls"].restricted
    assert cgo is not None
    async with bench(Freshness(pull=PullSupport.STATIC, unchecked=cgo.unchecked), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        assert (await ground.check("\n" * MAX_SEARCHED)).is_fresh
        outcome = await ground.check("\n" * MAX_SEARCHED + 'import "C"\n')
    assert (outcome.assumed, "too long" in (outcome.why or "")) == (True, True)


@pytest.mark.proves("F95", "T43")
async def test_a_source_that_names_more_files_than_are_looked_at_has_a_partial_verdict(tmp_path: Path) -> None:
    root = AbsPath(str(tmp_path))
    inputs = input_evidence(load()["gopls"].inputs, root, root)
    assert inputs is not None
    async with bench(PULL, inputs=inputs, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        inputs.mention(FILE, "//go:embed a/b\n")
        assert (await ground.check("x")).is_fresh
        inputs.mention(FILE, "".join(f"//go:embed a{number}/b\n" for number in range(MAX_FILES)))
        outcome = await ground.check("x")
    assert (outcome.assumed, "too many" in (outcome.why or "")) == (True, True)


@pytest.mark.proves("F96", "T43")
async def test_where_a_configuration_names_more_files_than_are_looked_at_verdicts_are_partial(tmp_path: Path) -> None:
    root = AbsPath(str(tmp_path))
    inputs = input_evidence(load()["typescript"].inputs, root, root)
    assert inputs is not None
    async with bench(PULL, inputs=inputs, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        assert (await ground.check("x")).is_fresh
        inputs.is_cut = True
        outcome = await ground.check("x")
    assert (outcome.assumed, "its configuration names more files" in (outcome.why or "")) == (True, True)


# --- Two phases ------------------------------------------------------------------------------------------------------

SECOND = Freshness(pull=PullSupport.STATIC, save_progress="flycheck")


def second_check(ground: Bench, kind: str) -> None:
    ground.server.notify("$/progress", {"token": "flycheck/0", "value": {"kind": kind, "title": "cargo check"}})


@pytest.mark.proves("F93")
async def test_a_second_check_is_awaited_also_where_somebody_else_sent_the_save() -> None:
    async with bench(SECOND, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        # The watcher was faster than the check.
        ground.ledger.send(ground.session, FileToSend(FILE, "python", "x"))
        steps = (
            (0.1, lambda: second_check(ground, "begin")),
            (1.0, lambda: second_check(ground, "end")),
            (1.0, lambda: ground.publish("wrong", version=1)),
        )
        async with later(*steps):
            outcome = await ground.check("x")
        assert messages(outcome) == ["wrong"]
        assert outcome.is_fresh
        assert outcome.seconds == pytest.approx(1.0)
        assert (await ground.check("x")).is_fresh, "nothing was sent since"


@pytest.mark.proves("F93", "DIAG-2")
async def test_a_second_check_that_ends_for_another_save_and_begins_anew_is_not_over() -> None:
    async with bench(SECOND, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        # The watcher tells of another file, and the edit is sent right after it.
        ground.ledger.send(ground.session, FileToSend(OTHER, "python", "y"))
        ground.ledger.send(ground.session, FileToSend(FILE, "python", "x"))
        steps = (
            (0.1, lambda: second_check(ground, "begin")),
            (0.2, lambda: second_check(ground, "end")),
            (0.3, lambda: second_check(ground, "begin")),
            (1.0, lambda: ground.publish("wrong", version=2)),
            (1.0, lambda: second_check(ground, "end")),
        )
        async with later(*steps):
            outcome = await ground.check("x")
        assert (messages(outcome), outcome.is_fresh) == (["wrong"], True)


@pytest.mark.proves("F93", "DIAG-2")
async def test_a_second_check_that_begins_anew_for_reasons_of_its_own_is_not_over() -> None:
    """rust-analyzer does so when files were created or deleted, after a single save."""
    async with bench(replace(SECOND, restarts_check=True), **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        ground.ledger.send(ground.session, FileToSend(FILE, "python", "x"))
        steps = (
            (0.1, lambda: second_check(ground, "begin")),
            (0.2, lambda: ground.publish(version=1)),
            (0.2, lambda: second_check(ground, "end")),
            (0.36, lambda: second_check(ground, "begin")),
            (1.0, lambda: ground.publish("wrong", version=1)),
            (1.0, lambda: second_check(ground, "end")),
        )
        async with later(*steps):
            outcome = await ground.check("x")
        assert (messages(outcome), outcome.is_fresh) == (["wrong"], True)
        assert outcome.seconds == pytest.approx(1.0 + RESTART_SECONDS)


@pytest.mark.proves("F93", "DIAG-2")
async def test_a_second_check_that_was_over_when_a_file_was_opened_says_nothing_of_it() -> None:
    async with bench(SECOND, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        # As at the start of a server.
        second_check(ground, "begin")
        second_check(ground, "end")
        await anyio.wait_all_tasks_blocked()
        # A question has opened the file as it is on disk, which is no change.
        ground.ledger.send(ground.session, FileToSend(FILE, "python", "x", is_old=True))
        steps = (
            (0.1, lambda: second_check(ground, "begin")),
            (1.0, lambda: second_check(ground, "end")),
            (1.0, lambda: ground.publish("wrong", version=1)),
        )
        async with later(*steps):
            outcome = await ground.check("x", is_old=True)
        assert messages(outcome) == ["wrong"]
        assert outcome.is_fresh
        saves = [note for note in ground.server.received if note.method == "textDocument/didSave"]
        assert len(saves) == 1
        assert (await ground.check("x", is_old=True)).is_fresh, "nothing was sent since"


@pytest.mark.proves("F93")
async def test_a_second_check_that_does_not_begin_or_end_makes_the_verdict_partial() -> None:
    async with bench(SECOND, **PULLED) as ground:
        ground.answers("textDocument/diagnostic", full())
        async with later((0.1, lambda: second_check(ground, "begin")), (0.2, lambda: second_check(ground, "end"))):
            assert (await ground.check("x")).is_fresh
        outcome = await ground.check("z")
        assert (messages(outcome), outcome.assumed) == ([], True)
        assert outcome.seconds == pytest.approx(SECOND_CHECK_SECONDS)
        async with later((0.1, lambda: second_check(ground, "begin"))):
            outcome = await ground.check("y")
        assert (messages(outcome), outcome.assumed) == ([], True)
        assert outcome.seconds == pytest.approx(3.0)


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


@pytest.mark.proves("F6", "C86", "P8")
async def test_what_a_server_said_before_it_died_is_no_verdict_on_a_check_that_begins_then() -> None:
    """The rest of it may have died with the server."""
    async with bench(UNKNOWN) as ground:
        ground.ledger.send(ground.session, FileToSend(FILE, "python", "x"))
        async with later((0.1, lambda: ground.publish(version=1)), (0.2, lambda: ground.server.leave(-11))):
            await anyio.sleep(1)
        with pytest.raises(ServerFailed) as failed:
            await ground.check("x")
    assert failed.value.code is Code.SERVER_CRASHED


@pytest.mark.proves("F6", "C86", "P8")
async def test_silence_after_a_server_has_closed_its_output_is_no_verdict() -> None:
    """Its exit is waited for, to tell why; a settling pause may pass meanwhile."""
    async with (
        bench(UNKNOWN) as ground,
        later((0.1, lambda: ground.publish(version=1)), (0.15, ground.server.close_output)),
    ):
        with pytest.raises(ServerFailed) as failed:
            await ground.check("x")
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
            async with ground.ledger.shared():
                await anyio.sleep(1)
                done.append(name)

        async def preview(name: str) -> None:
            async with ground.ledger.alone():
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
            async with ground.ledger.shared():
                await anyio.sleep(5)

        tasks.start_soon(held)
        await anyio.sleep(0.1)
        with anyio.move_on_after(1):
            async with ground.ledger.alone():
                raise AssertionError("a check is under way")
        async with ground.ledger.shared():
            pass
        tasks.cancel_scope.cancel()


async def test_a_document_that_is_being_checked_is_not_closed() -> None:
    async with bench(PUSH) as ground:
        async with later(
            (0.1, lambda: ground.ledger.close_all_but(0, ground.session)),
            (0.2, lambda: ground.publish("wrong", version=1)),
        ):
            outcome = await ground.check("x")
        assert messages(outcome) == ["wrong"]
        ground.ledger.close_all_but(0, ground.session)
        assert not ground.session.documents.is_open(FILE)
