"""The watcher of systems without inotify. Its events take their time, so tests wait until they have come."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from pilotfish.system.clock import WallClock
from pilotfish.system.watching import tree
from pilotfish.system.watching.portable import open_events_watcher
from support.watching.churn import Churn, Reader, picture
from support.watching.watched import BOUND_SECONDS, EVERYTHING, Watched, registered

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-1", "WATCH-2")]


@asynccontextmanager
async def watched(root: Path) -> AsyncGenerator[Watched]:
    with anyio.fail_after(BOUND_SECONDS):
        async with open_events_watcher(WallClock()) as watcher:
            made = Watched(root, watcher)
            await made.cover(*registered(EVERYTHING))
            yield made


async def until_believed(changes: Watched, reader: Reader) -> None:
    """Wait until whoever believes what is told believes what is there."""
    while True:
        reader.told(await changes.watcher.drain())
        if reader.believed == picture(changes.root):
            return
        await changes.watcher.wait_for_changes()


async def test_what_is_told_leads_to_what_is_there(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    churn, reader = Churn(root, outside, seed=1), Reader(root)
    async with watched(root) as changes:
        for _ in range(300):
            churn.step()
        await until_believed(changes, reader)
        (root / "last").write_text("last")
        await until_believed(changes, reader)


@pytest.mark.proves("WATCH-4", "WATCH-5")
async def test_what_nobody_asks_for_is_not_told(tmp_path: Path) -> None:
    for folder in ("node_modules/package", "src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "node_modules" / "package" / "index.js").touch()
    async with watched(tmp_path) as changes:
        await changes.cover(*registered(EVERYTHING), folders=(tmp_path / "node_modules" / "package",))
        told: set[str] = set()
        (tmp_path / "node_modules" / "other").touch()
        (tmp_path / "node_modules" / "package" / "index.js").write_text("2")
        (tmp_path / "src" / "new").touch()
        while not {"created src/new", "changed node_modules/package/index.js"} <= told:
            await changes.watcher.wait_for_changes()
            told |= {*await changes.found()}
        assert not any("other" in change for change in told)


async def test_a_root_that_comes_later_is_noticed_when_somebody_asks(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with watched(root) as changes:
        assert await changes.found() == []
        root.mkdir()
        (root / "file").touch()
        assert "created file" in await changes.found()
        shutil.rmtree(root)
        assert "deleted file" in await changes.found()


async def test_too_many_folders_are_told_in_its_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_FOLDERS", 1)
    (tmp_path / "folder").mkdir()
    async with watched(tmp_path) as changes:
        assert "not watched" in (changes.health.degraded or "")
        assert changes.watcher.recent(0.0) == ()
