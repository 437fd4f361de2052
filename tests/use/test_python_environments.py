"""A project whose packages are in an environment: every Python server finds them, and no program of it runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.servers.real import User, make_user, require

pytestmark = [pytest.mark.slow, pytest.mark.proves("TRUST-8")]

CONFIG = {"timing": {"diagnosticsWaitTimeoutMs": 60_000}}


def make_environment(folder: Path, trap: Path) -> None:
    """An environment with one package, whose interpreter tells when it is started."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    (packages / "counting").mkdir(parents=True)
    (packages / "counting" / "py.typed").touch()
    (packages / "counting" / "__init__.py").write_text("def count(text: str) -> int:\n    return len(text)\n")
    (packages / "evil.pth").write_text(f"import os; open({str(trap)!r}, 'w')\n")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    (folder / "bin").mkdir()
    for name in ("python", "python3"):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n: > '{trap}'\nexit 1\n")
        program.chmod(0o755)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    return tmp_path / "sprung"


def user_with(tmp_path: Path, server: str, *, trusted: bool) -> User:
    require([server])
    user = make_user(tmp_path, [server], CONFIG, trusted=trusted)
    (user.workspace / "pyproject.toml").write_text('[project]\nname = "a"\nversion = "1"\n')
    (user.workspace / "a.py").write_text("import counting\n\nname: str = counting.count('a')\n")
    return user


def pilotfish(user: User, *words: str, **variables: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "pilotfish", *words, "--json"],
        cwd=user.workspace,
        env={**user.environment, **variables, NO_DAEMON: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "server", [pytest.param(name, marks=pytest.mark.server(name)) for name in ("basedpyright", "ty", "zuban")]
)
@pytest.mark.parametrize("activated", [False, True], ids=["in the project", "activated"])
def test_the_packages_are_found_without_trust_and_nothing_runs(
    tmp_path: Path, trap: Path, server: str, activated: bool
) -> None:
    user = user_with(tmp_path, server, trusted=False)
    folder = tmp_path / "elsewhere" if activated else user.workspace / ".venv"
    make_environment(folder, trap)
    answer = pilotfish(user, "check", "a.py", **({"VIRTUAL_ENV": str(folder)} if activated else {}))
    assert [(one["line"], one["severity"]) for one in answer["data"]["a.py"]] == [(3, "error")], answer
    assert not trap.exists()


@pytest.mark.server("pyrefly")
def test_a_server_that_needs_trust_finds_them_too(tmp_path: Path, trap: Path) -> None:
    user = user_with(tmp_path, "pyrefly", trusted=True)
    make_environment(tmp_path / "elsewhere", trap)
    answer = pilotfish(user, "check", "a.py", VIRTUAL_ENV=str(tmp_path / "elsewhere"))
    assert [(one["line"], one["severity"]) for one in answer["data"]["a.py"]] == [(3, "error")], answer


@pytest.mark.server("jedi")
def test_definitions_lead_into_the_packages(tmp_path: Path, trap: Path) -> None:
    user = user_with(tmp_path, "jedi", trusted=True)
    make_environment(tmp_path / "elsewhere", trap)
    answer = pilotfish(user, "definition", "a.py:3:22", VIRTUAL_ENV=str(tmp_path / "elsewhere"))
    assert [one["path"].endswith("counting/__init__.py") for one in answer["data"]] == [True], answer
