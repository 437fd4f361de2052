"""What the tests of the command line share: a folder that is the current one, and a user without any settings.

Verbs run without the daemon, which is the quickest way to what they print. Tests of what stands between them and their
servers ask for `by_daemon`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.daemon.homes import no_daemon_left
from support.services.cli_workspace import ScriptedWorkspace


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a git worktree with one source file."""
    root = Path(tmp_path.resolve()) / "project"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text("def greet(name):\n    return name\n")
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PILOTFISH_HOME", str(home / "pilotfish"))
    monkeypatch.setenv(NO_DAEMON, "1")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def by_daemon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Verbs use the daemon, and after the test nothing of it is there."""
    monkeypatch.delenv(NO_DAEMON)
    with no_daemon_left(os.environ["PILOTFISH_HOME"]):
        yield


@pytest.fixture
def workspace(folder: Path) -> ScriptedWorkspace:
    return ScriptedWorkspace(AbsPath(str(folder)))
