"""Nothing is left when somebody is killed with `kill -9`, at whatever moment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.left_behind import no_task_left_behind, nothing_left_behind

__all__ = ["no_task_left_behind", "nothing_left_behind"]

ARENA = Path(__file__).with_name("arena.py")

BOUND_SECONDS = 600
"""For a nightly run of thousands of cycles; 200 take a few seconds."""


@pytest.mark.leak
@pytest.mark.proves("P1", "P2", "F10", "F12", "F13", "F14", "F65", "POOL-5", "C34")
@pytest.mark.parametrize(
    ("victim", "share"),
    [
        pytest.param("owner", 1, id="owner"),
        pytest.param("owner with a forked copy", 4, id="owner with a forked copy"),
        pytest.param("supervisor", 4, id="supervisor"),
        pytest.param("server", 4, id="server"),
    ],
)
def test_nothing_is_left_after_kill_9_of_the(victim: str, share: int, pytestconfig: pytest.Config) -> None:
    cycles = max(1, int(str(pytestconfig.getoption("--cycles"))) // share)
    environment = {**os.environ, "PYTHONPATH": str(ARENA.parents[1])}
    done = subprocess.run(
        [sys.executable, str(ARENA), victim, str(cycles)],
        capture_output=True,
        env=environment,
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["faults"] == [], done.stderr.decode()
