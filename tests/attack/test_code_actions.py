"""Code actions of real servers where nobody trusts the workspace: edits are made, and nothing is run (T7)."""

from pathlib import Path

import pytest

import pilotfish
from pilotfish.api.questions import Operation
from pilotfish.errors import Code
from pilotfish.library.workspace import computer
from support.files.canaries import canary
from support.servers.real import make_user

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T7")]


@pytest.mark.linux("a clangd that nobody trusts the project with is started under Landlock only")
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


TESTS = """package a

import (
	"os"
	"testing"
)

func TestRuns(t *testing.T) {{
	os.ReadFile("{ran}")
}}
"""


@pytest.mark.proves("A5.1")
@pytest.mark.slow
@pytest.mark.server("gopls")
async def test_an_action_that_runs_the_tests_of_a_project_is_refused(tmp_path: Path) -> None:
    user = make_user(tmp_path, ["gopls"], {}, trusted=False)
    ran = canary(tmp_path)
    (user.workspace / "go.mod").write_text("module example.com/a\n\ngo 1.19\n")
    (user.workspace / "a_test.go").write_text(TESTS.format(ran=ran))
    where = {"filePath": "a_test.go", "line": 9, "character": 6, "kind": "goTest"}
    async with pilotfish.open(user.workspace, shell=computer(user.environment)) as workspace:
        offered = await workspace.ask(Operation.CODE_ACTIONS, where)
        assert offered.data, offered
        title = offered.data[0].title
        answer = await workspace.ask(Operation.CODE_ACTIONS, {**where, "action": title, "apply": True})
    assert not ran.was_read()
    assert [error.code for error in answer.errors] == [Code.UNTRUSTED], answer
