"""`--apply` on the command line: the files are written, and without it nothing is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.servers.real import User, make_user, require

pytestmark = [pytest.mark.server("basedpyright"), pytest.mark.proves("CLI-1", "OPS-4", "C105")]

GREETING = "def greet(name: str) -> str:\n    return name\n"
MAIN = 'from greeting import greet\n\nprint(greet("x"))\n'


@pytest.fixture
def user(tmp_path: Path) -> User:
    require(["basedpyright"])
    made = make_user(tmp_path, ["basedpyright"], {}, trusted=False)
    (made.workspace / "greeting.py").write_text(GREETING)
    (made.workspace / "main.py").write_text(MAIN)
    return made


def run(user: User, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pilotfish", *words],
        cwd=user.workspace,
        env={"PATH": os.environ["PATH"], **user.environment, NO_DAEMON: "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def files(user: User) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(user.workspace.glob("*.py"))}


def test_a_rename_is_shown_and_then_written(user: User) -> None:
    shown = run(user, "rename", "greeting.py:1:5", "hello")
    assert (shown.returncode, files(user)) == (0, {"greeting.py": GREETING, "main.py": MAIN}), shown
    assert "+def hello(name: str) -> str:" in shown.stdout
    applied = run(user, "rename", "greeting.py:1:5", "hello", "--apply")
    assert applied.returncode == 0, applied
    assert files(user) == {
        "greeting.py": GREETING.replace("greet", "hello"),
        "main.py": 'from greeting import hello\n\nprint(hello("x"))\n',
    }


def test_a_file_is_moved_and_its_imports_follow(user: User) -> None:
    applied = run(user, "rename-file", "greeting.py", "welcome.py", "--apply")
    assert applied.returncode == 0, applied
    assert files(user) == {"main.py": MAIN.replace("greeting", "welcome"), "welcome.py": GREETING}
