"""A question is about the text on disk, and asked of the server once."""

from pathlib import Path
from typing import Any

import pytest

import pilotfish
from pilotfish.api.answers import State
from pilotfish.api.questions import Operation, Question
from pilotfish.library.workspace import Workspace
from support.daemon.scenarios import answering
from support.servers.script import Message, Script
from support.services.computer import ScriptedShell, scripted_shell
from support.services.several import PROGRAM, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("OPS-1", "DOC-4")]

DEFINITION = "textDocument/definition"


@pytest.fixture
def shell(tmp_path: Path) -> ScriptedShell:
    return scripted_shell(tmp_path)


def sent(shell: ScriptedShell) -> list[str]:
    """What matters here of all that the server was sent, in order."""
    wanted = {DEFINITION, "textDocument/didChange"}
    return [message.method for message in shell.servers[0].received if message.method in wanted]


def by_text(shell: ScriptedShell) -> None:
    """Let the server find its definition where the text that it has by then says `greet`."""
    server = shell.servers[0]

    def find(params: Any) -> Any:
        shown = [text for message in server.received if (text := _text(message)) is not None][-1]
        line = next(number for number, content in enumerate(shown.split("\n")) if "let greet" in content)
        place = {"line": line, "character": 4}
        return [{"uri": params["textDocument"]["uri"], "range": {"start": place, "end": place}}]

    server.on(DEFINITION, find)


def _text(message: Message) -> str | None:
    if message.method == "textDocument/didOpen":
        return message.params["textDocument"]["text"]
    return message.params["contentChanges"][-1]["text"] if message.method == "textDocument/didChange" else None


async def ready(workspace: Workspace, shell: ScriptedShell) -> None:
    """Past its first answer."""
    await workspace.warm("a.toy")
    by_text(shell)
    assert (await workspace.definition("a.toy", 2, 1)).ok


async def lines(workspace: Workspace, *place: int) -> list[int]:
    found = await workspace.definition("a.toy", *place)
    assert found.meta.state is State.FRESH, found
    return [location.line for location in found.data or ()]


async def test_an_edit_on_disk_reaches_the_server_before_the_question(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        await ready(workspace, shell)
        (shell.root / "a.toy").write_text("// moved\n// down\nlet greet = 1\ngreet\n")
        assert await lines(workspace, 2, 1) == [3]
        assert sent(shell) == [DEFINITION, "textDocument/didChange", DEFINITION]


async def test_a_place_that_is_gone_is_refused_whatever_the_server_said(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        await ready(workspace, shell)
        (shell.root / "a.toy").write_text("let greet = 1")
        found = await workspace.definition("a.toy", 2, 1)
        assert not found.ok
        assert "there is no line 2" in found.errors[0].message


async def test_whoever_only_asks_questions_has_the_first_diagnostics_asked_for_once(tmp_path: Path) -> None:
    """A server that registers its diagnostics late has loaded when it has said the first of them."""
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": answering}, config) as ground:
        ground.write("a.py", "good = 1\ngood\n")
        for _ in range(3):
            question = Question(operation=Operation.DEFINITION, file_path="a.py", line=2, character=1)
            found = await ground.service.ask(question, ground.client)
            assert found.meta.state is State.FRESH, found
        asked = [message.method for message in ground.server("basedpyright").received if message.id is not None]
    assert asked.count("textDocument/diagnostic") == 1
    assert asked.count(DEFINITION) == 3


@pytest.mark.proves("F95", "WATCH-5")
async def test_what_others_write_while_a_server_starts_is_what_a_question_leaves_it_with(tmp_path: Path) -> None:
    """The question is about the text that it was asked of; the next one, of another file, rests on the new one."""

    def scenario(script: Script) -> None:
        answering(script)
        script.on("initialize", initialize)

    def initialize(_params: Any) -> Any:
        ground.write("a.py", "bad = 2\nbad\n")
        return {"capabilities": ground.server("basedpyright").capabilities}

    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": scenario}, config) as ground:
        ground.write("a.py", "good = 1\ngood\n")
        question = Question(operation=Operation.DEFINITION, file_path="a.py", line=2, character=1)
        await ground.service.ask(question, ground.client)
        changed = await ground.server("basedpyright").until("textDocument/didChange")
        assert changed.params["contentChanges"] == [{"text": "bad = 2\nbad\n"}]
