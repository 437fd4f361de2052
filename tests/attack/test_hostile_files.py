"""Files of a repository that we parse ourselves: whatever they hold costs that file alone (T43, P33)."""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import pilotfish
from pilotfish.library.workspace import computer
from support.servers.real import User, make_user

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T43")]

SITE = ".venv/lib/python3.11/site-packages"
VENV = {".venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n", f"{SITE}/a/__init__.py": ""}

HOSTILE: Mapping[str, Mapping[str, str]] = {
    "key of many parts": {"pyproject.toml": "a." * 20_000 + "a = 1\n"},
    "key of many quoted parts": {"pyproject.toml": '"a".' * 20_000 + "a = 1\n"},
    "key of many parts in a table": {"ruff.toml": "x = {" + "a." * 20_000 + "a = 1}\n"},
    "header of many parts": {"pyproject.toml": "[" + "a." * 20_000 + "a]\n"},
    "long integer": {"pyproject.toml": "a = " + "9" * 5_000 + "\n"},
    "deep lists": {"pyproject.toml": "a = " + "[" * 3_000 + "\n", "Cargo.toml": "a = " + "[" * 3_000},
    "deep tables": {"pyproject.toml": "a = " + "{a = " * 3_000 + "\n"},
    "deep JSON": {"package.json": '{"workspaces": ' + "[" * 90_000, "pyrightconfig.json": "[" * 90_000},
    "NUL in a name": {"pyproject.toml": '[project]\nname = "a\\u0000b"\n[tool.poetry]\nname = "a\\u0000b"\n'},
    "NUL in .venv": {".venv": "/tmp/a\0b\n"},
    "NUL in .pdm-python": {".pdm-python": "/tmp/a\0b/bin/python\n"},
    "NUL in a .pth file": {**VENV, f"{SITE}/a.pth": "/tmp/a\0b\n"},
    "NUL in an editable install": {
        **VENV,
        f"{SITE}/a.pth": "import __editable___a_finder",
        f"{SITE}/__editable___a_finder.py": "MAPPING = {'a': '/tmp/a\\x00b/a'}\n",
    },
    "NUL in pyvenv.cfg": {**VENV, ".venv/pyvenv.cfg": "home = /usr/b\0in\nversion = 3.11.2\n"},
    "long version": {**VENV, ".venv/pyvenv.cfg": "home = /usr/bin\nversion = " + "9" * 5_000 + ".1\n"},
    "NUL in an extended file": {"pyrightconfig.json": '{"extends": "a\\u0000b.json"}'},
}


@pytest.fixture
def user(tmp_path: Path) -> User:
    return make_user(tmp_path, ["basedpyright", "ruff"], {}, trusted=False)


def plant(workspace: Path, files: Mapping[str, str]) -> None:
    (workspace / "a.py").write_text("x: str = 1\n")
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def judged(user: User) -> str:
    """What is said of a file with an error, by a check and after an edit."""
    (user.workspace / "a.py").write_text("x: str = 1\n")
    async with pilotfish.open(user.workspace, shell=computer(user.environment)) as workspace:
        answer = await workspace.check("a.py")
        told = await workspace.after_edit("a.py")
    assert "fault in pilotfish" not in f"{answer} {told}"
    return str(answer)


@pytest.mark.proves("A8.1", "A9.1", "A17.3")
@pytest.mark.slow
@pytest.mark.server("basedpyright", "ruff")
@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE)
async def test_a_file_that_cannot_be_read_costs_that_file_alone(files: Mapping[str, str], user: User) -> None:
    plant(user.workspace, files)
    assert "reportAssignmentType" in await judged(user)


@pytest.mark.proves("A9.2")
@pytest.mark.slow
@pytest.mark.server("basedpyright", "ruff")
@pytest.mark.parametrize("name", ["long integer", "NUL in .venv", "long version"])
def test_the_doctor_survives_them(name: str, user: User) -> None:
    plant(user.workspace, HOSTILE[name])
    with deep(user.workspace):
        command = [sys.executable, "-m", "pilotfish", "doctor"]
        done = subprocess.run(
            command, cwd=user.workspace, env={**user.environment}, capture_output=True, text=True, check=False
        )
    assert f"Workspace {user.workspace}" in done.stdout, done
    assert "Traceback" not in done.stderr


@pytest.mark.proves("A9.3")
@pytest.mark.slow
@pytest.mark.server("basedpyright", "ruff")
async def test_folders_that_lie_in_each_other_without_end_stop_nobody(user: User) -> None:
    with deep(user.workspace):
        assert "reportAssignmentType" in await judged(user)


@contextmanager
def deep(workspace: Path) -> Generator[None]:
    """With more folders in each other than Python calls itself."""
    here = os.open(workspace, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        yield
    finally:
        subprocess.run(["rm", "-r", str(workspace / "d")], check=True)
