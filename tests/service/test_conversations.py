"""What comes late, or from a command, is told with the next event and once; what is left, before a stop."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.answers import Feedback
from pilotfish.api.questions import Moment, Touch
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from support.servers.script import SILENCE, Script
from support.services.checks import full, server_with
from support.services.several import Ground, custom, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-12")]

WAIT = {"firstTouchTimeoutMs": 1000, "diagnosticsWaitTimeoutMs": 1000}
FEEDBACK: dict[str, Any] = {"onlyNew": True, "otherFilesAfter": []}


@dataclass
class SlowServer:
    """An error for each bad line, and answers that come when the test lets them."""

    slow: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def __call__(self, script: Script) -> None:
        server_with(diagnosticProvider={})(script)
        texts: dict[str, str] = {}

        def take(params: Any) -> None:
            changes = params.get("contentChanges")
            texts[params["textDocument"]["uri"]] = (changes[-1] if changes else params["textDocument"])["text"]

        def found(params: Any) -> Any:
            lines = texts[params["textDocument"]["uri"]].splitlines()
            return full(*(line for line in lines if line.startswith("bad")))

        def diagnose(params: Any) -> Any:
            if not self.slow:
                return found(params)
            identifier = script.received[-1].id
            assert identifier is not None
            self.waiting.append(lambda: script.reply(identifier, found(params)))
            return SILENCE

        script.on("textDocument/didOpen", take)
        script.on("textDocument/didChange", take)
        script.on("textDocument/diagnostic", diagnose)

    async def answer(self) -> None:
        """Answer everything, and be prompt from now on."""
        self.slow = False
        await anyio.wait_all_tasks_blocked()
        for reply in self.waiting:
            reply()
        self.waiting.clear()
        await anyio.wait_all_tasks_blocked()


@dataclass
class Talk:
    ground: Ground
    server: SlowServer

    def write(self, text: str, name: str = "a.x") -> str:
        return self.ground.write(name, text)

    async def edit(self, text: str, name: str = "a.x", before: str | None = None) -> str:
        self.write(text, name)
        old = {} if before is None else {"before": {name: before}}
        return (await self.ground.touched(name, **old)).text

    async def reach(self, kind: Any, **more: Any) -> str:
        return (await self.feedback(kind, **more)).text

    async def feedback(self, kind: Any, **more: Any) -> Feedback:
        return await self.ground.service.reached(Moment(kind, **more), self.ground.client)

    def command(self, text: str | None, name: str = "a.x", change: Change = Change.CHANGED) -> None:
        """A command writes or deletes a file, and the watcher sees it."""
        path = self.ground.root / name
        path.unlink() if text is None else path.write_text(text)
        self.ground.service.conversations.noticed([PathChange(AbsPath(str(path)), change)])

    @property
    def row(self) -> Any:
        (row,) = self.ground.service.status(self.ground.client).conversations
        return row


@asynccontextmanager
async def talk(folder: Path, **feedback: Any) -> AsyncGenerator[Talk]:
    server = SlowServer()
    config: dict[str, Any] = {"lsp": {"one": custom()}, "timing": WAIT, "feedback": FEEDBACK | feedback}
    async with service_on(folder, {"one": server}, config) as ground:
        yield Talk(ground, server)


# --- Late results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["call", "prompt"])
async def test_what_comes_late_is_told_with_the_next_event_and_once(kind: Any, tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
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


async def test_calls_in_between_are_counted(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        assert await it.reach("call") == ""
        await it.server.answer()
        assert "edited 2 calls ago" in await it.reach("call")


async def test_what_was_mended_meanwhile_is_never_told(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await it.server.answer()
        it.write("good\n")
        assert await it.reach("call") == ""
        assert it.row.dropped == {"no longer holds": 1}


async def test_a_file_that_is_gone_is_never_told_of(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        await it.server.answer()
        (it.ground.root / "a.x").unlink()
        assert await it.reach("call") == ""


async def test_an_edit_in_between_is_judged_with_what_was_not_told(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad old\nbad one\n", before="bad old\n")
        await it.server.answer()
        told = await it.edit("bad old\nbad one\nbad two\n", before="bad old\nbad one\n")
        assert [told.count(word) for word in ("bad one", "bad two", "Late")] == [1, 1, 0]
        assert await it.reach("call") == ""


async def test_ten_edits_in_flight_end_in_one_result_about_the_last_text(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
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
    async with talk(tmp_path) as it:
        it.server.slow = True
        await it.edit("bad one\n", before="")
        it.ground.service.end(it.ground.client)
        await it.server.answer()
        assert await it.reach("call") == ""


async def test_an_event_that_nobody_waits_for_any_more_is_not_lost(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        it.server.slow = True
        it.write("bad one\n")
        with anyio.move_on_after(0.5):
            await it.ground.touched("a.x", before={"a.x": ""})
        await it.server.answer()
        assert "bad one" in await it.reach("call")


async def test_an_event_with_a_time_of_its_own_ends_in_time_and_the_rest_follows(tmp_path: Path) -> None:
    async with talk(tmp_path, noVerdict="say") as it:
        it.server.slow = True
        it.write("bad one\n")
        touch = Touch(("a.x",), "edit", before={"a.x": ""})
        feedback = await it.ground.service.touched(touch, it.ground.client, seconds=0.5)
        assert feedback.text == "a.x is not checked yet: the time is over. The result follows."
        await it.server.answer()
        assert "bad one" in await it.reach("call")


# --- Commands --------------------------------------------------------------------------------------------------------


async def test_what_a_command_broke_is_told_with_the_next_event(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("good\nbad one\n")
        told = await it.reach("call")
        assert told.startswith("LSP errors detected in files that were changed by a command, please fix:\n<diagnostics")
        assert told.count("bad one") == 1
        assert await it.reach("call") == ""


async def test_what_was_there_before_a_command_is_not_told(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("bad old\n", before="")
        it.command("bad old\ngood\n")
        assert await it.reach("call") == ""


async def test_a_file_that_a_command_created_is_all_new(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("bad one\n", "new.x", Change.CREATED)
        assert "bad one" in await it.reach("call")


async def test_a_command_that_is_judged_late_is_told_late(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        assert "bad" not in await it.reach("call")
        await it.server.answer()
        assert "Late result for a.x" in await it.reach("call")


async def test_what_a_person_changes_between_two_turns_is_not_the_agents(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("good\n", before="")
        assert await it.reach("stop") == ""
        it.command("bad one\n")
        assert await it.reach("prompt") == ""
        assert await it.reach("call") == ""


# --- Before a stop ---------------------------------------------------------------------------------------------------


async def test_what_is_left_is_told_before_a_stop_once_per_turn(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        assert "bad one" in await it.edit("bad old\nbad one\n", before="bad old\n")
        told = await it.reach("stop")
        assert told.startswith("Before you finish: ")
        assert [told.count(word) for word in ("bad one", "bad old")] == [1, 0]
        assert await it.reach("stop") == ""
        assert await it.reach("stop") == ""


async def test_what_was_fixed_is_not_told_before_a_stop(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("bad one\n", before="good\n")
        await it.edit("good\n", before="bad one\n")
        assert await it.reach("stop") == ""


async def test_a_stop_tells_what_a_command_did_just_before(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("good\n", before="")
        it.command("bad one\n")
        assert "bad one" in await it.reach("stop")
        assert await it.reach("stop", again=True) == ""
        assert await it.reach("prompt") == ""


async def test_a_stop_is_followed_by_nothing_where_it_is_switched_off(tmp_path: Path) -> None:
    async with talk(tmp_path, beforeStop=False) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("stop") == ""


async def test_the_loop_guard_holds_whatever_the_host_says(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("stop") != ""
        await it.edit("bad two\n", before="bad one\n")
        assert await it.reach("stop") == ""
        assert await it.reach("prompt") == ""
        await it.edit("bad three\n", before="bad two\n")
        assert "bad three" in await it.reach("stop")


async def test_a_prompt_in_the_middle_of_a_turn_does_not_end_it(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("prompt") == ""
        assert "bad one" in await it.reach("stop")
        assert await it.reach("prompt") == ""
        assert await it.reach("stop") == ""


async def test_each_agent_is_told_once(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("bad one\n", before="")
        assert await it.reach("stop", agent="sub") != ""
        assert await it.reach("stop", agent="sub") == ""
        assert await it.reach("stop") != ""


async def test_a_stop_waits_no_longer_than_it_may_and_the_rest_is_told_later(tmp_path: Path) -> None:
    async with talk(tmp_path) as it:
        await it.edit("good\n", before="")
        it.server.slow = True
        it.command("bad one\n")
        feedback = await it.feedback("stop")
        assert feedback.text == ""
        assert feedback.duration_ms <= 5_100
        await it.server.answer()
        assert "bad one" in await it.reach("prompt")
