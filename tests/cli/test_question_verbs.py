"""Every operation from the shell: what it asks, what it prints, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pilotfish.api.answers import OURSELVES, Effort, Error, answer_from
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code
from pilotfish.operations.rows import ROWS
from pilotfish.surfaces.cli.main import VERBS, root, run
from support.services.cli_workspace import ScriptedWorkspace, fresh, place
from support.values.answers import read_answer

Captured = pytest.CaptureFixture[str]

pytestmark = pytest.mark.proves("CLI-1")

AT: dict[str, Any] = {"file_path": "a.py", "line": 1, "character": 5}
QUESTIONS: dict[Operation, tuple[list[str], dict[str, Any]]] = {
    Operation.DEFINITION: (["definition", "a.py:1:5"], AT),
    Operation.DECLARATION: (["declaration", "a.py:1:5"], AT),
    Operation.TYPE_DEFINITION: (["type-definition", "a.py:1:5"], AT),
    Operation.IMPLEMENTATION: (["implementation", "a.py", "greet"], {"file_path": "a.py", "symbol": "greet"}),
    Operation.REFERENCES: (["references", "--no-declaration", "a.py:1:5"], {**AT, "include_declaration": False}),
    Operation.HOVER: (["hover", "a.py:1", "greet"], {"file_path": "a.py", "line": 1, "symbol": "greet"}),
    Operation.SIGNATURE: (["signature", "greet"], {"symbol": "greet"}),
    Operation.DOCUMENT_SYMBOL: (["symbols", "a.py"], {"file_path": "a.py"}),
    Operation.WORKSPACE_SYMBOL: (
        ["workspace-symbols", "gre", "--file", "a.py"],
        {"query": "gre", "file_path": "a.py"},
    ),
    Operation.PREPARE_CALLS: (["calls", "prepare", "a.py:1:5"], AT),
    Operation.INCOMING_CALLS: (["calls", "in", "a.py:1:5"], AT),
    Operation.OUTGOING_CALLS: (["calls", "out", "a.py:1:5"], AT),
    Operation.SUPERTYPES: (["types", "super", "a.py:1:5"], AT),
    Operation.SUBTYPES: (["types", "sub", "a.py:1:5"], AT),
    Operation.RENAME: (["rename", "a.py:1:5", "hello", "--apply"], {**AT, "new_name": "hello", "apply": True}),
    Operation.RENAME_FILE: (["rename-file", "a.py", "b.py"], {"file_path": "a.py", "new_path": "b.py"}),
    Operation.CODE_ACTIONS: (
        ["actions", "a.py:2", "--action", "1", "--kind", "quickfix"],
        {"file_path": "a.py", "line": 2, "action": "1", "kind": "quickfix"},
    ),
    Operation.SOURCE: (["source", "greet", "main"], {"symbol": "greet, main"}),
    Operation.EXPLORE: (["explore", "a.py", "greet"], {"file_path": "a.py", "symbol": "greet"}),
    Operation.IMPACT: (["impact"], {}),
    Operation.EDIT_SYMBOL: (
        ["edit-symbol", "a.py", "greet", "replace", "--text", "x", "--digest", "12", "--apply"],
        {"file_path": "a.py", "symbol": "greet", "edit": "replace", "text": "x", "digest": "12", "apply": True},
    ),
}
"""A command line for every operation, and the question that it is."""


def test_every_operation_has_a_verb() -> None:
    assert QUESTIONS.keys() | {Operation.DIAGNOSTICS} == ROWS.keys()
    for operation, (words, _) in QUESTIONS.items():
        assert " ".join(words).startswith(ROWS[operation].verb)


@pytest.mark.parametrize("operation", QUESTIONS)
def test_a_verb_asks_its_question(operation: Operation, workspace: ScriptedWorkspace) -> None:
    words, fields = QUESTIONS[operation]
    assert workspace.run(*words) == 0
    assert workspace.asked == [Question(operation=operation, **fields)]


@pytest.mark.parametrize("operation", QUESTIONS)
@pytest.mark.proves("OPS-6")
def test_json_is_the_envelope(operation: Operation, workspace: ScriptedWorkspace, capsys: Captured) -> None:
    assert workspace.run(*QUESTIONS[operation][0], "--json") == 0
    said = read_answer(capsys.readouterr().out.encode())
    assert (said.operation, said.ok, said.meta.empty) == (operation, True, True)


@pytest.mark.parametrize(
    ("verb", "operations"),
    [
        pytest.param("calls", [Operation.INCOMING_CALLS, Operation.OUTGOING_CALLS], id="calls"),
        pytest.param("types", [Operation.SUPERTYPES, Operation.SUBTYPES], id="types"),
    ],
)
def test_without_a_direction_both_are_asked_for(
    verb: str, operations: list[Operation], workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    assert workspace.run(verb, "a.py:1:5") == 0
    assert workspace.asked == [Question(operation=operation, **AT) for operation in operations]
    printed = capsys.readouterr().out
    assert [ROWS[operation].description.rstrip(".") + ":" in printed for operation in operations] == [True, True]
    assert workspace.run(verb, "--json", "a.py:1:5") == 0
    envelopes = [read_answer(line.encode()) for line in capsys.readouterr().out.splitlines()]
    assert [one.operation for one in envelopes] == operations


def test_the_worse_of_both_directions_is_the_exit_code(workspace: ScriptedWorkspace) -> None:
    effort = Effort(server_hits=1)
    workspace.reply = lambda asked: (
        fresh(asked.operation, ())
        if asked.operation is Operation.INCOMING_CALLS
        else answer_from(asked.operation, None, replace(effort, timed_out=True))
    )
    assert workspace.run("calls", "a.py:1:5") == 2


def test_a_symbol_that_could_be_several_is_refused_once(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    ambiguous = Error(OURSELVES, "greet could be any of 2", Code.AMBIGUOUS)
    workspace.reply = lambda asked: answer_from(asked.operation, None, Effort(errors=(ambiguous,)))
    assert workspace.run("calls", "greet") == 3
    said = capsys.readouterr()
    assert (said.out + said.err).count("could be any of 2") == 1


def test_a_line_alone_is_a_place(workspace: ScriptedWorkspace) -> None:
    assert workspace.run("definition", "a.py:1") == 0
    assert workspace.asked == [Question(operation=Operation.DEFINITION, file_path="a.py", line=1)]


def test_a_rename_by_symbol_takes_the_last_word_as_the_new_name(workspace: ScriptedWorkspace) -> None:
    assert workspace.run("rename", "a.py", "greet", "hello") == 0
    assert workspace.run("rename", "greet", "hello") == 0
    assert workspace.asked == [
        Question(operation=Operation.RENAME, file_path="a.py", symbol="greet", new_name="hello"),
        Question(operation=Operation.RENAME, symbol="greet", new_name="hello"),
    ]


def test_servers_settle_before_the_question(workspace: ScriptedWorkspace) -> None:
    workspace.run("definition", "a.py:1:5")
    assert workspace.warmed == ["a.py"]


def test_in_a_pipe_a_result_is_a_line(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.reply = lambda asked: fresh(asked.operation, (place("a.py", text="def greet(name):"),))
    assert workspace.run("definition", "greet") == 0
    assert capsys.readouterr().out == "a.py:1:5  def greet(name):\n"


def test_paths_count_from_the_current_folder_in_text_and_from_the_root_in_json(
    workspace: ScriptedWorkspace, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    found = (place("a.py"), place("/usr/lib/x.py", external=True), place("jdt://x/y", external=True))
    workspace.reply = lambda asked: fresh(asked.operation, found)
    workspace.run("definition", "greet")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["../a.py:1:5", "/usr/lib/x.py:1:5 (external)", "jdt://x/y:1:5 (external)"]
    workspace.run("definition", "greet", "--json")
    assert json.loads(capsys.readouterr().out)["data"][0]["path"] == "a.py"


MISSING = Error("ty", 'LSP server "ty" is not available.\nInstall it with: pip install ty', Code.SERVER_MISSING)


@pytest.mark.parametrize(
    ("data", "effort", "code"),
    [
        pytest.param((place(),), Effort(server_hits=1), 0, id="found"),
        pytest.param((), Effort(server_hits=1), 0, id="nothing there"),
        pytest.param((place(),), Effort(server_hits=1, caveats=("indexing",)), 0, id="some of it found"),
        pytest.param((), Effort(server_hits=1, caveats=("indexing",)), 2, id="nothing found so far"),
        pytest.param(None, Effort(errors=(MISSING,)), 2, id="no server"),
        pytest.param(None, Effort(timed_out=True), 2, id="time-out"),
        pytest.param(None, Effort(errors=(Error(OURSELVES, "x", Code.FILE_MISSING),)), 3, id="no such file"),
        pytest.param(None, Effort(errors=(Error(OURSELVES, "x", Code.AMBIGUOUS),)), 3, id="ambiguous"),
        pytest.param(None, Effort(errors=(Error(OURSELVES, "x", Code.UNSUPPORTED),)), 2, id="unserved type"),
    ],
)
def test_the_exit_code_follows_from_the_answer(
    data: Any, effort: Effort, code: int, workspace: ScriptedWorkspace
) -> None:
    workspace.reply = lambda asked: answer_from(asked.operation, data, effort)
    assert workspace.run("definition", "a.py:1:5") == code
    assert workspace.run("definition", "a.py:1:5", "--json") == code


@pytest.mark.proves("REG-6")
def test_a_missing_server_is_said_with_what_to_do(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.reply = lambda asked: answer_from(asked.operation, None, Effort(errors=(MISSING,)))
    workspace.run("definition", "a.py:1:5")
    said = capsys.readouterr().out
    assert said == 'unavailable: LSP server "ty" is not available.\nInstall it with: pip install ty\n'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["definition", "a.py"], "a.py is a file", id="no place"),
        pytest.param(["definition", "a", "b", "c"], "one or two words, not 3", id="too many words"),
        pytest.param(["actions", "a.py"], "line is missing", id="no line"),
        pytest.param(["definition"], "Missing argument 'PLACE'", id="nothing"),
        pytest.param(["symbols"], "Missing argument 'FILE'", id="no file"),
        pytest.param(["calls"], "calls [OPTIONS] COMMAND", id="half a verb"),
        pytest.param(["chek"], "No such command 'chek'. Did you mean check?", id="a misspelt verb"),
        pytest.param(["uninstall", "vue"], "pilotfish install --remove vue", id="one server and not all"),
        pytest.param(["remove", "vue"], "Did you mean install --remove?", id="a verb that is an option"),
        pytest.param(["hover", "--nope", "x"], "No such option", id="unknown option"),
        pytest.param(["refs", "vue"], "Did you mean references?", id="a shorter name"),
        pytest.param(["nope"], "No such command 'nope'", id="unknown verb"),
    ],
)
@pytest.mark.proves("OPS-5")
def test_wrong_use_is_told_on_standard_error_and_ends_with_3(
    words: list[str], message: str, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    assert workspace.run(*words) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err


@pytest.mark.proves("OPS-6")
def test_wrong_use_with_json_is_an_envelope_too(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    assert workspace.run("definition", "a.py", "--json") == 3
    said = read_answer(capsys.readouterr().out.encode())
    assert [error.code for error in said.errors] == [Code.INVALID_INPUT]


def test_a_root_that_is_no_folder_is_refused(folder: Path, capsys: Captured) -> None:
    assert run(["definition", "a.py:1:5", "--root", str(folder / "nowhere"), "--json"]) == 3
    assert [error.code for error in read_answer(capsys.readouterr().out.encode()).errors] == [Code.ROOT_GONE]


WIDTH = 66
"""What a line of the list has room for, after the verb, on a terminal of 90 columns."""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, folder: Path, capsys: Captured) -> None:
    assert run([verb, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: pilotfish {verb}")
    command = root.get_command(root.make_context("pilotfish", ["x"], resilient_parsing=True), verb)
    assert command is not None
    assert command.help
    assert len(VERBS[verb].help) <= WIDTH
    assert VERBS[verb].help.endswith(".")


NOT_ABOUT_A_WORKSPACE = {
    *("batch", "completion", "daemon", "demo", "hook", "install", "lsp", "mcp", "panel", "serve", "service", "stats"),
    "uninstall",
}
"""Nor all of one: what is about the daemon, the whole computer, or is for eyes or programs alone."""
GROUPS = {"calls", "types", "config"}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in GROUPS | NOT_ABOUT_A_WORKSPACE])
def test_root_and_json_work_everywhere(verb: str) -> None:
    command = root.get_command(root.make_context("pilotfish", ["x"], resilient_parsing=True), verb)
    assert command is not None
    assert {"--root", "--json"} <= {option for parameter in command.params for option in parameter.opts}
