"""Edits whose results a model reads together are judged together, as one change; when that is told is a setting."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.protocol.watching import Change
from pilotfish.service.diagnostics.edit_feedback import EditFeedback
from support.services.conversing import Talk, talking

pytestmark = [pytest.mark.anyio, pytest.mark.proves("FMT-9")]


async def part(it: Talk, text: str, name: str = "a.x", before: str = "", *, counts: bool = False) -> str:
    """One edit as its host reports it when it is made."""
    it.write(text, name)
    return (await it.ground.touched(name, before={name: before}, batch="part", counts=counts)).text


async def end(it: Talk, *names: str) -> str:
    return (await it.ground.touched(*names, kind="patch", batch="end")).text


# --- Where the host reports the end of a batch ------------------------------------------------------------------------


async def test_the_edits_of_a_batch_are_told_once_after_the_last_of_them(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.reach("call")
        assert await part(it, "bad one\n") == ""
        assert await part(it, "bad two\n", "b.x") == ""
        told = await end(it, "a.x", "b.x")
        assert [told.count(word) for word in ("bad one", "bad two")] == [1, 1]
        assert await end(it, "a.x", "b.x") == ""
        assert await it.reach("call") == ""


async def test_nothing_is_waited_for_before_the_end_of_a_batch(tmp_path: Path) -> None:
    async with talking(tmp_path, noVerdict="say") as it:
        await it.reach("call")
        it.server.slow = True
        started = anyio.current_time()
        assert await part(it, "bad one\n") == ""
        assert await part(it, "bad two\n", "b.x") == ""
        assert anyio.current_time() == started


async def test_the_servers_see_a_file_before_the_end_of_its_batch(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.reach("call")
        await part(it, "bad one\n")
        await anyio.wait_all_tasks_blocked()
        assert it.ground.sent("one", "textDocument/diagnostic")
        assert await it.reach("call") == ""


async def test_what_is_owed_is_judged_where_the_servers_cannot_be_shown_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError

    async with talking(tmp_path) as it:
        await it.reach("call")
        it.server.slow = True
        await it.edit("bad one\n", before="")
        with monkeypatch.context() as patch:
            patch.setattr(EditFeedback, "look", broken)
            await part(it, "two\n", "b.x")
            await it.server.answer()
        assert (it.row.pending, it.row.late) == (0, 1)
        assert "Late result for a.x" in await end(it, "b.x")


async def test_what_a_batch_repairs_itself_is_never_said(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.reach("call")
        await part(it, "bad old\nbad one\n", before="bad old\n")
        await anyio.wait_all_tasks_blocked()
        assert await it.reach("call", counts=False) == ""
        await part(it, "good\n", before="bad old\nbad one\n")
        await anyio.wait_all_tasks_blocked()
        await part(it, "bad old\ngood\n", before="good\n")
        assert await end(it, "a.x") == ""
        assert await it.reach("stop") == ""


async def test_an_edit_before_the_first_end_of_a_batch_is_told_at_once(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        assert "bad one" in await part(it, "bad one\n")
        assert await end(it, "a.x") == ""
        assert await part(it, "bad one\nbad two\n", before="bad one\n") == ""
        assert "bad two" in await end(it, "a.x")


async def test_each_batch_tells_of_its_own_edits(tmp_path: Path) -> None:
    """Two agents of one conversation work at the same time."""
    async with talking(tmp_path) as it:
        await it.reach("call")
        await part(it, "bad one\n")
        await part(it, "bad two\n", "b.x")
        second = await end(it, "b.x")
        assert ("bad one" in second, "bad two" in second) == (False, True)
        assert await it.reach("call") == ""
        assert "bad one" in await end(it, "a.x")


@pytest.mark.parametrize("tentative", [True, False])
async def test_a_batch_whose_end_never_comes_is_told_before_the_stop(tentative: bool, tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.reach("call")
        await part(it, "bad one\n")
        if tentative:
            assert "bad one" in await it.reach("stop", tentative=True)
        assert "bad one" in await it.reach("stop")
        assert await it.reach("stop") == ""


async def test_a_batch_that_a_prompt_interrupts_is_told_later(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.reach("call")
        await part(it, "bad one\n")
        await it.reach("prompt")
        await anyio.wait_all_tasks_blocked()
        assert "bad one" in await it.reach("call")


async def test_a_command_in_a_batch_is_judged_with_its_edits(tmp_path: Path) -> None:
    async with talking(tmp_path) as it:
        await it.reach("call")
        await part(it, "bad one\n", before="good\n")
        it.command("good\nbad one\n")
        it.command("bad two\n", "b.x", Change.CREATED)
        told = await end(it, "a.x")
        assert [told.count(word) for word in ("bad one", "bad two")] == [1, 1]
        assert await it.reach("call") == ""


# --- Where it does not ------------------------------------------------------------------------------------------------


async def test_edits_that_arrive_while_one_is_judged_are_judged_with_it(tmp_path: Path) -> None:
    told = dict[str, str]()

    async def edit(it: Talk, name: str, text: str) -> None:
        told[name] = await part(it, text, name, counts=True)

    async with talking(tmp_path) as it:
        it.server.slow = True
        async with anyio.create_task_group() as tasks:
            for name, text in {"a.x": "bad one\n", "b.x": "bad two\n", "c.x": "good\n"}.items():
                tasks.start_soon(edit, it, name, text)
                await anyio.wait_all_tasks_blocked()
            await it.server.answer()
        assert (told["a.x"], told["b.x"]) == ("", "")
        assert [told["c.x"].count(word) for word in ("bad one", "bad two")] == [1, 1]
        assert await it.reach("call") == ""


async def test_a_question_about_an_edit_is_answered_alone(tmp_path: Path) -> None:
    told = dict[str, str]()

    async def ask(it: Talk, name: str, text: str) -> None:
        told[name] = await it.edit(text, name, before="")

    async with talking(tmp_path) as it:
        it.server.slow = True
        async with anyio.create_task_group() as tasks:
            for name, text in {"a.x": "bad one\n", "b.x": "bad two\n"}.items():
                tasks.start_soon(ask, it, name, text)
                await anyio.wait_all_tasks_blocked()
            await it.server.answer()
        assert "bad one" in told["a.x"]
        assert "bad two" in told["b.x"]


# --- When it is told --------------------------------------------------------------------------------------------------


async def test_after_each_edit(tmp_path: Path) -> None:
    async with talking(tmp_path, after="edit") as it:
        await it.reach("call")
        assert "bad one" in await part(it, "bad one\n")
        assert await end(it, "a.x") == ""


@pytest.mark.parametrize(("after", "before_stop"), [("stop", True), ("ask", False)])
async def test_only_before_the_stop_or_not_at_all(after: Any, before_stop: bool, tmp_path: Path) -> None:
    async with talking(tmp_path, after=after) as it:
        assert await part(it, "bad one\n", counts=True) == ""
        it.command("bad two\n", "b.x", Change.CREATED)
        assert await it.reach("call") == ""
        assert await it.reach("prompt") == ""
        told = await it.reach("stop")
        assert ("bad one" in told, "bad two" in told) == (before_stop, before_stop)
        assert "bad one" in await it.edit("bad one\n", before="")


async def test_what_the_stop_had_no_time_for_is_told_with_the_next_prompt(tmp_path: Path) -> None:
    async with talking(tmp_path, after="stop") as it:
        assert await part(it, "bad one\n", counts=True) == ""
        it.server.slow = True
        assert await it.reach("stop") == ""
        await it.server.answer()
        await anyio.wait_all_tasks_blocked()
        assert "bad one" in await it.reach("prompt")
        assert await it.reach("prompt") == ""
