"""`check`, `touched` and `tools` from the shell."""

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import pytest

from pilotfish.api.answers import OURSELVES, Diagnostic, Effort, Error, Feedback, State, answer_from
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Scene, Unavailable
from pilotfish.operations.tools import Format, ToolSet, tool_schemas
from pilotfish.protocol.codec import encode
from pilotfish.service.check_answer import FilesToCheck, merged
from pilotfish.surfaces.cli.terminal.answers import Screen
from pilotfish.surfaces.cli.terminal.check_text import CheckOptions, check_lines
from support.files.repositories import commit_everything, run_git
from support.services.cli_workspace import Answer, ScriptedWorkspace, data_of, diagnostic
from support.values.answers import read_answer

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


ALL_LISTED = ["a.py:1:1  error: wrong", "a.py:1:1  warning: wrong", "a.py:1:1  hint: wrong", "a.py:1:1  hint: wrong"]


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        pytest.param(
            [],
            [*ALL_LISTED[:1], "1 error in 1 of 1 file. 1 warning, 2 hints not listed (--all lists every one)."],
            id="errors",
        ),
        pytest.param(["--all"], [*ALL_LISTED, "1 error, 1 warning, 2 hints in 1 of 1 file."], id="everything"),
        pytest.param(["--severity", "warning"], [*ALL_LISTED[:2], "1 error, 1 warning in 1 of 1 file."], id="severity"),
    ],
)
def test_text_lists_errors_first_and_counts_the_rest(
    options: list[str], lines: list[str], workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", HINT, WARNING, HINT, ERROR)}
    workspace.run("check", "a.py", *options)
    assert capsys.readouterr().out.splitlines() == lines


def test_warnings_alone_are_counted_and_are_findings(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", WARNING)}
    assert workspace.run("check", "a.py") == 1
    assert capsys.readouterr().out == "No errors in 1 file. 1 warning not listed (--all lists every one).\n"


def test_many_findings_are_summed_up_by_file_and_by_rule(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    many = [diagnostic(line, code="unused", severity="warning") for line in range(1, 31)]
    many += [diagnostic(line, code="undefined") for line in range(1, 121)]
    workspace.verdicts = {"a.py": verdict("a.py", *many), "b.py": verdict("b.py", diagnostic(code="unused"))}
    answer = merged(FilesToCheck(("a.py", "b.py")), workspace.verdicts, "", duration_ms=1)
    on_terminal = check_lines(answer, CheckOptions(), Screen(80, lambda _path, _line: None))
    assert [click.unstyle(line) for line in on_terminal][101:] == [
        "… and 21 more (--all lists every one)",
        "",
        "By file:",
        "  120 errors, 30 warnings  a.py",
        "  1 error                  b.py",
        "By rule:",
        "  120 errors            fakels (undefined)",
        "  1 error, 30 warnings  fakels (unused)",
        "",
        "121 errors in 2 of 2 files. 30 warnings not listed (--all lists every one). (0.0 s)",
    ]
    workspace.run("check", "a.py", "b.py")
    in_pipe = capsys.readouterr().out.splitlines()
    assert in_pipe[119:] == [
        "a.py:120:1  error: wrong (undefined)",
        "b.py:1:1  error: wrong (unused)",
        "121 errors in 2 of 2 files. 30 warnings not listed (--all lists every one).",
    ]
    workspace.run("check", "a.py", "b.py", "--all")
    assert len(capsys.readouterr().out.splitlines()) == 151 + 1


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
        pytest.param(["--stdin", "--watch", "a.py"], b"", "neither --watch nor --changed", id="watched"),
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
NO_GOPLS = Unavailable(Code.SERVER_MISSING, "gopls is missing.\nInstall it.", scene=Scene(server="gopls"))


@pytest.mark.proves("REG-5", "OPS-6")
def test_files_whose_server_is_missing_leave_a_folder_without_a_whole_verdict(
    tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    for name in ("a.go", "b.go"):
        (tree / name).write_text("")
    workspace.lacking = {".go": NO_GOPLS}
    assert workspace.run("check", ".") == 2
    assert capsys.readouterr().out.splitlines() == [
        "partial: 2 files were not checked: gopls is missing. Install it.",
        "No problems found so far in 3 files.",
    ]


def test_unless_they_are_to_be_skipped(tree: Path, workspace: ScriptedWorkspace, capsys: Captured) -> None:
    (tree / "a.go").write_text("")
    workspace.lacking = {".go": NO_GOPLS}
    assert workspace.run("check", ".", "--skip-missing") == 0
    assert capsys.readouterr().out.splitlines() == [
        "note: 1 file was not checked: gopls is missing. Install it.",
        "No problems in 3 files.",
    ]


NO_SERVER: Answer = answer_from(
    Operation.DIAGNOSTICS, None, Effort(caveats=("No LSP server configured for .md files",))
)


def test_named_files_without_a_server_are_skipped_as_well(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"a.md": NO_SERVER, "b.rs": no_verdict(Code.UNTRUSTED), "c.py": verdict("c.py")}
    assert workspace.run("check", "--skip-missing", "a.md", "b.rs", "c.py") == 0
    assert capsys.readouterr().out == "note: 2 files have no server: a.md, b.rs\nNo problems in 1 file.\n"
    assert workspace.run("check", "--skip-missing", "a.md") == 0
    assert workspace.run("check", "a.md") == 2


def test_a_linter_that_waits_for_trust_is_a_note(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    waiting = Error("oxlint", "LSP server was found at /a/long/path and not started.", Code.UNTRUSTED)
    workspace.verdicts = {"a.py": verdict("a.py", errors=(waiting,))}
    assert workspace.run("check", "a.py") == 0
    step = (
        f"Only a person can allow it, at a terminal: `pilotfish trust {workspace.root}` shows what would run, and asks."
    )
    assert capsys.readouterr().out.splitlines() == [
        f"note: oxlint waits for trust and has checked nothing. {step}",
        "No problems in 1 file.",
    ]


@pytest.mark.parametrize("options", [[], ["--skip-missing"]], ids=["owed", "skipped"])
@pytest.mark.proves("OPS-6")
def test_a_folder_of_which_nothing_could_be_checked_is_not_clean(
    options: list[str], tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    (tree / "docs").mkdir()
    assert workspace.run("check", "docs", *options) == 2
    assert "no file here can be checked" in capsys.readouterr().out
    (tree / "docs" / "x.md").write_text("")
    workspace.lacking = {".md": NO_MARKSMAN}
    assert workspace.run("check", "docs", *options) == 2


@pytest.mark.proves("DOC-6", "OPS-6", "F99", "A14.8")
@pytest.mark.parametrize("code", [Code.UNSUPPORTED, Code.LIMIT_EXCEEDED, Code.FILE_UNREADABLE, Code.OUTSIDE_WORKSPACE])
def test_what_cannot_be_read_in_a_folder_is_named(
    code: Code, tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    workspace.verdicts = {"src/b.py": no_verdict(code, f"too strange: {tree}/src/b.py")}
    assert workspace.run("check", ".") == 2
    assert capsys.readouterr().out.splitlines() == [
        "partial: 1 file could not be read: src/b.py (too strange)",
        "No problems found so far in 2 files.",
    ]
    workspace.verdicts = {**workspace.verdicts, "a.py": verdict("a.py", ERROR)}
    assert workspace.run("check", ".") == 1


@pytest.mark.proves("OPS-6")
def test_a_file_whose_name_the_daemon_cannot_be_told_is_named(
    tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    odd = os.fsdecode(b"odd\xff.py")
    (tree / odd).write_text("")
    workspace.verdicts = {odd: no_verdict(Code.FILE_MISSING, "no such file")}
    assert workspace.run("check", ".") == 2
    assert "1 file could not be read: odd" in (said := capsys.readouterr().out)
    assert "(its name is not UTF-8)" in said


def test_the_whole_file_system_is_refused(
    workspace: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir("/")
    assert workspace.run("check") == 3
    assert capsys.readouterr().err == (
        "/ is the whole file system. Change to the folder of a project, or name files or folders.\n"
    )


def test_what_is_gone_meanwhile_is_left_out(tree: Path, workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"src/b.py": no_verdict(Code.FILE_MISSING, "gone")}
    assert workspace.run("check", ".") == 0
    assert capsys.readouterr().out == "No problems in 2 files.\n"


@pytest.mark.proves("OPS-6")
def test_links_and_special_files_that_a_server_is_for_are_named(
    tree: Path, workspace: ScriptedWorkspace, tmp_path: Path, capsys: Captured
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x.py").write_text("")
    (tree / "inside.py").symlink_to(tree / "a.py")
    (tree / "nowhere.py").symlink_to(tree / "gone.py")
    (tree / "note.txt").symlink_to(elsewhere / "x.py")
    assert workspace.run("check", ".") == 0
    capsys.readouterr()
    (tree / "linked.py").symlink_to(elsewhere / "x.py")
    (tree / "folder").symlink_to(elsewhere)
    os.mkfifo(tree / "pipe.py")
    assert workspace.run("check", ".") == 2
    assert capsys.readouterr().out.splitlines()[:2] == [
        "partial: 2 symbolic links were not followed: folder, linked.py",
        "partial: 1 special file was not opened: pipe.py",
    ]


def test_folders_that_are_skipped_on_purpose_are_one_line(
    tree: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    for name in (".venv", "node_modules", "build", ".git"):
        (tree / name).mkdir(exist_ok=True)
    (tree / ".gitignore").write_text("build/\n")
    assert workspace.run("check", ".") == 0
    assert capsys.readouterr().out.splitlines() == [
        "note: skipped 3 ignored or hidden folders: .venv, build, node_modules",
        "No problems in 3 files.",
    ]


# --- What git lists -------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tree: Path) -> Path:
    shutil.rmtree(tree / ".git")
    commit_everything(tree)
    return tree


def test_only_changed_and_untracked_files_are_checked(
    repository: Path, workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    assert workspace.run("check", "--changed") == 0
    assert capsys.readouterr().out == "No file that can be checked has changed since HEAD.\n"
    assert workspace.run("check", "--changed", "--format", "sarif") == 0
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert (run["results"], run["invocations"][0]["executionSuccessful"]) == ([], True)
    assert workspace.run("check", "--changed", "--format", "github") == 0
    assert capsys.readouterr().out == ""
    assert workspace.run("check", "--changed", "--json") == 0
    assert (
        json.loads(capsys.readouterr().out)["meta"]["reason"] == "No file that can be checked has changed since HEAD."
    )
    assert workspace.checked == []
    (repository / "src" / "b.py").write_text("x = 1\n")
    (repository / "new é.py").write_text("")
    (repository / ".gitignore").write_text("ignored.py\n")
    (repository / "ignored.py").write_text("")
    (repository / "README.md").write_text("changed\n")
    (repository / "src" / "c.py").unlink()
    assert workspace.run("check", "--changed") == 0
    # In the place of a file that is gone, the service checks who used it.
    here, gone = [str(repository / "src/b.py")], [str(repository / "src/c.py")]
    assert [path for path, _ in workspace.checked] == [*here, *gone, str(repository / "new é.py")]
    workspace.checked.clear()
    workspace.run("check", "--changed", "src")
    assert [path for path, _ in workspace.checked] == [*here, *gone]


def test_without_a_commit_every_file_has_changed(tree: Path, workspace: ScriptedWorkspace) -> None:
    shutil.rmtree(tree / ".git")
    run_git(tree, "init", "--quiet")
    run_git(tree, "add", "a.py")
    assert workspace.run("check", "--changed") == 0
    assert {Path(path).name for path, _ in workspace.checked} == {"a.py", "b.py", "c.py"}


def test_outside_of_git_there_is_nothing_to_compare_with(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    assert workspace.run("check", "--changed") == 3
    assert "--changed needs a git repository" in capsys.readouterr().err


@pytest.mark.proves("T29")
def test_listing_changes_runs_nothing_of_the_repository(
    repository: Path, workspace: ScriptedWorkspace, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\ncat\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.external"):
        run_git(repository, "config", key, str(program))
    (repository / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    (repository / "a.py").write_text("x = 1\n")
    assert workspace.run("check", "--changed") == 0
    assert workspace.checked
    assert not (tmp_path / "pwned").exists()


# --- For other programs ---------------------------------------------------------------------------------------------


HOSTILE = diagnostic(2, 5, end_character=9, message="100%,\nbad: one", code="a,b:c%")


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        pytest.param([], ["error", "warning", "warning"], id="findings"),
        pytest.param(["--all"], ["error", "warning", "notice", "warning"], id="everything"),
        pytest.param(["--severity", "error"], ["error", "warning"], id="severity"),
    ],
)
def test_github_gets_a_command_for_each_finding_and_each_doubt(
    options: list[str], levels: list[str], workspace: ScriptedWorkspace, capsys: Captured
) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", HOSTILE, WARNING, HINT, caveats=("slow",))}
    assert workspace.run("check", "a.py", "--format", "github", *options) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix("::").partition(" ")[0].partition("::")[0] for line in lines] == levels
    assert lines[0] == ("::error file=a.py,line=2,col=5,endColumn=8,title=fakels/a%2Cb%3Ac%25::100%25,%0Abad: one")
    assert lines[-1] == "::warning::pilotfish: partial: slow"


def test_sarif_is_a_log_as_its_rules_say(
    workspace: ScriptedWorkspace, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "sub dir").mkdir()
    monkeypatch.chdir(folder / "sub dir")
    found = verdict("sub dir/é#.py", HOSTILE, WARNING, diagnostic(3, introduced=True, code="a,b:c%"), HINT)
    workspace.verdicts = {"sub dir/é#.py": found}
    assert workspace.run("check", "é#.py", "--format", "sarif") == 1
    log = json.loads(capsys.readouterr().out)
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "pilotfish"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["fakels/a,b:c%", "fakels"]
    assert run["columnKind"] == "unicodeCodePoints"
    base = run["originalUriBaseIds"]["WORKSPACE"]["uri"]
    assert base == folder.as_uri() + "/"
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error"]
    assert [result.get("baselineState") for result in run["results"]] == [None, None, "new"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        artifact = location["physicalLocation"]["artifactLocation"]
        assert artifact == {"uri": "sub%20dir/%C3%A9%23.py", "uriBaseId": "WORKSPACE"}
        assert unquote(base + artifact["uri"]) == unquote((folder / "sub dir" / "é#.py").as_uri())
    first = run["results"][0]
    assert first["message"] == {"text": "100%,\nbad: one"}
    region = first["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 9}


def test_sarif_says_why_there_is_no_verdict(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", errors=(CRASHED,))}
    assert workspace.run("check", "a.py", "--format", "sarif") == 2
    (invocation,) = json.loads(capsys.readouterr().out)["runs"][0]["invocations"]
    assert invocation == {
        "executionSuccessful": False,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": "partial: ty crashed"}}],
    }


def test_json_is_one_of_the_formats(workspace: ScriptedWorkspace, capsys: Captured) -> None:
    workspace.verdicts = {"a.py": verdict("a.py", ERROR, HINT)}
    workspace.run("check", "a.py", "--json")
    flag = json.loads(capsys.readouterr().out)
    workspace.run("check", "a.py", "--format", "json")
    form = json.loads(capsys.readouterr().out)
    assert form["data"] == flag["data"]


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
    assert capsys.readouterr().out == "LSP errors\n<x>\n"
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


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("tools", ["named", "lsp"])
def test_the_tools_of_mcp_are_printed_as_they_are_on_the_wire(
    tools: str, workspace: ScriptedWorkspace, capsys: Captured, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = str(tmp_path_factory.mktemp("empty"))
    assert workspace.run("tools", "--format", "mcp", "--tools", tools, "--root", empty) == 0
    assert capsys.readouterr().out.encode() == encode(tool_schemas(Format.MCP, ToolSet(tools))) + b"\n"
