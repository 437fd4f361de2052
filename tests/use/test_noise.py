"""What somebody reads whose project has asked for no checks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.servers.real import make_user, require

SCRIPT = """\
import sys


def read(path):
    with open(path) as file:
        return [line.split(",") for line in file]


def total(rows, column):
    return sum(float(row[column]) for row in rows)


if __name__ == "__main__":
    rows = read(sys.argv[1])
    print(total(rows, int(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.server("basedpyright")
@pytest.mark.proves("FMT-5")
def test_a_script_without_types_is_followed_by_nothing(tmp_path: Path) -> None:
    require(["basedpyright"])
    config = {"timing": {"diagnosticsWaitTimeoutMs": 60_000}, "feedback": {"preset": "pi"}}
    user = make_user(tmp_path, ["basedpyright"], config, trusted=False)
    (user.workspace / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "pilotfish", "touched", "script.py", "--kind", "write", "--json"],
        cwd=user.workspace,
        env={**user.environment, NO_DAEMON: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert (told["text"], told["state"]) == ("", "fresh")
