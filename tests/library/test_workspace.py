"""The library on a scripted server: what each method asks, and what it gives back."""

import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import pilotfish
from pilotfish.api.answers import Answer, State
from pilotfish.api.status import Counts
from pilotfish.errors import Code, Refused
from pilotfish.library.blocking import BlockingWorkspace
from pilotfish.library.workspace import Workspace
from support.services.computer import ScriptedShell

pytestmark = [pytest.mark.anyio, pytest.mark.proves("LIB-1")]

Call = Callable[[Workspace], Awaitable[Answer[Any]]]

METHODS: dict[str, tuple[Call, list[str]]] = {
    "definition": (lambda ws: ws.definition("a.toy", 2, 1), ["textDocument/definition"]),
    "declaration": (lambda ws: ws.declaration("a.toy", 2, 1), ["textDocument/declaration"]),
    "type_definition": (lambda ws: ws.type_definition("a.toy", 2, 1), ["textDocument/typeDefinition"]),
    "implementation": (lambda ws: ws.implementation("a.toy", 2, 1), ["textDocument/implementation"]),
    "references": (lambda ws: ws.references("a.toy", 2, 1), ["textDocument/references"]),
    "hover": (lambda ws: ws.hover("a.toy", 2, 1), ["textDocument/hover"]),
    "signature": (lambda ws: ws.signature("a.toy", 2, 1), ["textDocument/signatureHelp"]),
    "symbols": (lambda ws: ws.symbols("a.toy"), ["textDocument/documentSymbol"]),
    "workspace_symbols": (lambda ws: ws.workspace_symbols("gre", "a.toy"), ["workspace/symbol"]),
    "incoming_calls": (
        lambda ws: ws.incoming_calls("a.toy", 2, 1),
        ["textDocument/prepareCallHierarchy", "callHierarchy/incomingCalls"],
    ),
    "outgoing_calls": (
        lambda ws: ws.outgoing_calls("a.toy", 2, 1),
        ["textDocument/prepareCallHierarchy", "callHierarchy/outgoingCalls"],
    ),
    "supertypes": (
        lambda ws: ws.supertypes("a.toy", 2, 1),
        ["textDocument/prepareTypeHierarchy", "typeHierarchy/supertypes"],
    ),
    "subtypes": (
        lambda ws: ws.subtypes("a.toy", 2, 1),
        ["textDocument/prepareTypeHierarchy", "typeHierarchy/subtypes"],
    ),
    "rename": (lambda ws: ws.rename("a.toy", 2, 1, new_name="hello"), ["textDocument/rename"]),
    "rename_file": (lambda ws: ws.rename_file("a.toy", "b.toy"), ["workspace/willRenameFiles"]),
    "actions": (lambda ws: ws.actions("a.toy", 2), ["textDocument/codeAction"]),
    "check": (lambda ws: ws.check("a.toy"), ["textDocument/diagnostic"]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.proves("OPS-1", "OPS-3")
async def test_a_method_asks_the_server_and_answers(method: str, shell: ScriptedShell) -> None:
    call, methods = METHODS[method]
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        said = await call(workspace)
    assert said.meta.state is State.FRESH, said
    asked = [name for name in shell.methods() if name in methods]
    assert asked == methods


@pytest.mark.proves("OPS-2")
async def test_a_place_is_given_in_numbers_or_by_name(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        ways = [
            workspace.definition(Path("a.toy"), 1, 5),
            workspace.definition(str(shell.root / "a.toy"), symbol="greet"),
            workspace.definition("a.toy", 1, symbol="greet"),
            workspace.definition(symbol="greet"),
        ]
        for way in ways:
            found = await way
            assert found.data is not None
            assert [(place.path, place.line, place.character, place.text) for place in found.data] == [
                ("a.toy", 1, 5, "let greet = 1")
            ]
            assert shell.params("textDocument/definition")["position"] == {"line": 0, "character": 4}


async def test_an_item_of_an_answer_is_handed_back_word_for_word(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        edges = await workspace.incoming_calls("a.toy", 1, 5)
        assert edges.data is not None
        assert (await workspace.outgoing_calls(item=edges.data[0].caller)).ok
        types = await workspace.subtypes("a.toy", 1, 5)
        assert types.data is not None
        assert (await workspace.supertypes(item=types.data[0])).ok
    assert shell.params("callHierarchy/outgoingCalls")["item"]["data"] == [7]
    assert shell.params("typeHierarchy/supertypes")["item"]["data"] == [7]


@pytest.mark.proves("POOL-1", "POOL-5")
async def test_a_server_starts_on_first_use_and_ends_with_the_block(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        assert workspace.root == str(shell.root)
        assert workspace.serves("a.toy")
        assert not workspace.serves("a.xyz")
        assert shell.servers == []
        await workspace.warm("a.toy")
        assert len(shell.servers) == 1
    assert [message.method for message in shell.servers[0].received][-2:] == ["shutdown", "exit"]


@pytest.mark.proves("OPS-5", "OPS-6")
async def test_what_the_caller_got_wrong_is_in_the_answer(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        for wrong in (workspace.definition(), workspace.hover("a.toy", None, 1), workspace.hover("a.toy", 0, 1)):
            said = await wrong
            assert (said.ok, [error.code for error in said.errors]) == (False, [Code.INVALID_INPUT])
        missing = await workspace.symbols("nope.toy")
        assert [error.code for error in missing.errors] == [Code.FILE_MISSING]
        outside = await workspace.symbols("/etc/passwd")
        assert [error.code for error in outside.errors] == [Code.OUTSIDE_WORKSPACE]
    assert shell.servers == []


async def test_a_root_that_is_no_folder_is_refused(shell: ScriptedShell) -> None:
    with pytest.raises(Refused):
        async with pilotfish.open(shell.root / "nowhere", shell=shell.system):
            pass


async def test_an_error_of_the_caller_comes_out_as_it_is(shell: ScriptedShell) -> None:
    async def fail() -> None:
        async with pilotfish.open(shell.root, shell=shell.system) as workspace:
            await workspace.warm("a.toy")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()


async def test_paths_count_from_the_given_folder(shell: ScriptedShell) -> None:
    for name in ("sub", "other"):
        (shell.root / name).mkdir()
    (shell.root / "other" / "a.toy").write_text("1\n")
    async with pilotfish.open(shell.root, cwd=shell.root / "sub", shell=shell.system) as workspace:
        assert (await workspace.hover("../a.toy", 1, 1)).ok
        assert not (await workspace.hover("a.toy", 1, 1)).ok


@pytest.mark.proves("DIAG-8", "DIAG-2", "FMT-2")
async def test_after_an_edit_its_errors_are_the_feedback(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        assert (await workspace.after_edit("a.toy")).text == ""
        (shell.root / "a.toy").write_text("bad\n")
        broken = await workspace.after_edit("a.toy")
        assert '<diagnostics file="a.toy">\nERROR [1:1] bad word\n</diagnostics>' in broken.text
        assert (broken.state, broken.introduced) == (State.FRESH, 1)
        worse = await workspace.after_edit("a.toy", kind="write", texts={"a.toy": "bad\nbad\n"}, only_new=True)
        assert "[2:1]" in worse.text
        assert "[1:1]" not in worse.text


@pytest.mark.proves("DIAG-9", "DOC-2")
async def test_a_text_that_is_not_on_disk_can_be_checked(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        said = await workspace.check("a.toy", texts={"a.toy": "fine\nbad\n"})
        assert said.data is not None
        assert [found.line for found in said.data["a.toy"]] == [2]


async def test_questions_may_be_asked_side_by_side(shell: ScriptedShell) -> None:
    answers: list[bool] = []
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:

        async def ask() -> None:
            answers.append((await workspace.hover("a.toy", 1, 5)).ok)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
    assert answers == [True] * 20
    assert len(shell.servers) == 1


@pytest.mark.proves("TUI-2")
async def test_status_has_every_server_and_starts_none(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        before = workspace.status()
        assert (before.totals.connected, shell.servers) == (0, [])
        (shell.root / "a.toy").write_text("bad\n")
        await workspace.warm("a.toy")
        after = workspace.status()
    first = after.rows[0]
    assert (first.server_id, first.source, first.connected_roots) == ("toy", "global", (str(shell.root),))
    assert first.diagnostics == Counts(error=1, warning=0, info=0, hint=0, total=1)
    assert first.last_seen_at is not None
    assert after.totals.configured == len(after.rows) == len(before.rows)
    assert [row.server_id for row in after.rows[1:]] == sorted(row.server_id for row in after.rows[1:])


async def test_a_server_that_is_missing_is_named(shell: ScriptedShell) -> None:
    (Path(shell.system.environment["HOME"]) / "toy-server").unlink()
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        missing = workspace.missing("a.toy")
        assert missing is not None
        assert (missing.code, missing.scene.server) == (Code.SERVER_MISSING, "toy")
        assert workspace.missing("a.xyz") is None


# --- The blocking twin ----------------------------------------------------------------------------------------------

PUBLIC = [name for name in dir(Workspace) if not name.startswith("_") and name not in {"answer", "word"}]


def test_the_blocking_twin_has_the_same_methods() -> None:
    assert [name for name in dir(BlockingWorkspace) if not name.startswith("_")] == PUBLIC
    for name in PUBLIC:
        ours, theirs = getattr(BlockingWorkspace, name), getattr(Workspace, name)
        if callable(ours):
            said, signature = inspect.signature(theirs), inspect.signature(ours)
            if inspect.isasyncgenfunction(theirs):
                said = said.replace(return_annotation=said.return_annotation.removeprefix("Async"))
            assert signature == said, name
            assert not inspect.iscoroutinefunction(inspect.unwrap(ours)) or ours.__doc__ == theirs.__doc__


def test_the_blocking_twin_answers(shell: ScriptedShell) -> None:
    with pilotfish.open_blocking(shell.root, shell=shell.system) as workspace:
        assert workspace.root == str(shell.root)
        assert workspace.serves("a.toy")
        assert workspace.missing("a.toy") is None
        assert workspace.offers_tools
        found = workspace.definition("a.toy", symbol="greet")
        assert found.data is not None
        assert found.data[0].line == 1
        assert workspace.status().totals.connected == 1
    with pytest.raises(Refused), pilotfish.open_blocking(os.devnull, shell=shell.system):
        pass


def test_the_package_offers_the_library_and_nothing_by_chance() -> None:
    assert pilotfish.open is not None
    assert {name for name in pilotfish.__all__ if getattr(pilotfish, name, None) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        pilotfish.opne  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # noqa: B018 -- a slip of the pen


async def test_a_folder_is_checked_file_by_file(shell: ScriptedShell) -> None:
    (shell.root / "sub").mkdir()
    (shell.root / "empty").mkdir()
    for name in ("a.toy", "sub/b.toy", "sub/notes.unknown"):
        (shell.root / name).write_text("bad\n")
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        whole = await workspace.check(".")
        assert set((await workspace.check()).unwrap() or ()) == set(whole.unwrap() or ())
        assert {path: len(found) for path, found in (whole.unwrap() or {}).items()} == {"a.toy": 1, "sub/b.toy": 1}
        below = await workspace.check("sub")
        assert set(below.unwrap() or ()) == {"sub/b.toy"}
        nothing = await workspace.check("empty")
        assert nothing.meta.state is not State.FRESH
