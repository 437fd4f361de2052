"""What watching costs: `python bench/watch.py [FOLDER]` prints tables and asserts nothing.

A tree of 100,000 files, 60,000 of them in `node_modules`, is watched by Pilotfish and by `watchfiles`, both for all
that is not ignored. Set-up time and watches are of one watcher; processor time is of the whole process while nothing
happens. Then both see the same three things happen: single writes, a folder made with its files as `mkdir -p` and a
generator do, and a branch switch.
FOLDER is where the tree is made, by default a file system in memory; 100 MB are enough.
"""

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from watchfiles import awatch

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import watch_registrations
from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Interest, Watcher
from pilotfish.system.watching.inotify import open_inotify_watcher

SOURCES, SOURCE_FOLDERS = 40_000, 2_238
PACKAGES, PACKAGE_FOLDERS = 60_000, 10_018
IDLE_SECONDS = 5.0
WRITES = 100
SWITCHED = 5_000
MADE_FOLDERS, MADE_FILES = 30, 6
PATIENCE = 20.0


# --- What is watched ----------------------------------------------------------------------------------------------


def make_tree(root: Path) -> None:
    fill(root / "src", SOURCES, SOURCE_FOLDERS, ".py")
    fill(root / "node_modules", PACKAGES, PACKAGE_FOLDERS, ".js")
    (root / ".gitignore").write_text("*.log\n/build/\n")


def fill(top: Path, files: int, folders: int, suffix: str) -> None:
    """Folders three deep with their files spread over them."""
    made = [top]
    top.mkdir(parents=True)
    while len(made) < folders:
        parent = made[len(made) // 12]
        folder = parent / f"folder{len(made)}"
        folder.mkdir()
        made.append(folder)
    for number in range(files):
        (made[number % folders] / f"file{number}{suffix}").touch()


# --- Who watches --------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """Paths that a watcher reported, and a signal for each new one."""

    paths: set[str] = field(default_factory=set[str])
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, paths: set[str]) -> None:
        self.paths |= paths
        self.told.set()

    async def until(self, wanted: set[str]) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                while not wanted <= self.paths:
                    self.told.clear()
                    await self.told.wait()
        except TimeoutError:
            return False
        return True


Contestant = Callable[[Path, Seen], AbstractAsyncContextManager[Watcher | None]]


@asynccontextmanager
async def pilotfish(root: Path, seen: Seen) -> AsyncGenerator[Watcher]:
    interest = Interest((AbsPath(str(root)),), tuple(watch_registrations({"watchers": [{"globPattern": "**/*"}]})))
    async with open_inotify_watcher(WallClock()) as watcher, asyncio.TaskGroup() as tasks:
        await watcher.cover(interest)

        async def report() -> None:
            while True:
                await watcher.wait_for_changes()
                seen.add({str(found.path) for found in await watcher.drain()})

        task = tasks.create_task(report())
        yield watcher
        task.cancel()


@asynccontextmanager
async def by_watchfiles(root: Path, seen: Seen) -> AsyncGenerator[None]:
    ready = asyncio.Event()

    async def report() -> None:
        batches = awatch(root, watch_filter=None, debounce=50, step=5, rust_timeout=50, yield_on_timeout=True)
        async for batch in batches:
            ready.set()
            seen.add({path for _, path in batch})

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(report())
        await ready.wait()
        yield
        task.cancel()


# --- What happens -------------------------------------------------------------------------------------------------


async def latencies(root: Path, seen: Seen) -> list[float]:
    """From a write to the report of it."""
    found: list[float] = []
    for number in range(WRITES):
        path = root / "src" / f"file{number * SOURCE_FOLDERS % SOURCES}.py"
        seen.paths.discard(str(path))
        started = time.perf_counter()
        path.write_text(str(number))
        if await seen.until({str(path)}):
            found.append(time.perf_counter() - started)
    return found


async def made_at_once(root: Path, seen: Seen) -> tuple[int, int]:
    """How many of the files were reported that were made right after the folders in which they are."""
    paths = {
        str(root / "src" / "made" / f"a{folder}" / "b" / "c" / f"file{number}.py")
        for folder in range(MADE_FOLDERS)
        for number in range(MADE_FILES)
    }

    def make() -> None:
        for path in sorted(paths):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).write_text("made")

    await asyncio.to_thread(make)
    await seen.until(paths)
    return len(paths & seen.paths), len(paths)


async def switched(root: Path, seen: Seen) -> tuple[float, int, int]:
    """Seconds from the end of a branch switch to the last report, and how many files were reported."""
    paths = sorted(map(str, (root / "src").rglob("file*.py")))[:SWITCHED]
    seen.paths.clear()

    def switch() -> None:
        for path in paths:
            os.unlink(path)
            Path(path).write_text("switched")

    await asyncio.to_thread(switch)
    started = time.perf_counter()
    await seen.until(set(paths))
    return time.perf_counter() - started, len(seen.paths & set(paths)), len(paths)


# --- The race -----------------------------------------------------------------------------------------------------


@dataclass
class Result:
    ready: float = 0.0
    watches: int = 0
    idle: float = 0.0
    latency: list[float] = field(default_factory=list[float])
    made: tuple[int, int] = (0, 0)
    switch: tuple[float, int, int] = (0.0, 0, 0)
    drain: float | None = None


async def race(contestant: Contestant, root: Path) -> Result:
    result, seen = Result(), Seen()
    shutil.rmtree(root / "src" / "made", ignore_errors=True)
    started = time.perf_counter()
    async with contestant(root, seen) as watcher:
        result.ready = time.perf_counter() - started
        result.watches = watches()
        busy = time.process_time()
        await asyncio.sleep(IDLE_SECONDS)
        result.idle = (time.process_time() - busy) / IDLE_SECONDS
        if watcher is not None:
            result.drain = statistics.median([await timed(watcher.drain) for _ in range(200)])
        result.latency = await latencies(root, seen)
        result.made = await made_at_once(root, seen)
        result.switch = await switched(root, seen)
    return result


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def watches() -> int:
    """inotify watches of this process, as the kernel counts them."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            with open(f"/proc/self/fdinfo/{number}") as lines:
                found += sum(line.startswith("inotify wd") for line in lines)
        except FileNotFoundError:
            continue
    return found


def main(folder: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        root = Path(name) / "tree"
        make_tree(root)
        folders = sum(len(folders) for _, folders, _ in os.walk(root)) + 1
        print(f"{SOURCES + PACKAGES:,} files in {folders:,} folders, {PACKAGES:,} files in node_modules; in {folder}\n")
        results = {
            "pilotfish": asyncio.run(race(pilotfish, root)),
            "watchfiles": asyncio.run(race(by_watchfiles, root)),
        }
    rows: dict[str, Callable[[Result], str]] = {
        "watches set": lambda one: f"{one.watches:,}",
        "set-up, ms": lambda one: f"{one.ready * 1e3:.0f}",
        f"idle CPU over {IDLE_SECONDS:.0f} s, %": lambda one: f"{one.idle * 100:.2f}",
        "write → report, ms, median": lambda one: f"{statistics.median(one.latency) * 1e3:.2f}",
        "write → report, ms, 99 %": lambda one: f"{sorted(one.latency)[int(len(one.latency) * 0.99)] * 1e3:.2f}",
        "catch-up before an answer, µs": lambda one: "–" if one.drain is None else f"{one.drain * 1e6:.0f}",
        "made with their folders, reported": lambda one: f"{one.made[0]} of {one.made[1]}",
        "branch switch, reported": lambda one: f"{one.switch[1]:,} of {one.switch[2]:,}",
        "branch switch, ms after its end": lambda one: f"{one.switch[0] * 1e3:.0f}",
    }
    print(f"{'':36}" + "".join(f"{name:>16}" for name in results))
    for name, shown in rows.items():
        print(f"{name:36}" + "".join(f"{shown(result):>16}" for result in results.values()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "/dev/shm")
