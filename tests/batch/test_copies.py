"""Copies of a hostile workspace, and patches in them: nothing is written outside of the copy (T29)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pilotfish.batch.copies import duplicate, make_copy, packed, unpack
from pilotfish.batch.judge import CopiedFiles
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from support.files.repositories import commit_everything, run_git

pytestmark = pytest.mark.proves("T29", "DIAG-9")

GIT = shutil.which("git")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def copied(root: Path, target: Path, base: str | None) -> Path:
    target.mkdir()
    make_copy(AbsPath(str(root)), AbsPath(str(target)), base, GIT)
    return target


@pytest.mark.proves("A4.1")
def test_what_is_ignored_is_not_copied_through_a_link_of_the_base(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    commit_everything(root)
    (root / "out").unlink()
    (root / "out").mkdir()
    (root / "out" / "usercustomize.py").write_text("evil\n")
    (root / ".gitignore").write_text("usercustomize.py\n")
    run_git(root, "add", "--all", "--force")
    run_git(root, "commit", "--quiet", "--message", "b")
    copy = copied(root, tmp_path / "copy", "HEAD~1")
    assert (copy / "out").is_symlink()
    assert list(outside.iterdir()) == []


@pytest.mark.proves("A4.2")
@pytest.mark.parametrize("base", ["--index-output=/nowhere/x", "-m", "--"])
def test_a_base_is_no_option_of_git(base: str, root: Path, tmp_path: Path) -> None:
    (root / "a.py").write_text("a\n")
    commit_everything(root)
    with pytest.raises(Refused, match="the name of a commit"):
        copied(root, tmp_path / "copy", base)


DEPTH = 1_200
"""Folders in each other: more than Python calls itself."""


@pytest.mark.proves("A9.3")
def test_a_deep_tree_is_copied(root: Path, tmp_path: Path) -> None:
    here = os.open(root, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (tmp_path / "another").mkdir()
    copy = copied(root, tmp_path / "copy", None)
    duplicate(AbsPath(str(copy)), AbsPath(str(tmp_path / "another")))
    for made in (root, copy, tmp_path / "another"):
        assert os.path.isdir(made / "d/d/d")
        subprocess.run(["rm", "-r", str(made)], check=True)


@pytest.mark.proves("A4.3")
def test_a_file_of_one_patch_is_a_folder_of_the_next_and_back(tmp_path: Path) -> None:
    files, file, inner = CopiedFiles(), AbsPath(str(tmp_path / "l")), AbsPath(str(tmp_path / "l" / "m" / "x.py"))
    for texts in ({file: "file"}, {inner: "inner"}, {file: "file"}, {inner: "inner"}, {}):
        for path in texts:
            assert files.base_text(path) is None
        files.move(texts)
        found = {path: Path(path).read_text() for path in (file, inner) if os.path.isfile(path)}
        assert found == texts
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_base_makes_room_for_a_folder(tmp_path: Path) -> None:
    file, inner = AbsPath(str(tmp_path / "l")), AbsPath(str(tmp_path / "l" / "x.py"))
    Path(file).write_text("base")
    files = CopiedFiles()
    files.move({inner: "inner", file: None})
    assert Path(inner).read_text() == "inner"
    files.move({})
    assert Path(file).read_text() == "base"


@pytest.mark.proves("T47")
def test_a_copy_is_packed_by_no_tar_that_a_project_brings_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, programs, copy, other = (tmp_path / name for name in ("ran", "programs", "copy", "other"))
    for folder in (programs, copy, other):
        folder.mkdir()
    for name in ("tar", "gzip"):
        (programs / name).write_text(f"#!/bin/sh\n: > {ran}\n")
        (programs / name).chmod(0o755)
    (copy / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TAR_OPTIONS", f"--use-compress-program={programs}/gzip")
    unpack(packed(AbsPath(str(copy))), AbsPath(str(other)))
    assert (other / "a.py").read_text() == "x = 1\n"
    assert not ran.exists()
