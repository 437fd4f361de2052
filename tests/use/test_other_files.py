"""A user of a hook: every other file that a change newly broke is told, after every kind of change."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from support.daemon.homes import DaemonHome
from support.servers.real import make_user, require
from support.services.real import only, real_service

pytestmark = [pytest.mark.slow, pytest.mark.server("ty"), pytest.mark.proves("DIAG-11", "FMT-7")]

PATIENT = {"timing": {"firstTouchTimeoutMs": 45_000, "diagnosticsWaitTimeoutMs": 45_000}}
LIB = "def total() -> int:\n    return 1\n\n\ndef count() -> int:\n    return 2\n"
USES_BOTH = "from package.lib import count, total\n\nprint(count(), total())\n"
WAS_BROKEN = "from package.lib import total\n\nprint(total(), missing_before)\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    require(["ty"])
    made = make_user(tmp_path, ["ty"], PATIENT, trusted=True)
    home = DaemonHome(made.workspace, dict(made.environment))
    (made.workspace / "package").mkdir()
    (made.workspace / "tests").mkdir()
    home.write("pyproject.toml", "")
    home.write("package/__init__.py", "")
    home.write("package/lib.py", LIB)
    home.write("package/near.py", USES_BOTH)
    home.write("tests/far.py", WAS_BROKEN)
    home.write("tests/unrelated.py", "print(another_missing)\n")
    try:
        yield home
    finally:
        home.kill_all()


def told(home: DaemonHome, kind: str, *names: str) -> str:
    """What is said, without the source lines."""
    event = {"files": [*names], "kind": kind, "cwd": str(home.root), "session": "one"}
    done = home.run_hook(json.dumps(event).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    return "\n".join(line for line in done.stdout.decode().splitlines() if not line.startswith("| "))


def test_an_edit_a_delete_and_a_move_tell_whom_they_broke(home: DaemonHome) -> None:
    told(home, "read", "package/lib.py")

    home.write("package/lib.py", LIB.replace("total", "sum_up"))
    text = told(home, "edit", "package/lib.py")
    assert "package/near.py" in text
    assert "tests/far.py" in text
    assert "missing" not in text
    assert "count" not in text

    home.write("package/lib.py", LIB)
    assert "<diagnostics" not in told(home, "edit", "package/lib.py")

    (home.root / "package/lib.py").unlink()
    text = told(home, "patch", "package/lib.py")
    assert text.count("package.lib") == len(("near", "far"))
    assert "missing" not in text

    home.write("package/moved.py", LIB)
    home.write("package/lib.py", LIB)
    assert "<diagnostics" not in told(home, "patch", "package/lib.py", "package/moved.py")

    (home.root / "package/lib.py").rename(home.root / "package/other.py")
    text = told(home, "patch", "package/lib.py", "package/other.py")
    assert text.count("package.lib") == len(("near", "far"))


@pytest.mark.anyio
async def test_when_the_last_error_of_a_project_is_gone_the_server_is_not_waited_for(tmp_path: Path) -> None:
    require(["ty"])
    async with real_service(tmp_path, {**only("ty"), **PATIENT}) as real:
        real.write("pyproject.toml", "")
        real.write("user.py", "import main\n")
        for text in ("x = 1\n", 'y: int = "a"\n', "z = 2\n"):
            real.write("main.py", text)
            feedback = await real.service.touched(Touch(("main.py",), "edit"), real.client)
        assert (feedback.text, feedback.state) == ("", State.FRESH)
        assert feedback.others is not None
        assert feedback.others.complete == "project"
