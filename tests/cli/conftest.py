"""What the tests of the command line share: a folder that is the current one, and a user without any settings."""

from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from support.scripted_workspace import ScriptedWorkspace


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
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def workspace(folder: Path) -> ScriptedWorkspace:
    return ScriptedWorkspace(AbsPath(str(folder)))
