"""Nothing is left, whoever is killed with `kill -9`: daemon, supervisor, server, hook or proxy, at any phase."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HAVOC = Path(__file__).with_name("havoc.py")

BOUND_SECONDS = 3600
"""For a nightly run of thousands of cycles; 200 take less than a minute."""


@pytest.mark.leak
@pytest.mark.slow
@pytest.mark.timeout(BOUND_SECONDS)
@pytest.mark.proves("P1", "P2", "P23", "F10", "F12", "F13", "F14", "F65", "F72", "F82", "POOL-5")
def test_no_kill_at_any_phase_leaves_anything(pytestconfig: pytest.Config) -> None:
    cycles = int(str(pytestconfig.getoption("--cycles")))
    done = subprocess.run(
        [sys.executable, str(HAVOC), str(cycles), "1"],
        env={**os.environ, "PYTHONPATH": str(HAVOC.parents[1])},
        capture_output=True,
        timeout=BOUND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["faults"] == [], done.stderr.decode()
