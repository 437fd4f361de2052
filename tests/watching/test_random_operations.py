"""Thousands of random operations: whoever believes what the watcher tells must end up with what is on disk.

`--operations 20000` for the long run. Every look compares with a walk over the whole folder.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import anyio
import anyio.to_thread
import pytest

from pilotfish.system.ports import Clock
from pilotfish.system.watching import inotify, portable
from pilotfish.system.watching.folder_watcher import FolderWatcher
from pilotfish.system.watching.inotify import inotify_watcher
from pilotfish.system.watching.portable import events_watcher
from support.files.folders import IN_MEMORY
from support.watching.churn import Churn, Reader, picture
from support.watching.short_of import FewWatches, TinyQueue
from support.watching.watched import EVERYTHING, Watched, watched

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-2", "C111", "F59", "P25")]

SYSTEMS: dict[str, Callable[[Clock], FolderWatcher]] = {
    "enough of everything": inotify_watcher,
    "a queue of five events": partial(inotify_watcher, make=lambda: TinyQueue(5)),
    "three watches": partial(inotify_watcher, make=lambda: FewWatches(3)),
    "no inotify": events_watcher,
}
IDS = pytest.mark.parametrize("watcher_of", SYSTEMS.values(), ids=SYSTEMS.keys())


@pytest.fixture(autouse=True)
def a_machine_that_is_not_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not make the poll give up half-way: how far it comes is not what is tested."""
    monkeypatch.setattr(inotify, "POLL_SLICE_SECONDS", 10.0)
    monkeypatch.setattr(portable, "SLICE_SECONDS", 10.0)


@pytest.fixture
def place() -> Iterator[Path]:
    made = Path(mkdtemp(dir=IN_MEMORY))
    (made / "root").mkdir()
    (made / "outside").mkdir()
    yield made
    shutil.rmtree(made)


@IDS
async def test_what_is_told_leads_to_what_is_there(
    place: Path, watcher_of: Callable[[Clock], FolderWatcher], request: pytest.FixtureRequest
) -> None:
    operations = int(request.config.getoption("--operations") or 0)
    root = place / "root"
    churn, reader = Churn(root, place / "outside", seed=operations), Reader(root)
    async with watched(root, EVERYTHING, watcher_of=watcher_of, bound=operations / 100) as changes:
        for _ in range(operations):
            churn.step()
            if churn.drains():
                await compare(changes, reader)
        await compare(changes, reader)
        health = changes.health
    assert health.watched + health.polled == sum(1 for _ in os.walk(root))
    assert bool(health.overflows) == (watcher_of is SYSTEMS["a queue of five events"])
    assert (health.degraded is None) == (watcher_of is not SYSTEMS["three watches"])


async def compare(changes: Watched, reader: Reader) -> None:
    reader.told(await changes.watcher.drain())
    assert reader.believed == picture(changes.root)


@IDS
async def test_nothing_is_lost_while_the_disk_changes_under_its_eyes(
    place: Path, watcher_of: Callable[[Clock], FolderWatcher], request: pytest.FixtureRequest
) -> None:
    operations = int(request.config.getoption("--operations") or 0)
    root = place / "root"
    churn, reader = Churn(root, place / "outside", seed=operations + 1), Reader(root)
    done = False

    def change_everything() -> None:
        for _ in range(operations):
            churn.step()

    async def watch(changes: Watched) -> None:
        while not done:
            reader.told(await changes.watcher.drain())
            await anyio.lowlevel.checkpoint()

    async with watched(root, EVERYTHING, watcher_of=watcher_of, bound=operations / 100) as changes:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, changes)
            await anyio.to_thread.run_sync(change_everything)
            done = True
        await compare(changes, reader)
