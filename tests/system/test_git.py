"""Why git says nothing of a folder."""

import os
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.system.git import why_silent

pytestmark = pytest.mark.proves("CLI-1")


def test_a_repository_of_another_user_is_named_as_git_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = AbsPath(str(tmp_path / "src"))
    os.mkdir(inside)
    assert why_silent(inside, "git") == f"{inside} is not in a git repository."
    (tmp_path / ".git").mkdir()
    assert why_silent(inside, "git") == f"git cannot list the changes of {inside}."
    assert why_silent(inside, None) == "git was not found."
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    other = f"{tmp_path} belongs to another user, so git does not read it (dubious ownership)."
    assert why_silent(inside, "git") == other


def test_without_a_repository_it_does_not_matter_that_every_git_lies_inside_of_the_folder() -> None:
    assert why_silent(AbsPath("/"), None) == "/ is not in a git repository."
