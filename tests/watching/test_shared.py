"""Watchers of several workspaces that ask for the same folder elsewhere, on real files."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import anyio
import pytest

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Interest
from pilotfish.system.watching.inotify import Inotify, inotify_watcher
from pilotfish.system.watching.watcher import SharedWatchers
from support.watching.short_of import FewWatches
from support.watching.watched import BOUND_SECONDS, EVERYTHING, Watched, registered

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-1")]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder outside of all workspaces, with folders in it."""
    for number in range(20):
        (tmp_path / "library" / f"package{number}").mkdir(parents=True)
    return tmp_path / "library"


def sharing(*makes: Callable[[], Inotify] | None) -> SharedWatchers:
    """Watchers over real inotify; the first ones are made by `makes`."""
    making = chain(makes, repeat(None))
    return SharedWatchers(lambda: inotify_watcher(WallClock(), next(making)))


@asynccontextmanager
async def workspace(shared: SharedWatchers, root: Path, *elsewhere: Path) -> AsyncGenerator[Watched]:
    """A workspace with one folder, that asks for its own files and for those elsewhere."""
    (root / "source").mkdir(parents=True)
    async with shared.open() as watcher:
        made = Watched(root, watcher)
        await made.cover(*registered(EVERYTHING), *(one for base in elsewhere for one in registered("**", base=base)))
        yield made


def watches_of_this_process() -> int:
    infos = (path.read_text() for path in Path("/proc/self/fdinfo").iterdir() if path.exists())
    return sum(text.count("\ninotify wd:") for text in infos)


async def test_a_folder_elsewhere_is_watched_once_and_all_hear_of_it(tmp_path: Path, library: Path) -> None:
    shared, before = sharing(), watches_of_this_process()
    async with (
        workspace(shared, tmp_path / "a", library) as a,
        workspace(shared, tmp_path / "b", library) as b,
        workspace(shared, tmp_path / "c", library) as c,
    ):
        own, elsewhere = 2, 21
        assert watches_of_this_process() - before == 3 * own + elsewhere
        assert a.health.watched == own + elsewhere
        (library / "package1" / "new.py").touch()
        (a.root / "source" / "own.py").touch()
        told = f"created {library}/package1/new.py"
        assert await a.found() == [told, "created source/own.py"]
        assert [await one.found() for one in (a, b, c)] == [[], [told], [told]]


async def test_each_hears_only_of_what_it_asked_for(tmp_path: Path, library: Path) -> None:
    shared = sharing()
    async with (
        workspace(shared, tmp_path / "a", library / "package1") as a,
        workspace(shared, tmp_path / "b", library / "package2") as b,
        workspace(shared, tmp_path / "c") as c,
    ):
        (library / "package1" / "one.py").touch()
        (library / "package2" / "two.py").touch()
        assert await a.found() == [f"created {library}/package1/one.py"]
        assert await b.found() == [f"created {library}/package2/two.py"]
        assert await c.found() == []
        await a.cover(*registered(EVERYTHING), *registered("**", base=library / "package2"))
        (library / "package1" / "one.py").unlink()
        (library / "package2" / "two.py").unlink()
        assert await a.found() == await b.found() == [f"deleted {library}/package2/two.py"]


async def test_the_rest_go_on_when_one_leaves_or_asks_for_nothing_elsewhere(tmp_path: Path, library: Path) -> None:
    shared, before = sharing(), watches_of_this_process()
    async with workspace(shared, tmp_path / "a", library) as a:
        async with workspace(shared, tmp_path / "b", library) as b:
            await a.cover(*registered(EVERYTHING))
            (library / "new.py").touch()
            assert (await a.found(), await b.found()) == ([], [f"created {library}/new.py"])
            assert a.health.watched == 2
        assert watches_of_this_process() - before == 2
        await a.cover(*registered(EVERYTHING), *registered("**", base=library))
        (library / "new.py").unlink()
        assert await a.found() == [f"deleted {library}/new.py"]
    assert watches_of_this_process() == before


async def test_what_was_found_elsewhere_is_kept_until_all_can_be_said(tmp_path: Path, library: Path) -> None:
    """A workspace without watches has to be looked through, which only `drain` does."""
    async with workspace(sharing(partial(FewWatches, 0)), tmp_path / "a", library) as a:
        (library / "new.py").touch()
        (a.root / "own.py").touch()
        assert a.watcher.drain_now() is None
        assert await a.found() == [f"created {library}/new.py", "created own.py"]
        assert a.health.degraded is not None


async def test_one_change_elsewhere_wakes_all_who_wait(tmp_path: Path, library: Path) -> None:
    shared = sharing()
    heard: dict[str, list[str]] = {}

    async def listen(one: Watched) -> None:
        while one.root.name not in heard:
            await one.watcher.wait_for_changes()
            if found := await one.found():
                heard[one.root.name] = found

    with anyio.fail_after(BOUND_SECONDS):
        async with (
            workspace(shared, tmp_path / "a", library) as a,
            workspace(shared, tmp_path / "b", library) as b,
            workspace(shared, tmp_path / "c", library) as c,
            anyio.create_task_group() as tasks,
        ):
            # The first to wait is the one that waits for the system: it gives up, and another must take its place.
            first = anyio.CancelScope()

            async def give_up() -> None:
                with first:
                    await a.watcher.wait_for_changes()

            tasks.start_soon(give_up)
            await anyio.wait_all_tasks_blocked()
            for one in (b, c):
                tasks.start_soon(listen, one)
            await anyio.wait_all_tasks_blocked()
            first.cancel()
            await anyio.wait_all_tasks_blocked()
            assert heard == {}
            (library / "new.py").touch()
    assert heard == {name: [f"created {library}/new.py"] for name in "bc"}


async def test_one_whose_turn_to_wait_comes_when_it_asks_for_nothing_elsewhere_any_more_goes_on(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, covering, covered = sharing(), anyio.Event(), anyio.Event()

    async def cover(_interest: Interest) -> None:
        covering.set()
        await covered.wait()

    with anyio.fail_after(BOUND_SECONDS):
        async with (
            workspace(shared, tmp_path / "a", library),
            workspace(shared, tmp_path / "b", library) as b,
            anyio.create_task_group() as tasks,
        ):
            with monkeypatch.context() as patched:
                patched.setattr(shared.outer, "cover", cover)
                async with shared.turn:
                    tasks.start_soon(b.watcher.wait_for_changes)
                    await anyio.wait_all_tasks_blocked()
                    tasks.start_soon(partial(b.cover, *registered(EVERYTHING)))
                    await covering.wait()
                await anyio.wait_all_tasks_blocked()
                covered.set()
                await anyio.wait_all_tasks_blocked()


async def test_what_changed_before_it_was_watched_is_found_in_both(tmp_path: Path, library: Path) -> None:
    (library / "new.py").touch()
    async with workspace(sharing(), tmp_path / "a", library) as a:
        (a.root / "own.py").touch()
        await a.watcher.drain()
        assert {one.path for one in a.watcher.recent(0)} == {f"{library}/new.py", f"{a.root}/own.py"}
