"""The fixture that holds every test to leaving nothing behind notices each kind of thing left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.left_behind import no_task_left_behind, nothing_left_behind

__all__ = ["no_task_left_behind", "nothing_left_behind"]

TESTS = """
import asyncio, os, subprocess, threading
import pytest
from support.left_behind import no_task_left_behind, nothing_left_behind

kept = []
pids = []

@pytest.fixture
def anyio_backend():
    return "asyncio"

def test_leaves_a_descriptor():
    kept.append(os.open(os.devnull, os.O_RDONLY))

def test_leaves_a_process():
    kept.append(subprocess.Popen(["sleep", "60"]))
    pids.append(kept[-1].pid)

def test_leaves_a_stray():
    environment = {**os.environ, "PILOTFISH_TREE": f"{os.getpid()}-x"}
    orphan = ["sh", "-c", "sleep 60 >/dev/null & echo $!"]
    pids.append(int(subprocess.run(orphan, env=environment, stdout=subprocess.PIPE).stdout))

def test_leaves_a_thread(monkeypatch):
    monkeypatch.setattr("support.left_behind.GONE_SECONDS", 0.01)
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, daemon=True, name="waiting").start()

@pytest.mark.anyio
async def test_leaves_a_task():
    kept.append(asyncio.create_task(asyncio.sleep(60)))

def test_cleans_up():
    with open(os.devnull):
        subprocess.run(["true"])

@pytest.mark.anyio
async def test_cleans_up_its_tasks():
    await asyncio.create_task(asyncio.sleep(0))

def test_abandons_work_that_does_not_end(monkeypatch):
    import trio
    monkeypatch.setattr("support.left_behind.GONE_SECONDS", 0.05)
    kept.append(threading.Event())

    async def abandon():
        with trio.move_on_after(0.01):
            await trio.to_thread.run_sync(kept[-1].wait, abandon_on_cancel=True)

    trio.run(abandon)

def test_abandons_work_that_ends_soon():
    import trio
    may_end = threading.Event()

    async def abandon():
        with trio.move_on_after(0.01):
            await trio.to_thread.run_sync(may_end.wait, abandon_on_cancel=True)

    trio.run(abandon)
    threading.Timer(0.2, may_end.set).start()

def test_leaves_a_native_thread_that_cleans_up():
    import _thread, time
    descriptor = os.open(os.devnull, os.O_RDONLY)
    _thread.start_new_thread(lambda: (time.sleep(0.2), os.close(descriptor)), ())

def teardown_module():
    for pid in pids:
        os.kill(pid, 9)
    for thing in kept:
        if isinstance(thing, subprocess.Popen):
            thing.wait()
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of tests that leave things behind."""
    path = tmp_path_factory.mktemp("leaking") / "test_leaking.py"
    path.write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--rootdir", path.parent, path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "COLUMNS": "200"},
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("test_leaves_a_descriptor", "descriptor"),
        ("test_leaves_a_process", "process"),
        ("test_leaves_a_stray", "process"),
        ("test_leaves_a_thread", "thread waiting"),
        ("test_leaves_a_task", "task"),
        ("test_abandons_work_that_does_not_end", "thread"),
    ],
)
def test_what_a_test_leaves_behind_fails_it(verdicts: str, test: str, said: str) -> None:
    (verdict,) = [
        row for row in verdicts.splitlines() if row.startswith("ERROR") and row.split()[1].endswith(f"::{test}")
    ]
    assert f"left behind: {said}" in verdict


@pytest.mark.parametrize(
    "test",
    [
        "test_cleans_up",
        "test_cleans_up_its_tasks",
        "test_abandons_work_that_ends_soon",
        "test_leaves_a_native_thread_that_cleans_up",
    ],
)
def test_a_test_that_cleans_up_passes(verdicts: str, test: str) -> None:
    rows = [row.split() for row in verdicts.splitlines() if row.startswith(("PASSED", "FAILED", "ERROR"))]
    assert [row[0] for row in rows if row[1].endswith(f"::{test}")] == ["PASSED"]
