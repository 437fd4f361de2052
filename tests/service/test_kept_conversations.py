"""What was promised to a conversation is told by the next daemon, when one ends in the middle of a turn (DIAG-12)."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.service.conversations import record as conversation_record
from pilotfish.service.conversations.record import ConversationRecord, KeptConversations
from pilotfish.service.workspaces import ClientSession
from pilotfish.store import Store
from support.services.conversing import talking
from support.services.several import WallClock

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-12")]


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = Store(str(tmp_path / "store.sqlite"))
    yield made
    made.close()


async def test_what_was_told_and_is_left_is_told_at_the_stop_by_the_next_daemon(tmp_path: Path, store: Store) -> None:
    async with talking(tmp_path, memory=store) as it:
        assert "bad one" in await it.edit("bad old\nbad one\n", before="bad old\n")
    async with talking(tmp_path, memory=store) as it:
        left = await it.reach("stop")
        assert "bad one" in left
        assert "bad old" not in left
        assert await it.reach("stop") == ""
    async with talking(tmp_path, memory=store) as it:
        # The turn is over: it was left on purpose.
        assert await it.reach("stop") == ""


async def test_what_was_not_judged_in_time_is_judged_by_the_next_daemon(tmp_path: Path, store: Store) -> None:
    async with talking(tmp_path, memory=store) as it:
        it.server.slow = True
        assert "bad" not in await it.edit("bad old\nbad one\n", before="bad old\n")
    async with talking(tmp_path, memory=store) as it:
        left = await it.reach("stop")
        assert "bad one" in left
        assert "bad old" not in left


async def test_what_was_mended_in_between_is_not_told(tmp_path: Path, store: Store) -> None:
    async with talking(tmp_path, memory=store) as it:
        await it.edit("bad old\nbad one\n", before="bad old\n")
    async with talking(tmp_path, memory=store) as it:
        it.write("bad old\n")
        assert await it.reach("stop") == ""


async def test_another_conversation_hears_nothing_of_it(tmp_path: Path, store: Store) -> None:
    async with talking(tmp_path, memory=store) as it:
        await it.edit("bad one\n", before="")
    async with talking(tmp_path, memory=store) as it:
        it.ground.client = replace(it.ground.client, conversation="8")
        assert await it.reach("stop") == ""


async def test_a_conversation_that_has_ended_is_forgotten(tmp_path: Path, store: Store) -> None:
    async with talking(tmp_path, memory=store) as it:
        await it.edit("bad one\n", before="")
        it.ground.service.conversations.kept.forget(it.ground.client)
    async with talking(tmp_path, memory=store) as it:
        assert await it.reach("stop") == ""


async def test_what_does_not_fit_is_left_out_the_oldest_first(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_record, "MAX_BYTES", 4_000)
    async with talking(tmp_path, memory=store) as it:
        await it.edit("bad one\n" + "good\n" * 400, before="")
        it.ground.client = replace(it.ground.client, id="another", conversation="8")
        await it.edit("bad two\n" + "good\n" * 400, "b.x", before="")
    async with talking(tmp_path, memory=store) as it:
        assert await it.reach("stop") == ""
        it.ground.client = replace(it.ground.client, id="another", conversation="8")
        assert "bad two" in await it.reach("stop")


class Broken:
    """A memory in which another version wrote."""

    def get(self, kind: str, key: str) -> bytes | None:
        return b'{"None 7": {"state": 7}}'

    def put(self, kind: str, key: str, value: bytes) -> None:
        pass


async def test_what_another_version_wrote_is_nothing(tmp_path: Path) -> None:
    memory: Any = Broken()
    async with talking(tmp_path, memory=memory) as it:
        assert "bad one" in await it.edit("bad one\n", before="")
        assert "bad one" in await it.reach("stop")


@pytest.mark.parametrize(("seconds", "goes_on"), [(60, True), (3_600, False)])
async def test_what_is_written_while_there_is_no_daemon_is_of_a_turn_that_goes_on(
    tmp_path: Path, store: Store, seconds: int, goes_on: bool
) -> None:
    clock, folder = WallClock(), AbsPath(str(tmp_path))
    client = ClientSession("one", folder, folder, conversation="7")
    record = ConversationRecord(client)
    record.state.wrote(AbsPath(str(tmp_path / "a.x")), "good\n")
    record.state.changed.add(AbsPath(str(tmp_path / "a.x")))
    KeptConversations(store, clock.wall).keep(record)
    began, now = clock.now, clock.now + seconds
    again = ConversationRecord(client, looked_at=now)
    KeptConversations(store, lambda: now).restore(again)
    assert again.state == record.state
    assert again.looked_at == (began if goes_on else now)
