"""The watcher of systems without inotify: right when it is asked, and woken by events while nobody asks."""

import shutil
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from pilotfish.model import AbsPath
from pilotfish.system.watching import folder_watcher, portable, tree
from pilotfish.system.watching.listing import inode_of
from pilotfish.system.watching.portable import events_watcher
from pilotfish.system.watching.watches import Sentry, Watches
from support.watching.watched import EVERYTHING, Watched, registered, watched
from watching.test_inotify import HAPPENINGS, lay_out

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-1", "WATCH-2", "PLAT-1")]

watched_elsewhere = partial(watched, watcher_of=events_watcher)


@pytest.mark.parametrize(("act", "expected"), HAPPENINGS.values(), ids=HAPPENINGS.keys())
async def test_it_notices_what_happened_when_it_is_asked(
    tmp_path: Path, act: Callable[[Path], object], expected: list[str]
) -> None:
    root = tmp_path / "root"
    lay_out(root)
    async with watched_elsewhere(root, EVERYTHING) as changes:
        act(root)
        told = {*await changes.found()}
        assert {*expected} <= told
        # What was written so soon before the first look that its time proves nothing counts as changed once more.
        assert told - {*expected} <= {"changed file", "changed folder/inner/deep"}


@pytest.mark.parametrize("folder", [".venv/lib/python3.11/site-packages/package", "node_modules/package"])
async def test_a_line_that_changes_inside_of_an_installed_package_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setattr(tree, "DOUBT_NANOSECONDS", 0)
    module = tmp_path / folder / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text("value = 1")
    before = module.stat().st_ctime_ns
    async with watched_elsewhere(module.parent, EVERYTHING) as changes:
        while module.stat().st_ctime_ns == before:
            module.write_text("value = 2")
        assert await changes.found() == ["changed module.py"]


async def until_told(changes: Watched, expected: str) -> None:
    while expected not in await changes.found():
        await changes.watcher.wait_for_changes()


async def test_it_is_woken_while_nobody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watcher, "POLL_SECONDS", 1_000.0)
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        # The first time when the events begin: what was before them has none.
        await changes.watcher.wait_for_changes()
        for name in ("one", "two"):
            (tmp_path / name).touch()
            await changes.watcher.wait_for_changes()
            assert f"created {name}" in await changes.found()


async def test_it_waits_for_events_while_a_walk_changes_what_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[Watches]()

    class Known(Watches):
        def __init__(self, sentry: Sentry) -> None:
            super().__init__(sentry)
            made.append(self)

    def walked(path: AbsPath) -> int | None:
        made[0].watch(path, follow=False)
        return inode_of(path)

    monkeypatch.setattr(tree, "Watches", Known)
    lay_out(tmp_path)
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        monkeypatch.setattr(portable, "inode_of", walked)
        await changes.watcher.wait_for_changes()


@pytest.mark.proves("F97")
async def test_what_it_had_no_time_to_look_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        monkeypatch.setattr(portable, "SLICE_SECONDS", 0.0)
        await changes.found()
        assert changes.health.behind == "there is more to look at than 0 s suffice for"
        monkeypatch.setattr(portable, "SLICE_SECONDS", 10.0)
        await changes.found()
        assert changes.health.behind is None
        assert changes.health.watched == 3


@pytest.mark.proves("F97")
@pytest.mark.parametrize(("waited", "behind"), [(9.0, False), (11.0, True)], ids=["busy for a while", "too busy"])
async def test_a_machine_that_is_busy_with_something_else_leaves_nothing_out(
    waited: float, behind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path)
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        begin_and_later = chain((0.0,), repeat(waited))
        times = SimpleNamespace(thread_time=lambda: 0.1, monotonic=lambda: next(begin_and_later))
        monkeypatch.setattr(folder_watcher, "time", times)
        await changes.found()
        assert (changes.health.behind is not None) == behind


@pytest.mark.proves("F59", "P25")
async def test_without_events_it_looks_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no such luck")

    monkeypatch.setattr(portable, "RustNotify", broken)
    monkeypatch.setattr(folder_watcher, "POLL_SECONDS", 0.01)
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        await changes.watcher.wait_for_changes()
        assert changes.health.degraded == "watching failed: no such luck"
        (tmp_path / "file").touch()
        await until_told(changes, "created file")


@pytest.mark.proves("WATCH-4", "WATCH-5")
async def test_what_nobody_asks_for_is_not_told(tmp_path: Path) -> None:
    for folder in ("node_modules/package", "src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "node_modules" / "package" / "index.js").touch()
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        await changes.cover(*registered(EVERYTHING), folders=(tmp_path / "node_modules" / "package",))
        (tmp_path / "node_modules" / "other").touch()
        (tmp_path / "node_modules" / "package" / "index.js").write_text("2")
        (tmp_path / "src" / "new").touch()
        assert await changes.found() == ["changed node_modules/package/index.js", "created src/new"]


async def test_a_root_that_comes_later_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with watched_elsewhere(root, EVERYTHING) as changes:
        assert await changes.found() == []
        root.mkdir()
        (root / "file").touch()
        assert "created file" in await changes.found()
        shutil.rmtree(root)
        assert "deleted file" in await changes.found()


async def test_too_many_folders_are_told_in_its_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_FOLDERS", 1)
    (tmp_path / "folder").mkdir()
    async with watched_elsewhere(tmp_path, EVERYTHING) as changes:
        assert "not watched" in (changes.health.degraded or "")
        assert changes.watcher.recent(0.0) == ()
