"""Workspaces in the process of the command line, without a language server on the machine."""

import os
from pathlib import Path

import pytest

from pilotfish.errors import Code
from pilotfish.library.blocking import open_blocking
from pilotfish.service.check_answer import CheckEvent, CheckRequest, FilesToCheck

pytestmark = pytest.mark.proves("REG-5")


def test_a_missing_server_is_told_for_code_and_not_for_documents(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder / "nowhere"))
    for name in ("a.go", "README.md", "notes.unknown"):
        (folder / name).write_text("")
    heard: list[CheckEvent] = []
    with open_blocking(str(folder), cwd=os.getcwd()) as workspace:
        answer = workspace.check_files(CheckRequest((str(folder),)), heard.append)
    (chosen, *_) = heard
    assert isinstance(chosen, FilesToCheck)
    assert [(why.code, why.server_id, count) for why, count in chosen.unserved if why.server_id == "gopls"] == [
        (Code.SERVER_MISSING, "gopls", 1)
    ]
    assert {error.code for error in answer.errors} == {Code.SERVER_MISSING}
    assert not any("README" in path or "notes" in path for path in chosen.files)
