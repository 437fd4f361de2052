"""Code actions of real servers where nobody trusts the workspace: edits are made, and nothing is run (T7)."""

from pathlib import Path

import pytest

import pilotfish
from pilotfish.api.questions import Operation
from pilotfish.library.workspace import computer
from support.servers.real import make_user

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T7")]


@pytest.mark.slow
@pytest.mark.server("clangd")
async def test_a_command_that_the_catalogue_lists_makes_its_edits(tmp_path: Path) -> None:
    user = make_user(tmp_path, ["clangd"], {}, trusted=False)
    (user.workspace / "a.cpp").write_text("auto x = 1;\n")
    where = {"filePath": "a.cpp", "line": 1, "character": 2}
    async with pilotfish.open(user.workspace, shell=computer(user.environment)) as workspace:
        answer = await workspace.ask(
            Operation.CODE_ACTIONS, {**where, "action": "Replace with deduced type", "apply": True}
        )
    assert answer.ok, answer
    assert (user.workspace / "a.cpp").read_text() == "int x = 1;\n"
