"""`check`, `touched` and `tools` from the shell."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import OURSELVES, Diagnostic, Effort, Error, Feedback, State, answer_from
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Scene, Unavailable
from pilotfish.operations.answers import read_answer
from support.services.cli_workspace import Answer, ScriptedWorkspace, data_of, diagnostic

Captured = pytest.CaptureFixture[str]

pytestmark = pytest.mark.proves("CLI-1")


def verdict(path: str, *found: Diagnostic, **effort: Any) -> Answer:
    return answer_from(Operation.DIAGNOSTICS, {path: found}, Effort(server_hits=1, **effort))


def no_verdict(code: Code, message: str = "why") -> Answer:
    return answer_from(Operation.DIAGNOSTICS, None, Effort(errors=(Error(OURSELVES, message, code),)))


CRASHED = Error("ty", "ty crashed", Code.SERVER_CRASHED)
ERROR, WARNING, HINT = (diagnostic(severity=severity) for severity in ("error", "warning", "hint"))


@pytest.mark.parametrize(
    ("said", "options", "code"),
    [
        pytest.param(verdict("a.py"), [], 0, id="clean"),
        pytest.param(verdict("a.py", ERROR), [], 1, id="error"),
        pytest.param(verdict("a.py", WARNING), [], 1, id="warning"),
        pytest.param(verdict("a.py", HINT), [], 0, id="hint"),
        pytest.param(verdict("a.py", HINT), ["--severity", "hint"], 1, id="hint that was asked for"),
        pytest.param(verdict("a.py", WARNING), ["--severity", "error"], 0, id="warning that was not"),
        pytest.param(verdict("a.py", ERROR, errors=(CRASHED,)), [], 1, id="error, and a server crashed"),
        pytest.param(verdict("a.py", errors=(CRASHED,)), [], 2, id="nothing, and a server crashed"),
        pytest.param(verdict("a.py", HINT, caveats=("slow",)), [], 2, id="no findings so far"),
        pytest.param(no_verdict(Code.REQUEST_TIMEOUT), [], 2, id="time-out"),
        pytest.param(no_verdict(Code.UNSUPPORTED), [], 2, id="a type that nobody serves"),
        pytest.param(no_verdict(Code.FILE_MISSING), [], 3, id="no such file"),
        pytest.param(no_verdict(Code.OUTSIDE_WORKSPACE), [], 3, id="outside"),
    ],
)
def test_the_exit_code_is_the_verdict(
    said: Answer, options: list[str], code: int, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    workspace.verdicts = {"a.py": said}
    assert workspace.run("check", "a.py", *options) == code
    capsys.readouterr()
    assert workspace.run("check", "a.py", "--json", *options) == code
    assert read_answer(capsys.readouterr().out.encode()).meta.state is said.meta.state


def test_json_has_every_diagnostic_unless_a_severity_is_named(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", ERROR, HINT)}
    workspace.run("check", "a.py", "--json")
    assert len(json.loads(capsys.readouterr().out)["data"]["a.py"]) == 2
    workspace.run("check", "a.py", "--json", "--severity", "information")
    assert len(json.loads(capsys.readouterr().out)["data"]["a.py"]) == 1


def test_text_has_the_findings_and_counts_the_rest(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", ERROR, HINT, HINT)}
    workspace.run("check", "a.py")
    assert capsys.readouterr().out.splitlines() == [
        "a.py:1:1  error: wrong",
        "note: 2 of lesser severity not shown (--severity hint)",
    ]


@pytest.mark.proves("DIAG-8")
def test_only_new_leaves_out_what_is_known_to_be_older(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    older, new, unknown = (diagnostic(line, introduced=age) for line, age in ((1, False), (2, True), (3, None)))
    workspace.verdicts = {"a.py": verdict("a.py", older, new, unknown)}
    assert workspace.run("check", "a.py", "--only-new", "--json") == 1
    shown = json.loads(capsys.readouterr().out)["data"]["a.py"]
    assert [one["line"] for one in shown] == [2, 3]
    workspace.verdicts = {"a.py": verdict("a.py", older)}
    assert workspace.run("check", "a.py", "--only-new") == 0


# --- A proposed text ------------------------------------------------------------------------------------------------


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.proves("DIAG-9")
def test_a_text_on_standard_input_is_judged_instead_of_the_file(
    workspace: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, "\ufeffx = 'é'\n".encode())
    assert workspace.run("check", "a.py", "--stdin") == 0
    assert workspace.checked == [("a.py", "x = 'é'\n")]


@pytest.mark.proves("DIAG-8", "DIAG-9")
def test_what_is_new_in_it_is_told_against_the_file(
    workspace: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"x\n")
    workspace.run("check", "a.py", "--stdin", "--only-new")
    assert workspace.checked == [("a.py", None), ("a.py", "x\n")]


@pytest.mark.parametrize(
    ("words", "content", "message"),
    [
        pytest.param(["--stdin"], b"", "--stdin takes exactly one FILE", id="no file"),
        pytest.param(["--stdin", "a.py", "b.py"], b"", "--stdin takes exactly one FILE", id="two files"),
        pytest.param(["--stdin", "--watch", "a.py"], b"", "no --watch", id="watched"),
        pytest.param(["--stdin", "a.py"], b"\xff\xfe", "not UTF-8", id="no text"),
        pytest.param(["--severity", "bad", "a.py"], b"", "Invalid value for '--severity'", id="severity"),
    ],
)
def test_wrong_use_of_it_ends_with_3(
    words: list[str],
    content: bytes,
    message: str,
    workspace: ScriptedWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    give(monkeypatch, content)
    assert workspace.run("check", *words) == 3
    assert message in capsys.readouterr().err
    assert workspace.checked == []


# --- Folders --------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(folder: Path) -> Path:
    for name in ("src/b.py", "src/c.py", "README.md", "data.bin"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_a_folder_is_checked_whole(tree: Path, workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"src/c.py": verdict("src/c.py", ERROR)}
    assert workspace.run("check", ".", "--json") == 1
    data = data_of(capsys.readouterr().out)
    assert {path: len(found) for path, found in data.items()} == {"a.py": 0, "src/b.py": 0, "src/c.py": 1}


def test_without_a_path_it_is_the_current_folder(tree: Path, workspace: ScriptedWorkspace) -> None:
    assert workspace.run("check") == 0
    assert [path for path, _ in workspace.checked] == [
        str(tree / "a.py"),
        str(tree / "src/b.py"),
        str(tree / "src/c.py"),
    ]


NO_MARKSMAN = Unavailable(Code.SERVER_MISSING, "marksman is missing.", scene=Scene(server="marksman"))


@pytest.mark.proves("REG-5", "OPS-6")
def test_files_whose_server_is_missing_leave_a_folder_without_a_whole_verdict(
    tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    (tree / "NEWS.md").write_text("")
    workspace.lacking = {".md": NO_MARKSMAN}
    assert workspace.run("check", ".") == 2
    assert capsys.readouterr().out.splitlines() == [
        "partial: 2 files were not checked: marksman is missing.",
        "Nothing found so far.",
    ]


def test_unless_they_are_to_be_skipped(tree: Path, workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.lacking = {".md": NO_MARKSMAN}
    assert workspace.run("check", ".", "--skip-missing") == 0
    assert capsys.readouterr().out.splitlines() == [
        "No diagnostics.",
        "note: 1 file was not checked: marksman is missing.",
    ]


@pytest.mark.parametrize("options", [[], ["--skip-missing"]], ids=["owed", "skipped"])
@pytest.mark.proves("OPS-6")
def test_a_folder_of_which_nothing_could_be_checked_is_not_clean(
    options: list[str], tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    (tree / "docs").mkdir()
    assert workspace.run("check", "docs", *options) == 2
    assert "no file here that could be checked" in capsys.readouterr().out
    (tree / "docs" / "x.md").write_text("")
    workspace.lacking = {".md": NO_MARKSMAN}
    assert workspace.run("check", "docs", *options) == 2


@pytest.mark.proves("DOC-6")
def test_what_is_no_text_is_passed_over_in_a_folder_and_refused_by_name(
    tree: Path, workspace: ScriptedWorkspace
) -> None:
    workspace.verdicts = {"src/b.py": no_verdict(Code.UNSUPPORTED, "binary")}
    assert workspace.run("check", "src") == 0
    assert workspace.run("check", "src/b.py") == 2


def test_a_file_that_does_not_exist_hides_nothing_of_the_others(
    tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    workspace.verdicts = {
        "src/b.py": verdict("src/b.py", ERROR),
        "nope.py": no_verdict(Code.FILE_MISSING, "nope.py does not exist"),
    }
    assert workspace.run("check", "src/b.py", "nope.py", "--json") == 3
    printed = capsys.readouterr().out
    assert len(data_of(printed)["src/b.py"]) == 1
    assert [error.message for error in read_answer(printed.encode()).errors] == ["nope.py does not exist"]


def test_many_different_reasons_are_counted(tree: Path, workspace: ScriptedWorkspace, capsys: Captured) -> None:
    for number in range(8):
        (tree / f"n{number}.py").write_text("")
    workspace.verdicts = {f"n{n}.py": verdict(f"n{n}.py", caveats=(f"reason {n}",)) for n in range(8)}
    workspace.run("check", ".", "--json")
    reason = read_answer(capsys.readouterr().out.encode()).meta.reason
    assert reason == "reason 0; reason 1; reason 2; reason 3; reason 4; and 3 more"


# --- touched and tools ----------------------------------------------------------------------------------------------


@pytest.mark.proves("FMT-1", "FMT-9")
def test_touched_prints_the_feedback_word_for_word(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.feedback = Feedback("LSP errors\n<x>", State.FRESH, 5, introduced=1)
    assert workspace.run("touched", "a.py", "b.py", "--kind", "patch", "--only-new") == 0
    assert capsys.readouterr().out == "LSP errors\n<x>"
    assert workspace.touched == [(("a.py", "b.py"), "patch", True)]
    assert workspace.run("touched", "a.py", "--json") == 0
    said = {"text": "LSP errors\n<x>", "state": "fresh", "durationMs": 5, "introduced": 1}
    assert json.loads(capsys.readouterr().out) == said


@pytest.mark.proves("FMT-8")
def test_touched_says_nothing_when_there_is_nothing_to_say(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.feedback = Feedback("", State.UNAVAILABLE, 5, "ty crashed")
    assert workspace.run("touched", "nope.py") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.proves("FMT-8")
def test_touched_ends_well_even_without_a_workspace(folder: Path, capsys: Captured) -> None:
    from pilotfish.surfaces.cli.main import run

    assert run(["touched", "a.py", "--root", str(folder / "gone")]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param(["--format", "openai"], {"lsp_definition", "lsp_rename"}, id="openai is Opta's"),
        pytest.param(["--format", "openai", "--tools", "lsp"], {"lsp"}, id="one tool"),
        pytest.param(["--format", "mcp"], {"lsp_goto_definition", "lsp_code_actions"}, id="mcp"),
        pytest.param(["--format", "anthropic"], {"lsp_goto_definition"}, id="anthropic"),
        pytest.param([], {"lsp_diagnostics"}, id="ours"),
    ],
)
@pytest.mark.proves("OPTA-1")
def test_tools_prints_schemas(
    options: list[str], names: set[str], workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    assert workspace.run("tools", *options) == 0
    schemas = json.loads(capsys.readouterr().out)
    assert names <= {schema.get("name") or schema["function"]["name"] for schema in schemas}
