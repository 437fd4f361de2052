"""A test leaves nothing behind: no process, descriptor, thread or task.

Import both fixtures into a `conftest.py` or a test module, and every test below it is held to that.
The look costs 0.3 ms per test, because only what is new since its beginning is examined.
"""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from pilotfish.system.process import TAG
from support.process_tree import GONE_SECONDS, environment, member, pids

IDLE_THREADS = ("AnyIO worker thread", "Trio thread")
"""Worker threads that wait for more work: anyio keeps its own until the loop ends, trio for ten seconds."""

LOOK_SECONDS = 0.01
"""Between two looks at a thread that is at work: nothing tells of a worker that becomes idle, or of a native one."""


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that ends with a process, descriptor, thread or task that it did not begin with."""
    if "anyio_backend" in request.fixturenames:
        request.getfixturevalue("no_task_left_behind")
    if sys.platform != "linux":  # what there is of each is listed in `/proc`
        yield
        return
    processes, descriptors, threads, native = pids(), _descriptors(), set(threading.enumerate()), _native_threads()
    yield
    left = _new_threads(threads)
    _wait_for_native_threads(native)
    left += [f"process {member(pid)}" for pid in pids() - processes if _ours(pid)]
    left += _new_descriptors(descriptors)
    if left:
        pytest.fail("left behind: " + "; ".join(left), pytrace=False)


@pytest.fixture
async def no_task_left_behind() -> AsyncIterator[None]:
    """Fail a test whose loop ends with a task that was not there before; with trio there cannot be one."""
    before = _tasks()
    yield
    left = [repr(task) for task in _tasks() - before if not task.done() and "TestRunner" not in repr(task.get_coro())]
    if left:
        pytest.fail("left behind: task " + ", ".join(left), pytrace=False)


def _ours(pid: int) -> bool:
    """Whether a process is a descendant of this one, or a stray of one of its trees."""
    if environment(pid).get(TAG, "").startswith(f"{os.getpid()}-"):
        return True
    ancestor = member(pid)
    while ancestor is not None and ancestor.parent != os.getpid():
        ancestor = member(ancestor.parent)
    return ancestor is not None


def _new_descriptors(before: set[int]) -> list[str]:
    new = _descriptors() - before
    if new:
        gc.collect()  # the frames of an exception may hold one until now; one that is lost for good warns, and fails
        new &= _descriptors()
    return [f"descriptor {number} ({_target(number)})" for number in sorted(new)]


def _descriptors() -> set[int]:
    numbers = {int(name) for name in os.listdir("/proc/self/fd")}
    return {number for number in numbers if _target(number)}  # without the one that listed them


def _target(number: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:
        return ""


def _new_threads(before: set[threading.Thread]) -> list[str]:
    """Threads that are new, and did not end when waited for."""
    new = [thread for thread in set(threading.enumerate()) - before if not _is_over(thread)]
    return [f"thread {thread.name}" for thread in new if not _gets_over(thread)]


def _gets_over(thread: threading.Thread) -> bool:
    """Wait for the end of its work: a worker of trio has the name of its work until then, and lives on idle."""
    deadline = time.monotonic() + GONE_SECONDS
    while not _is_over(thread) and time.monotonic() < deadline:
        thread.join(LOOK_SECONDS)
    return _is_over(thread)


def _native_threads() -> int:
    """How many threads there are that Python has not started."""
    return len(os.listdir("/proc/self/task")) - len(threading.enumerate())


def _wait_for_native_threads(before: int) -> None:
    """Watchfiles' own thread gives back what it holds after the watcher is gone, and nothing can wait for that."""
    deadline = time.monotonic() + GONE_SECONDS
    while _native_threads() > before and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _is_over(thread: threading.Thread) -> bool:
    return not thread.is_alive() or thread.name.startswith(IDLE_THREADS)


def _tasks() -> set[asyncio.Task[object]]:
    try:
        return asyncio.all_tasks()
    except RuntimeError:
        return set()  # another loop than asyncio's
