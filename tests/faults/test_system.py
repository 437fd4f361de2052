"""The system below gives way: no disk, no descriptors, no folder, another clock. The daemon answers or says why."""

import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pilotfish import open_blocking
from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from pilotfish.config.places import user_places
from pilotfish.ipc.rendezvous import connect
from pilotfish.library.workspace import computer
from pilotfish.service.changes.journal import PLAN, Plan, new_journal
from pilotfish.surfaces.cli.main import log_crash
from support.daemon.homes import WAIT_SECONDS, DaemonHome, daemon_home, ended, fake_server
from support.services.real import real_service

TOUCH = {"paths": ["a.x"], "kind": "edit"}


@pytest.fixture
def home(tmp_path: Path) -> Any:
    with daemon_home(tmp_path) as made:
        made.write("a.x", "bad\n")
        yield made


def start_limited(home: DaemonHome, limit: int, most: int) -> None:
    """Start the daemon as a child of a shell with `ulimit`."""
    subprocess.run(
        [sys.executable, "-m", "pilotfish", "daemon", "start"],
        env=home.environment,
        cwd=home.root,
        preexec_fn=lambda: resource.setrlimit(limit, (most, most)),
        check=True,
        capture_output=True,
        timeout=WAIT_SECONDS,
    )


@pytest.mark.proves("F57", "F91")
def test_a_daemon_that_cannot_write_a_byte_to_disk_answers(home: DaemonHome) -> None:
    start_limited(home, resource.RLIMIT_FSIZE, 0)
    with home.link() as link:
        feedback = link.request("touched", TOUCH)
        assert "bad word" in feedback["text"]
    assert len(home.daemons()) == 1


@pytest.mark.proves("F61")
def test_a_daemon_without_descriptors_makes_clients_wait_and_lives(home: DaemonHome) -> None:
    start_limited(home, resource.RLIMIT_NOFILE, 48)
    crowd = [connect(home.place, 10.0) for _ in range(60)]
    (daemon,) = home.daemons()
    for end in crowd:
        end.close()
    with home.link() as link:
        assert "bad word" in link.request("touched", TOUCH)["text"]
    assert home.daemons() == [daemon]


@pytest.mark.proves("F56")
def test_a_daemon_has_no_folder_that_could_be_removed(home: DaemonHome) -> None:
    gone = home.root / "gone"
    gone.mkdir()
    subprocess.run(
        [sys.executable, "-m", "pilotfish", "daemon", "start"],
        env=home.environment,
        cwd=gone,
        check=True,
        capture_output=True,
    )
    gone.rmdir()
    (daemon,) = home.daemons()
    assert os.readlink(f"/proc/{daemon}/cwd") == "/"
    with home.link() as link:
        assert "bad word" in link.request("touched", TOUCH)["text"]


@pytest.mark.proves("F55")
def test_another_folder_in_place_of_a_root_gets_nothing_of_the_old_one(home: DaemonHome) -> None:
    with home.link() as link:
        assert "bad word" in link.request("touched", TOUCH)["text"]
        shutil.rmtree(home.root)
        gone = link.request("ask", {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1})
        assert (gone["ok"], gone["meta"]["state"]) == (False, "unavailable")
        home.root.mkdir()
        home.write("a.x", "good\n")
    with home.link() as link:
        feedback = link.request("touched", TOUCH)
        assert (feedback["text"], feedback["state"]) == ("", "fresh")


@pytest.mark.anyio
@pytest.mark.proves("F86", "P26")
async def test_a_clock_that_jumps_by_hours_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", _jumping(random.Random(1), time.time))
    async with real_service(tmp_path, {"lsp": {"toy": fake_server("answering")}}) as running:
        for number in range(20):
            bad = number % 2 == 0
            running.write("a.x", f"{'bad' if bad else 'good'} {number}\n")
            feedback = await running.service.touched(Touch(("a.x",), "edit"), running.client)
            assert feedback.state is State.FRESH
            assert ("bad word" in feedback.text) is bad
        assert running.entry("toy").starts == 1


def _jumping(chance: random.Random, clock: Callable[[], float]) -> Callable[[], float]:
    return lambda: clock() + chance.choice((-3600.0, 0.0, 3600.0))


@pytest.mark.proves("T44")
def test_nobody_else_may_read_what_we_leave_on_disk(home: DaemonHome) -> None:
    before = os.umask(0)
    try:
        with home.link() as link:
            link.request("touched", TOUCH)
            state = Path(home.environment["PILOTFISH_HOME"])
            found = [state, *state.rglob("*")]
            open_to_others = [str(path) for path in found if not path.is_symlink() and path.lstat().st_mode & 0o077]
    finally:
        os.umask(before)
    assert len(found) > 3
    assert open_to_others == []


@pytest.mark.proves("T44")
@pytest.mark.parametrize("writer", ["journal", "crash"])
def test_whatever_is_written_first_makes_the_state_private(tmp_path: Path, writer: str) -> None:
    variables = {"HOME": str(tmp_path), "PILOTFISH_HOME": str(tmp_path / "above" / "state")}
    before = os.umask(0)
    try:
        if writer == "crash":
            log_crash(ValueError("oops"), variables)
        else:
            with new_journal(user_places(variables).journals) as journal:
                journal.write(PLAN, Plan((), (), ()))
    finally:
        os.umask(before)
    found = list(tmp_path.rglob("*"))
    assert len(found) > 3
    assert [path for path in found if path.lstat().st_mode & 0o077] == []


@pytest.mark.proves("F66", "A16.5")
def test_a_daemon_that_is_told_to_stop_ends_with_its_servers(home: DaemonHome) -> None:
    with home.link() as link:
        link.request("touched", TOUCH)
        processes = list(home.processes())
        assert len(processes) > 2
    with home.control() as control:
        control.request("stop")
    assert all(map(ended, processes))


@pytest.mark.proves("F67")
def test_a_server_outlives_the_thread_that_asked_for_it(home: DaemonHome) -> None:
    """A signal at the death of a parent is sent, on Linux, when the thread ends that forked."""
    with ExitStack() as stack:
        with ThreadPoolExecutor(1) as starter:
            opening = open_blocking(home.root, shell=computer(home.environment))
            workspace = starter.submit(stack.enter_context, opening).result()
            assert "bad word" in starter.submit(workspace.after_edit, "a.x").result().text
        home.write("a.x", "bad again\n")
        assert "bad word" in workspace.after_edit("a.x").text
        (row,) = [row for row in workspace.status().rows if row.server_id == "toy"]
        assert row.instances[0].restarts == 0
