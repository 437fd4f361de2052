"""What comes late, or from a command, is told with the next event and once; what is left, before a stop."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.questions import Moment, Touch
from pilotfish.protocol.watching import Change
from support.services.conversing import talking

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-12")]


# --- Late results ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("F102")
@pytest.mark.parametrize("kind", ["call", "prompt"])
async def test_what_comes_late_is_told_with_the_next_event_and_once(kind: Any, tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        assert "bad" not in await it.edit("bad one\n", before="")
        assert (it.row.pending, it.row.late) == (1, 0)
        await it.server.answer()
        assert (it.row.pending, it.row.late) == (0, 1)
        told = await it.reach(kind)
        ago = 1
        assert told.startswith(f"Late result for a.x, edited {ago} call ago:\n<diagnostics")
        assert told.count("bad one") == 1
        assert (it.row.late, it.row.told) == (0, 1)
        assert await it.reach(kind) == ""


async def test_a_call_that_needs_no_answer_waits_for_no_server_and_tells_what_is_known(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await it.server.answer()
        it.server.slow = True
        it.command("bad two\n", "b.x", Change.CREATED)
        quick = await it.feedback("call", waits=False)
        assert quick.text.startswith("Late result for a.x")
        assert quick.duration_ms == 0
        assert it.server.waiting == []
        # What a command did is judged with the next event that waits.
        it.server.slow = False
        assert "bad two" in await it.reach("call")


async def test_calls_in_between_are_counted(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        assert await it.reach("call") == ""
        await it.server.answer()
        assert "edited 2 calls ago" in await it.reach("call")


async def test_what_was_mended_meanwhile_is_never_told(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await it.server.answer()
        it.write("good\n")
        assert await it.reach("call") == ""
        assert it.row.dropped == {"no longer holds": 1}


async def test_what_was_mended_late_is_new_when_it_comes_back(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        assert "bad one" in await it.edit("old\ngood\nbad one\n", before="old\n")
        it.server.slow = True
        await it.edit("old\n", before="old\ngood\nbad one\n")
        await it.server.answer()
        assert await it.reach("call") == ""
        assert "bad one" in await it.edit("old\nbad one\n", before="old\n")


async def test_a_file_that_is_gone_is_never_told_of(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await it.server.answer()
        (it.ground.root / "a.x").unlink()
        assert await it.reach("call") == ""


async def test_what_somebody_does_in_a_worktree_below_is_not_this_agent_s_work(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.ground.write("trees/one/.git", "gitdir: /r/.git/worktrees/one\n")
        it.command("bad there\n", "trees/one/b.x", Change.CREATED)
        it.command("bad here\n", "trees/b.x", Change.CREATED)
        told = await it.reach("call")
        assert ["bad there" in told, "bad here" in told] == [False, True]


async def test_an_edit_in_between_is_judged_with_what_was_not_told(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad old\nbad one\n", before="bad old\n")
        await it.server.answer()
        told = await it.edit("bad old\nbad one\nbad two\n", before="bad old\nbad one\n")
        assert [told.count(word) for word in ("bad one", "bad two", "Late")] == [1, 1, 0]
        assert await it.reach("call") == ""


async def test_ten_edits_in_flight_end_in_one_result_about_the_last_text(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        before = ""
        for number in range(10):
            text = f"bad {number}\n"
            await it.edit(text, before=before)
            before = text
        await it.server.answer()
        told = await it.reach("call")
        assert told.count("ERROR") == 1
        assert "bad 9" in told


async def test_the_end_of_a_session_ends_what_goes_on_for_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        it.ground.service.end(it.ground.client)
        await it.server.answer()
        assert await it.reach("call") == ""


async def test_an_event_that_nobody_waits_for_any_more_is_not_lost(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        it.write("bad one\n")
        with anyio.move_on_after(0.5):
            await it.ground.touched("a.x", before={"a.x": ""})
        await it.server.answer()
        assert "bad one" in await it.reach("call")


async def test_an_event_with_a_time_of_its_own_ends_in_time_and_the_rest_follows(tmp_path: Path) -> None:
    async with talking(tmp_path, noVerdict="say") as it:
        it.server.slow = True
        it.write("bad one\n")
        touch = Touch(("a.x",), "edit", before={"a.x": ""})
        feedback = await it.ground.service.touched(touch, it.ground.client, seconds=0.5)
        assert feedback.text == "a.x is not checked yet: the time is over. The result follows."
        await it.server.answer()
        assert "bad one" in await it.reach("call")


# --- Commands --------------------------------------------------------------------------------------------------------


async def test_what_a_command_broke_is_told_with_the_next_event(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("good\nbad one\n")
        told = await it.reach("call")
        assert told.startswith("LSP errors detected in files that were changed by a command, please fix:\n<diagnostics")
        assert told.count("bad one") == 1
        assert await it.reach("call") == ""


@pytest.mark.proves("F95")
async def test_what_a_command_changed_in_an_installed_package_is_nothing_to_tell_of(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        (it.ground.root / "node_modules").mkdir()
        it.command("bad one\n", "node_modules/p.x", Change.CREATED)
        assert await it.reach("call") == ""


@pytest.mark.proves("DIAG-5")
@pytest.mark.parametrize(("age", "seconds", "waited"), [(0.0, 4.5, 3.5), (0.0, 60.0, 5.0), (6.0, 60.0, 1.5)])
async def test_a_command_is_waited_for_as_long_as_a_server_is_in_its_first_use(
    tmp_path: Path, age: float, seconds: float, waited: float
) -> None:
    timing = {"firstTouchTimeoutMs": 5000, "diagnosticsWaitTimeoutMs": 1000}
    async with talking(tmp_path, timing=timing) as it:
        await it.edit("good\n", before="")
        await anyio.sleep(age)
        it.server.slow = True
        it.command("bad one\n")
        feedback = await it.ground.service.reached(Moment("call"), it.ground.client, seconds=seconds)
        # A little more: what was asked is called off.
        assert waited <= feedback.duration_ms / 1000 <= waited + 0.5


async def test_what_another_edit_is_changing_is_not_taken_for_the_work_of_a_command(tmp_path: Path) -> None:
    async with talking(tmp_path) as it, anyio.create_task_group() as tasks:
        await it.edit("good\n", "a.x", before="")
        await it.edit("good\n", "b.x", before="")
        it.server.slow = True
        told = list[str]()

        async def edit() -> None:
            told.append(await it.edit("good\nbad one\n", "a.x", before="good\n"))

        tasks.start_soon(edit)
        await anyio.wait_all_tasks_blocked()
        it.command("good\nbad one\n", "a.x")  # the watcher is behind
        it.server.slow = False
        assert await it.edit("better\n", "b.x", before="good\n") == ""
        await it.server.answer()
        await anyio.wait_all_tasks_blocked()
        assert told[0].count("bad one") == 1
        assert "command" not in told[0]
        assert await it.reach("call") == ""


async def test_what_was_there_before_a_command_is_not_told(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("bad old\n", before="")
        it.command("bad old\ngood\n")
        assert await it.reach("call") == ""


async def test_a_file_that_a_command_created_is_all_new(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("bad one\n", "new.x", Change.CREATED)
        assert "bad one" in await it.reach("call")


async def test_a_command_that_is_judged_late_is_told_late(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        assert "bad" not in await it.reach("call")
        await it.server.answer()
        assert "Late result for a.x" in await it.reach("call")


async def test_what_a_person_changes_between_two_turns_is_not_the_agents(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        assert await it.reach("stop") == ""
        it.command("bad one\n")
        assert await it.reach("prompt") == ""
        assert await it.reach("call") == ""


# --- Before a stop ---------------------------------------------------------------------------------------------------


async def test_what_is_left_is_told_before_a_stop_once_per_turn(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        assert "bad one" in await it.edit("bad old\nbad one\n", before="bad old\n")
        told = await it.reach("stop")
        assert told.startswith("Before you finish: ")
        assert [told.count(word) for word in ("bad one", "bad old")] == [1, 0]
        assert await it.reach("stop") == ""
        assert await it.reach("stop") == ""


async def test_what_was_fixed_is_not_told_before_a_stop(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("bad one\n", before="good\n")
        await it.edit("good\n", before="bad one\n")
        assert await it.reach("stop") == ""


ONE_HALF_AND_THE_OTHER = ("good\nbad old\n", "good\n", "good\nfine\nbad old\n")
"""An old error goes away with one edit and comes back with another."""


async def test_an_old_error_that_went_away_and_came_back_is_told_and_not_left(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        first, half, whole = ONE_HALF_AND_THE_OTHER
        await it.read(first)
        await it.edit(half, before=first)
        assert "bad old" in await it.edit(whole + "bad one\n", before=half)
        told = await it.reach("stop")
        assert [told.count(word) for word in ("bad old", "bad one")] == [0, 1]


@pytest.mark.parametrize("brought", [True, False], ids=["it brought the error itself", "in the turn before"])
async def test_an_error_that_came_back_is_left_where_the_turn_did_not_find_it(brought: bool, tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        first, half, whole = ONE_HALF_AND_THE_OTHER
        if brought:
            await it.edit(first, before=half)
        else:
            await it.read(first)
        await it.edit(half, before=first)
        if not brought:
            assert await it.reach("stop") == ""
            await it.reach("prompt")
        await it.edit(whole, before=half)
        assert (await it.reach("stop")).count("bad old") == 1


async def test_a_stop_tells_what_a_command_did_just_before(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("bad one\n")
        assert "bad one" in await it.reach("stop")
        assert await it.reach("stop", again=True) == ""
        assert await it.reach("prompt") == ""


async def test_a_stop_is_followed_by_nothing_where_it_is_switched_off(tmp_path: Path) -> None:
    async with talking(tmp_path, beforeStop=False) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("stop", tentative=True) == ""
        assert await it.reach("stop") == ""


async def test_before_what_may_be_a_stop_nothing_counts_as_told(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("bad one\n")
        for _ in range(2):
            assert "bad one" in await it.reach("stop", tentative=True)
        assert "changed by a command" in await it.reach("call")
        assert "bad one" in await it.reach("stop", tentative=True)
        assert "bad one" in await it.reach("stop")
        assert await it.reach("stop", tentative=True) == ""


async def test_the_loop_guard_holds_whatever_the_host_says(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("stop") != ""
        await it.edit("bad two\n", before="bad one\n")
        assert await it.reach("stop") == ""
        assert await it.reach("prompt") == ""
        await it.edit("bad three\n", before="bad two\n")
        assert "bad three" in await it.reach("stop")


async def test_a_prompt_in_the_middle_of_a_turn_does_not_end_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("prompt") == ""
        assert "bad one" in await it.reach("stop")
        assert await it.reach("prompt") == ""
        assert await it.reach("stop") == ""


@pytest.mark.proves("DIAG-12")
async def test_a_turn_that_is_interrupted_after_it_was_told_takes_no_stop_from_the_next(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert "bad one" in await it.reach("stop")
        await it.reach("prompt")
        await it.edit("bad two\n", "b.x", before="")
        left = await it.reach("stop")
    assert [left.count(word) for word in ("bad one", "bad two")] == [0, 1]


async def test_each_agent_is_told_once(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("stop", agent="sub") != ""
        assert await it.reach("stop", agent="sub") == ""
        assert await it.reach("stop") != ""


async def test_a_stop_waits_no_longer_than_it_may_and_the_rest_is_told_later(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        feedback = await it.feedback("stop")
        assert feedback.text == ""
        assert feedback.duration_ms <= 6_100
        await it.server.answer()
        assert "bad one" in await it.reach("prompt")


COLD = {"firstTouchTimeoutMs": 20_000, "diagnosticsWaitTimeoutMs": 20_000}
"""As long as a cold server takes: a stop gives up in the middle of the check."""


async def test_what_a_stop_had_no_time_for_is_told_with_the_next_prompt(tmp_path: Path) -> None:
    async with talking(tmp_path, timing=COLD) as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        feedback = await it.feedback("stop")
        assert (feedback.text, it.row.pending) == ("", 1)
        assert feedback.duration_ms <= 6_100
        await it.server.answer()
        assert "Late result for a.x" in await it.reach("prompt")
        assert await it.reach("call") == ""


async def test_that_a_stop_has_no_verdict_is_said_once(tmp_path: Path) -> None:
    async with talking(tmp_path, timing=COLD, noVerdict="say") as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        said = "a.x was not checked: its servers have not answered in time."
        assert [await it.reach(kind) for kind in ("stop", "prompt", "call")] == [said, "", ""]
        await it.server.answer()
        assert "bad one" in await it.reach("call")


@pytest.mark.parametrize("again", [True, False], ids=["goes on because it was told", "after a prompt"])
async def test_an_agent_that_heard_at_its_stop_that_nobody_knew_is_told_at_the_next_one(
    tmp_path: Path, again: bool
) -> None:
    async with talking(tmp_path, timing=COLD, noVerdict="say") as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        assert "was not checked" in await it.reach("stop")
        if not again:
            assert await it.reach("prompt") == ""
        await it.server.answer()
        assert "bad one" in await it.reach("stop", again=again)
        assert await it.reach("stop", again=True) == "", "once"


async def test_an_agent_that_goes_on_because_nobody_knew_hears_nothing_where_nobody_knows_yet(tmp_path: Path) -> None:
    async with talking(tmp_path, timing=COLD, noVerdict="say") as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        assert "was not checked" in await it.reach("stop")
        assert await it.reach("stop", again=True) == ""


async def test_that_an_edit_has_no_verdict_is_said_at_the_stop_whatever_was_said_before(tmp_path: Path) -> None:
    async with talking(tmp_path, noVerdict="say") as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        assert "is not checked yet" in await it.edit("bad one\n", before="good\n")
        said = "a.x was not checked: its servers have not answered in time."
        assert await it.reach("stop") == said
        await it.server.answer()
        assert "bad one" in await it.reach("call")


async def test_what_a_person_mended_between_two_turns_is_new_when_the_agent_breaks_it_again(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        assert "bad one" in await it.edit("bad one\n", before="good\n")
        assert await it.reach("stop") != ""
        assert await it.reach("stop") == ""
        it.command("good\n")
        assert await it.reach("prompt") == ""
        it.command("bad one\n")
        assert "bad one" in await it.reach("call")


async def test_what_a_person_broke_between_two_turns_is_not_told_before_a_stop(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.edit("good\n", before="")
        assert await it.reach("stop") == ""
        it.command("bad one\n")
        await it.reach("prompt")
        assert await it.edit("bad one\ngood\n", before="bad one\n") == ""
        assert await it.reach("stop") == ""


@pytest.mark.proves("DIAG-8", "FMT-9")
async def test_only_what_the_conversation_broke_itself_is_said_to_be_fixed(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        assert "fixed" not in await it.edit("bad one\n", before="bad old\n")
        assert "1 error was fixed." in await it.edit("bad two\n", before="bad one\n")


async def test_a_stop_waits_for_what_goes_on_and_begins_nothing_anew(tmp_path: Path) -> None:
    heard = list[str]()
    async with talking(tmp_path) as it, anyio.create_task_group() as tasks:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await anyio.wait_all_tasks_blocked()
        asked = len(it.server.waiting)

        async def stop() -> None:
            heard.append(await it.reach("stop"))

        tasks.start_soon(stop)
        await anyio.wait_all_tasks_blocked()
        assert len(it.server.waiting) == asked
        await it.server.answer()
    assert [text.count("bad one") for text in heard] == [1]


async def test_what_came_late_and_no_event_has_told_is_told_before_the_stop(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await it.server.answer()
        assert it.row.late == 1
        assert it.row.pending == 0
        assert (await it.reach("stop")).count("bad one") == 1
        assert await it.reach("call") == ""
