"""When servers are told: virtual time, and a watcher that finds what the test says."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pilotfish.api.answers import Answer, State
from pilotfish.client.session import Session
from pilotfish.model import AbsPath
from pilotfish.service import disk_changes as watching
from pilotfish.service.disk_changes import CATCH_UP_SECONDS, GATHER_SECONDS, PIECE, QUIET_SECONDS
from support.servers.importer import importer
from support.servers.script import SILENCE, Script
from support.servers.scripted import Scenario
from support.services.watched import MAIN, WatchedService, watched_service
from support.virtual_time import anyio_backend
from support.watching.fake import FakeWatcher, gone, made, written

__all__ = ["anyio_backend"]


pytestmark = pytest.mark.anyio


@dataclass
class Ground:
    work: WatchedService
    watcher: FakeWatcher

    def path(self, name: str) -> Path:
        return self.work.root / name

    def sizes(self) -> list[int]:
        """How many changes were in each notification."""
        return [len(changes) for changes in self.work.told()]


@asynccontextmanager
async def ground(folder: Path, scenario: Scenario = importer) -> AsyncGenerator[Ground]:
    watcher = FakeWatcher()
    async with watched_service(folder, scenario, watch=watcher.opened) as work:
        work.write(MAIN, "import later\n")
        yield Ground(work, watcher)


@pytest.mark.proves("C111")
async def test_changes_are_told_when_they_cease(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        for number in range(10):
            on.watcher.find(made(on.path(f"{number}")))
            await anyio.sleep(QUIET_SECONDS / 2)
        assert on.sizes() == []
        await anyio.sleep(QUIET_SECONDS * 2)
        assert on.sizes() == [10]


@pytest.mark.proves("C111")
async def test_changes_that_do_not_cease_are_told_in_parts(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        for number in range(round(GATHER_SECONDS * 2.5 / QUIET_SECONDS * 2)):
            on.watcher.find(made(on.path(f"{number}")))
            await anyio.sleep(QUIET_SECONDS / 2)
        assert len(on.sizes()) == 2
        assert sum(on.sizes()) > 0


@pytest.mark.proves("C73", "DOC-4")
async def test_whoever_asks_does_not_wait_for_that(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        assert await on.work.errors() == ["there is no later"]
        on.watcher.find(made(on.path("later")))
        before = anyio.current_time()
        assert await on.work.errors() == []
        assert anyio.current_time() == before


async def test_nothing_runs_while_nothing_happens(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        await anyio.sleep(1)
        drains, covered = on.watcher.drains, len(on.watcher.covered)
        await anyio.sleep(600)
        assert (on.watcher.drains, len(on.watcher.covered)) == (drains, covered)


@pytest.mark.proves("F89", "T43")
async def test_everybody_else_has_their_turn_while_thousands_of_changes_are_told(tmp_path: Path) -> None:
    pieces, turns, few = 10, 0, 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with ground(tmp_path) as on, anyio.create_task_group() as tasks:
        await on.work.check()
        tasks.start_soon(count_turns)
        await on.work.check()
        few = turns
        on.watcher.find(*(made(on.path(f"{number}")) for number in range(pieces * PIECE)))
        await on.work.check()
        tasks.cancel_scope.cancel()
    assert on.sizes() == [pieces * PIECE]
    # When they are passed on, when they are told, and when open documents follow.
    assert turns - few >= few + 3 * pieces


@pytest.mark.proves("F60")
async def test_a_tree_that_takes_for_ever_to_cover_holds_up_no_answer_for_ever_and_the_answer_says_so(
    tmp_path: Path,
) -> None:
    async with ground(tmp_path) as on:
        on.watcher.covers = False
        await on.work.check()
        before = anyio.current_time()
        answer = await on.work.check()
        assert anyio.current_time() - before == pytest.approx(CATCH_UP_SECONDS)
        assert answer.meta.state is State.PARTIAL
        assert "was not notified of all changes on disk" in (answer.meta.reason or "")


@pytest.mark.proves("C111")
async def test_a_server_that_missed_too_much_is_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MAX_PENDING", 10)
    async with ground(tmp_path) as on:
        await on.work.check()
        on.watcher.find(*(made(on.path(f"{number}")) for number in range(11)))
        answer = await on.work.check()
        assert answer.meta.state is State.FRESH
        assert len(on.work.servers) == 2
        assert on.sizes() == []


@pytest.mark.proves("WATCH-5")
async def test_while_a_proposed_text_is_at_the_server_nothing_changes_under_it(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        ledger = on.work.service._ledgers.of(on.work.session)  # pyright: ignore[reportPrivateUsage]
        async with ledger.alone():
            on.work.write(MAIN, "import never\n")
            on.watcher.find(written(on.path(MAIN)))
            await anyio.sleep(QUIET_SECONDS * 3)
            assert on.work.count("textDocument/didChange") == 0
        await on.work.server.until("textDocument/didChange")


@pytest.mark.proves("WATCH-5", "F54")
async def test_a_document_is_not_closed_while_it_is_being_checked(tmp_path: Path) -> None:
    def hesitating(script: Script) -> None:
        importer(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE)

    async with ground(tmp_path, hesitating) as on:
        answers: list[Answer[Any]] = []

        async def check() -> None:
            answers.append(await on.work.check())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(check)
            while not on.work.servers:
                await anyio.lowlevel.checkpoint()
            asked = await on.work.server.until("textDocument/diagnostic")
            on.path(MAIN).unlink()
            on.watcher.find(gone(on.path(MAIN)))
            await anyio.sleep(QUIET_SECONDS * 3)
            assert on.work.count("textDocument/didClose") == 0
            assert asked.id is not None
            on.work.server.reply(asked.id, {"kind": "full", "items": []})
        assert answers
        await on.work.caught_up()
        assert on.work.count("textDocument/didClose") == 1


@pytest.mark.proves("WATCH-5", "DOC-4")
async def test_whoever_asks_waits_for_documents_that_are_being_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        follow = on.work.service._ledgers.follow  # pyright: ignore[reportPrivateUsage] -- made slow

        async def slowly(session: Session, path: AbsPath, *, gone: bool) -> bool:
            await anyio.sleep(1)
            return await follow(session, path, gone=gone)

        monkeypatch.setattr(on.work.service._ledgers, "follow", slowly)  # pyright: ignore[reportPrivateUsage]
        on.work.write(MAIN, "import never\n")
        on.watcher.find(written(on.path(MAIN)))
        await anyio.sleep(QUIET_SECONDS * 2)
        assert on.sizes() == [1]
        await on.work.caught_up()
        assert on.work.count("textDocument/didChange") == 1


@pytest.mark.proves("WATCH-5", "DOC-4")
async def test_a_document_that_is_closed_before_it_takes_its_new_text_has_its_file_told_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Svelte's server heeds no change of the file of an open component, and reads none when that is closed."""
    async with ground(tmp_path) as on:
        await on.work.check()
        ledgers = on.work.service._ledgers  # pyright: ignore[reportPrivateUsage] -- made slow
        follow = ledgers.follow

        async def slowly(session: Session, path: AbsPath, *, gone: bool) -> bool:
            ledgers.of(session).close_all_but(0, session)
            return await follow(session, path, gone=gone)

        monkeypatch.setattr(ledgers, "follow", slowly)
        on.work.write(MAIN, "import never\n")
        on.watcher.find(written(on.path(MAIN)))
        await on.work.caught_up()
        assert (on.work.count("textDocument/didClose"), on.work.count("textDocument/didChange")) == (1, 0)
        assert on.work.told() == [[f"changed {MAIN}"]] * 2
        assert await on.work.errors() == ["there is no never"]
        await on.work.caught_up()
        assert len(on.work.told()) == 2


@pytest.mark.proves("F59")
async def test_a_server_that_died_meanwhile_is_no_trouble(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        on.work.server.leave(1)
        on.watcher.find(made(on.path("later")))
        answer = await on.work.check()
        assert answer.meta.state is State.FRESH


async def test_only_the_roots_that_a_question_concerns_are_caught_up_with(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        await on.work.check()
        await anyio.sleep(1)
        before = on.watcher.drains
        await on.work.service.disk_changes.catch_up(lambda root: False)
        assert on.watcher.drains == before
