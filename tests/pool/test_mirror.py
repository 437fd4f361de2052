"""The folder in which one worktree after the other is shown to a server."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.pool import mirror as mirror_module
from pilotfish.pool.mirror import Mirror, Tree, Unshareable
from pilotfish.protocol.watching import Change

pytestmark = pytest.mark.proves("POOL-6")


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Tree, Tree]:
    for name in ("one", "two"):
        (tmp_path / name / "pack" / "__pycache__").mkdir(parents=True)
        (tmp_path / name / "pack" / "a.py").write_text("a = 1\n")
        (tmp_path / name / "pack" / "b.py").write_text("b = 1\n")
        (tmp_path / name / ".venv").symlink_to(tmp_path / "environment")
    (tmp_path / "environment").mkdir()
    return Tree(AbsPath(str(tmp_path / "one"))), Tree(AbsPath(str(tmp_path / "two")))


def shown(mirror: Mirror) -> dict[str, str]:
    found = (Path(folder) / name for folder, _, names in os.walk(mirror.folder) for name in names)
    return {str(path.relative_to(mirror.folder)): path.read_text() for path in found}


def empty_folder(tree: Path) -> None:
    (tree / "empty").mkdir()


def deleted(tree: Path) -> None:
    (tree / "pack" / "b.py").unlink()


def rewritten(tree: Path) -> None:
    (tree / "pack" / "a.py").write_text("a = 2\n")


def folder_for_file(tree: Path) -> None:
    deleted(tree)
    (tree / "pack" / "b.py").mkdir()
    (tree / "pack" / "b.py" / "c.py").write_text("c = 1\n")


def linked(tree: Path) -> None:
    deleted(tree)
    (tree / "pack" / "b.py").symlink_to("a.py")


def moved_away(tree: Path) -> None:
    (tree / "pack").rename(tree / "other")


DIFFERENCES = [empty_folder, deleted, rewritten, folder_for_file, linked, moved_away]


@pytest.mark.parametrize("differ", DIFFERENCES, ids=lambda one: one.__name__)
def test_a_folder_goes_from_one_worktree_to_the_other_and_back(
    differ: Callable[[Path], None], trees: tuple[Tree, Tree], tmp_path: Path
) -> None:
    one, two = trees
    differ(tmp_path / "two")
    mirror = Mirror(AbsPath(str(tmp_path / "shown")), one)
    for tree in (two, one, two):
        assert mirror.become(tree) != []
        assert tree.entries() == Tree(mirror.folder).entries()
        assert mirror.become(tree) == []


def test_only_what_differs_is_written_and_told(trees: tuple[Tree, Tree], tmp_path: Path) -> None:
    one, two = trees
    rewritten(tmp_path / "two")
    mirror = Mirror(AbsPath(str(tmp_path / "shown")), one)
    kept = os.stat(os.path.join(mirror.folder, "pack/b.py"))
    (change,) = mirror.become(two)
    assert (change.path, change.change) == (os.path.join(mirror.folder, "pack/a.py"), Change.CHANGED)
    assert os.stat(os.path.join(mirror.folder, "pack/b.py")) == kept


def test_a_text_that_comes_back_has_a_time_that_it_never_had(trees: tuple[Tree, Tree], tmp_path: Path) -> None:
    one, two = trees
    rewritten(tmp_path / "two")
    mirror = Mirror(AbsPath(str(tmp_path / "shown")), one)
    times: list[int] = []
    for tree in (two, one) * 5:
        mirror.become(tree)
        times.append(os.stat(os.path.join(mirror.folder, "pack/a.py")).st_mtime_ns)
    assert times == sorted(set(times))


def test_a_change_of_the_worktree_that_is_shown_is_followed(trees: tuple[Tree, Tree], tmp_path: Path) -> None:
    one, _ = trees
    mirror = Mirror(AbsPath(str(tmp_path / "shown")), one)
    rewritten(tmp_path / "one")
    deleted(tmp_path / "one")
    (tmp_path / "one" / "new").mkdir()
    (tmp_path / "one" / "new" / "c.py").write_text("c = 1\n")
    mirror.follow(one, [AbsPath(f"{one.top}/{name}") for name in ("pack/a.py", "pack/b.py", "new/c.py")])
    assert shown(mirror) == {"pack/a.py": "a = 2\n", "new/c.py": "c = 1\n"}


def test_another_worktree_inside_is_not_shown(trees: tuple[Tree, Tree], tmp_path: Path) -> None:
    one, two = trees
    inside = tmp_path / "one" / "trees" / "three"
    inside.mkdir(parents=True)
    (inside / ".git").write_text("gitdir: /r/.git/worktrees/three\n")
    (inside / "c.py").touch()
    mirror = Mirror(AbsPath(str(tmp_path / "shown")), two)
    mirror.become(one)
    mirror.follow(one, [AbsPath(str(inside / "c.py"))])
    assert os.listdir(os.path.join(mirror.folder, "trees")) == []


def other_environment(tree: Path) -> None:
    (tree / ".venv").unlink()
    (tree / ".venv").mkdir()


def link_to_itself(tree: Path) -> None:
    (tree / "link.py").symlink_to(tree / "pack" / "a.py")


def link_out(tree: Path) -> None:
    (tree / "link.py").symlink_to("../elsewhere.py")


def many_files(tree: Path) -> None:
    for number in range(4):
        (tree / f"{number}.py").touch()


@pytest.mark.parametrize(
    "differ", [other_environment, link_to_itself, link_out, many_files], ids=lambda one: one.__name__
)
def test_what_would_mean_something_else_there_is_not_shown(
    differ: Callable[[Path], None], trees: tuple[Tree, Tree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_module, "MAX_DIFFERENT", 3)
    one, two = trees
    mirror = Mirror(AbsPath(str(tmp_path / "shown")), one)
    differ(tmp_path / "two")
    with pytest.raises(Unshareable):
        mirror.become(two)
    assert mirror.become(one) == []


def test_what_a_killed_process_has_left_is_removed_by_the_next(trees: tuple[Tree, Tree], tmp_path: Path) -> None:
    folders = tmp_path / "shown"
    argv = [sys.executable, "-c", "import os; print(os.getpid())"]
    gone = subprocess.run(argv, capture_output=True, text=True, check=True)
    left, used = folders / f"a-{gone.stdout.strip()}", folders / f"b-{os.getpid()}"
    for folder in (left, used):
        (folder / "pack").mkdir(parents=True)
    Mirror(AbsPath(str(folders / f"c-{os.getpid()}")), trees[0])
    assert (left.exists(), used.exists()) == (False, True)
