"""Why a file has no verdict, said once (`feedback.noVerdict: "say"`)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation, Question
from support.servers.script import SILENCE, Script
from support.services.checks import full
from support.services.several import BY_LINE, PROGRAM, Ground, custom, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("FMT-8")]


def saying(**server: Any) -> dict[str, Any]:
    return {"lsp": {"one": custom(**server)}, "feedback": {"noVerdict": "say"}}


async def test_a_verdict_that_is_late_is_mentioned_once_per_file_until_there_is_one(tmp_path: Path) -> None:
    def scenario(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/diagnostic", lambda _params: SILENCE)

    timing = {"firstTouchTimeoutMs": 1000, "diagnosticsWaitTimeoutMs": 1000}
    async with service_on(tmp_path, {"one": scenario}, {**saying(), "timing": timing}) as ground:
        ground.write("a.x", "good\n")
        ground.write("b.x", "good\n")
        assert (await ground.touched("a.x")).text == "a.x is not checked yet: one has not answered in time."
        assert (await ground.touched("a.x")).text == ""
        assert "b.x is not checked yet" in (await ground.touched("b.x")).text


async def test_a_server_that_is_missing_is_named_once_per_client_session(tmp_path: Path) -> None:
    missing = saying(command=["/nowhere/at/all"], extensions=[".x", ".y"])
    async with service_on(tmp_path, {"one": BY_LINE}, missing) as ground:
        for name in ("a.x", "b.x", "c.y"):
            ground.write(name, "good\n")
        said = (await ground.touched("a.x")).text
        assert said.startswith(".x files are not checked by one:")
        assert (await ground.touched("b.x")).text == ""
        assert (await ground.touched("c.y")).text == ".y files are not checked by one either."


async def test_a_missing_server_is_not_named_for_what_a_tool_has_made_in_an_ignored_folder(tmp_path: Path) -> None:
    missing = saying(command=["/nowhere/at/all"], extensions=[".x"])
    async with service_on(tmp_path, {"one": BY_LINE}, missing) as ground:
        ground.write(".git/HEAD", "ref: refs/heads/main\n")
        ground.write(".gitignore", "build/\n")
        ground.write("build/made/a.x", "good\n")
        ground.write("a.x", "good\n")
        assert (await ground.touched("build/made/a.x")).text == ""
        assert (await ground.touched("a.x")).text.startswith(".x files are not checked by one:")


async def test_a_clean_file_is_followed_by_nothing(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}, saying()) as ground:
        ground.write("a.x", "good\n")
        assert (await ground.touched("a.x")).text == ""


async def test_nothing_is_said_where_silence_is_asked_for(tmp_path: Path) -> None:
    config = {**saying(command=["/nowhere/at/all"]), "feedback": {"noVerdict": "silent"}}
    async with service_on(tmp_path, {"one": BY_LINE}, config) as ground:
        ground.write("a.x", "good\n")
        assert (await ground.touched("a.x")).text == ""


async def test_it_is_mentioned_again_when_there_was_one_in_the_background(tmp_path: Path) -> None:
    late = [True]

    def scenario(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/diagnostic", lambda _params: SILENCE if late[0] else full())

    timing = {"firstTouchTimeoutMs": 1000, "diagnosticsWaitTimeoutMs": 1000}
    async with service_on(tmp_path, {"one": scenario}, {**saying(), "timing": timing}) as ground:
        ground.write("a.x", "good\n")
        assert "a.x is not checked yet" in (await ground.touched("a.x")).text
        late[0] = False
        ground.server("one").leave(1)
        await anyio.sleep(30)
        late[0] = True
        ground.write("a.x", "better\n")
        assert "a.x is not checked yet" in (await ground.touched("a.x")).text


async def test_a_verdict_that_is_not_whole_for_want_of_trust_names_the_step(tmp_path: Path) -> None:
    config = {"lsp": {"svelte": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"svelte": BY_LINE}, config) as ground:
        feedback = await ground.touched(ground.write("App.svelte", "good\n"))
    assert (feedback.text, feedback.state) == ("", State.PARTIAL)
    step = f"Only a person can allow it, at a terminal: `pilotfish trust {ground.root}` shows what would run, and asks."
    assert (feedback.reason or "").endswith(f"are not used. {step}")


def outlined(script: Script) -> None:
    """A server that also knows the one symbol of a file, on its first line."""
    BY_LINE(script)
    script.capabilities = {**script.capabilities, "documentSymbolProvider": True, "referencesProvider": True}
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 4}}
    symbol = {"name": "good", "kind": 12, "range": place, "selectionRange": place}
    script.on("textDocument/documentSymbol", lambda _params: [symbol])
    script.on("textDocument/references", lambda asked: [{"uri": asked["textDocument"]["uri"], "range": place}])


@asynccontextmanager
async def beside_a_linter_that_waits_for_trust(folder: Path) -> AsyncGenerator[Ground]:
    """Why it waits takes a sentence; what the other server says of a file stands without it."""
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}, "feedback": {"noVerdict": "say"}}
    async with service_on(folder, {"basedpyright": outlined}, config) as made:
        made.write("pyproject.toml", "[tool.ruff]\n")
        (made.root / made.write(".venv/bin/ruff", "#!/bin/sh\n")).chmod(0o755)
        made.write("a.py", "good\n")
        yield made


async def test_an_edit_that_one_server_finds_clean_is_not_explained_by_one_that_waits(tmp_path: Path) -> None:
    async with beside_a_linter_that_waits_for_trust(tmp_path) as ground:
        first = await ground.touched("a.py", before={"a.py": "old\n"})
        ground.write("a.py", "bad thing\n")
        bad = await ground.touched("a.py")
        ground.write("a.py", "good\n")
        again = await ground.touched("a.py")
    assert first.text.startswith(".py files are not checked by ruff: ")
    assert (bad.state, bad.reason) == (State.PARTIAL, "not checked by ruff")
    assert (again.text, again.state) == ("", State.PARTIAL)
    assert first.reason == again.reason == "this edit caused no error; not checked by ruff"


async def test_an_impact_tells_once_why_a_server_has_not_judged(tmp_path: Path) -> None:
    async with beside_a_linter_that_waits_for_trust(tmp_path) as ground:
        question = Question(operation=Operation.IMPACT, file_path="a.py", line=1)
        first, second = [await ground.service.ask(question, ground.client) for _ in range(2)]
        edited = await ground.touched("a.py")
    assert "which is not trusted" in (first.meta.reason or "")
    assert (second.meta.state, second.meta.reason) == (State.PARTIAL, "not checked by ruff")
    assert edited.text == ".py files are not checked by ruff either."


async def test_that_code_outside_of_the_workspace_is_not_checked_is_said_once(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}, saying()) as ground:
        outside = [str(tmp_path / name) for name in ("notes.md", "a.x", "b.x")]
        for path in outside:
            Path(path).write_text("bad\n")
        texts = [(await ground.touched(path)).text for path in outside]
    where = f"it is outside of the workspace {ground.root}, and only files in there are."
    assert texts == ["", f"{outside[1]} was not checked: {where}", ""]
