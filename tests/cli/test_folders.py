"""Which files of a folder are looked at."""

import os
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.system.ownership import top_of
from pilotfish.system.source_files import Skipped, files_below

pytestmark = pytest.mark.proves("CLI-1")

FILES = (
    "a.py", "build/x.py", "keep/build/y.py", "log/today.log", "log/keep.log", "node_modules/m/index.js",
    ".venv/lib/z.py", ".hidden/h.py", "src/gen/g.py", "src/b.py", "src/.gitignore", "vendor/v.go",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = Path(tmp_path.resolve())
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("/build/\n*.log\n!keep.log\n# comment\n")
    (root / "src" / ".gitignore").write_text("gen/\n")
    (root / "link.py").symlink_to(root / "a.py")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    return root


def below(folder: Path) -> list[str]:
    return [os.path.relpath(path, folder) for path in files_below(AbsPath(str(folder)))]


@pytest.mark.proves("WATCH-4")
def test_ignored_hidden_and_foreign_files_are_left_out(tree: Path) -> None:
    assert below(tree) == [".gitignore", "a.py", "keep/build/y.py", "log/keep.log", "src/.gitignore", "src/b.py"]


def test_what_is_left_out_is_known(tree: Path) -> None:
    skipped = Skipped()
    list(files_below(AbsPath(str(tree)), skipped))
    ignored = [os.path.relpath(path, tree) for path in skipped.ignored]
    assert ignored == [".hidden", ".venv", "build", "node_modules", "src/gen", "vendor"]
    assert [os.path.basename(path) for path in skipped.links] == ["link.py", "loop"]
    assert [os.path.basename(path) for path in skipped.special] == ["pipe.py"]
    list(files_below(AbsPath(str(tree / "nowhere")), skipped))
    assert skipped.unreadable == [str(tree / "nowhere")]


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [("gitdir: /r/.git/worktrees/one\n", []), ("gitdir: ../.git/modules/one\n", ["one/.git", "one/b.py"])],
    ids=["another worktree", "a submodule"],
)
def test_another_worktree_inside_is_left_out(pointer: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").write_text(pointer)
    (tmp_path / "one" / "b.py").touch()
    assert below(tmp_path) == expected
    assert "one/b.py" not in expected or below(tmp_path / "one") == [".git", "b.py"]


def test_the_rules_of_the_folders_above_hold_too(tree: Path) -> None:
    assert below(tree / "log") == ["keep.log"]
    assert below(tree / "src") == [".gitignore", "b.py"]


def test_a_folder_that_cannot_be_listed_is_empty(tmp_path: Path) -> None:
    assert below(tmp_path / "nowhere") == []


def test_the_workspace_is_the_worktree_around_the_current_folder(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert top_of(str(tree / "src")) == str(tree)
    monkeypatch.setenv("HOME", str(tree))
    assert top_of(str(tree / "src")) == str(tree / "src")
