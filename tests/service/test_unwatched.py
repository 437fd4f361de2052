"""What commands change while no server runs is found by git, and what was there before is nobody's work."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pilotfish.system.clock import WallClock
from support.files.repositories import commit_everything, offer_git
from support.services.conversing import Talk, talking

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-15")]


@pytest.fixture
def anyio_backend() -> str:
    """Git is asked in a thread, which virtual time does not wait for."""
    return "asyncio"


@pytest.fixture
async def it(tmp_path: Path) -> AsyncGenerator[Talk]:
    slow = {"firstTouchTimeoutMs": 20_000, "diagnosticsWaitTimeoutMs": 20_000}
    async with talking(tmp_path, timing=slow, clock=WallClock()) as talk:
        offer_git(talk.ground.root.parent / "bin")
        for name in ("a.x", "b.x", "c.x", "ignored.x"):
            talk.write("good\n", name)
        talk.write("ignored.x\n", ".gitignore")
        commit_everything(talk.ground.root)
        yield talk


async def test_what_a_command_changes_before_any_server_runs_is_told_once(it: Talk) -> None:
    await it.ground.service.warm_up(it.ground.client)
    it.write("good\nbad one\n")
    it.write("bad two\n", "new.x")
    it.write("bad three\n", "ignored.x")
    told = await it.reach("call")
    assert [word in told for word in ("bad one", "bad two", "bad three")] == [True, True, False]
    assert await it.reach("call") == ""
    assert "bad one" in await it.reach("stop")


async def test_what_was_changed_before_the_conversation_is_not_its_work(it: Talk) -> None:
    it.write("bad older\n")
    it.write("bad untracked\n", "new.x")
    (it.ground.root / "c.x").unlink()
    await it.ground.service.warm_up(it.ground.client)
    it.write("bad one\n", "b.x")
    told = await it.reach("call")
    assert [word in told for word in ("bad one", "older", "untracked", "c.x")] == [True, False, False, False]
    assert await it.reach("stop") != ""


async def test_what_a_person_does_between_turns_is_not_the_agent_s_work(it: Talk) -> None:
    it.ground.service.conversations.begin(it.ground.client)
    it.write("bad one\n")
    assert await it.reach("prompt") == ""
    assert await it.reach("stop") == ""


async def test_an_edit_is_compared_with_what_its_host_says_and_not_with_the_last_commit(it: Talk) -> None:
    it.ground.service.conversations.begin(it.ground.client)
    it.write("bad older\n")
    told = await it.edit("bad older\nbad one\n", before="bad older\n")
    assert "bad one" in told
    assert "bad older" not in told
