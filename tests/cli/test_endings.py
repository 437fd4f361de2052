"""How a command ends when something goes wrong, and what it costs when nothing does."""

import io
import os
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.__main__ import look_nowhere_else, write_utf8
from pilotfish.api.answers import Changes, Effort, FileChange, answer_from
from pilotfish.api.questions import Operation
from pilotfish.errors import Bug, Code, Refused, Scene, ServerFailed, Unavailable
from pilotfish.surfaces.cli.main import MAX_CRASH_LOG, failure_text, log_crash, run
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, exit_code_of_question
from pilotfish.surfaces.cli.workspace import Opening, OpenWorkspace

Captured = pytest.CaptureFixture[str]

pytestmark = pytest.mark.proves("CLI-1")


def raising(error: BaseException) -> Opening:
    @contextmanager
    def opened(root: str, cwd: str) -> Generator[OpenWorkspace]:
        raise error
        yield  # pragma: no cover

    return Opening(opened)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(Refused(Code.ROOT_GONE, "no folder"), 3, id="refused"),
        pytest.param(Unavailable(Code.OVERLOADED, "busy"), 2, id="unavailable"),
        pytest.param(ServerFailed(Code.SERVER_CRASHED, "crashed"), 2, id="server failed"),
        pytest.param(Bug("oops"), 2, id="bug"),
    ],
)
def test_a_failure_ends_with_its_code_and_no_traceback(
    error: Exception, code: int, folder: Path, capsys: Captured
) -> None:
    assert run(["definition", "a.py:1:1"], raising(error)) == code
    said = capsys.readouterr()
    assert str(error) in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_what_nobody_foresaw_is_short_and_its_traceback_is_kept(folder: Path, capsys: Captured) -> None:
    assert run(["definition", "a.py:1:1"], raising(ZeroDivisionError("one \x1b[31mby nought"))) == 2
    said = capsys.readouterr().err
    log = Path(os.environ["PILOTFISH_HOME"]) / "logs" / "crash.log"
    assert said.splitlines() == [
        "pilotfish failed: ZeroDivisionError: one by nought",
        f"This is a bug in Pilotfish. Please report it with the end of {log}",
    ]
    assert "Traceback" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_the_log_does_not_grow_for_ever(folder: Path) -> None:
    for _ in range(3):
        log_crash(ValueError("x" * MAX_CRASH_LOG), os.environ)
    log = Path(os.environ["PILOTFISH_HOME"]) / "logs" / "crash.log"
    assert log.stat().st_size < 3 * MAX_CRASH_LOG


def test_where_it_cannot_be_kept_it_is_shown(folder: Path) -> None:
    Path(os.environ["PILOTFISH_HOME"]).write_text("in the way")
    assert log_crash(ValueError("x"), os.environ).endswith("ValueError: x\n")


def test_an_interrupt_is_no_verdict(folder: Path, capsys: Captured) -> None:
    assert run(["check", "a.py"], raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."


def test_a_failure_is_told_with_what_to_do_and_the_last_words() -> None:
    scene = Scene(server="ty", stderr=("panic\x1b[31m", "at the disco"))
    failure = ServerFailed(Code.SERVER_CRASHED, "ty crashed", hint="Look.", scene=scene)
    assert failure_text(failure) == "ty crashed\nLook.\npanic\nat the disco"


def test_no_verb_shows_the_project_and_where_the_verbs_are(folder: Path, capsys: Captured) -> None:
    assert run([]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(os.path.realpath(folder))
    assert told[-1] == "All commands: pilotfish --help"


def test_the_version_is_that_of_the_package(folder: Path, capsys: Captured) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "pilotfish 0.2.0\n"


# --- As a program ---------------------------------------------------------------------------------------------------


def pilotfish(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # pyright: ignore[reportCallIssue, reportUnknownVariableType] -- options of the test
        [sys.executable, "-m", "pilotfish", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,  # pyright: ignore[reportArgumentType]
    )


def test_a_reader_that_has_enough_is_no_error(folder: Path) -> None:
    argv = f"{sys.executable} -m pilotfish tools --format mcp | head -c 10"
    done = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, check=False)
    assert (len(done.stdout), done.stderr) == (10, "")


def test_a_full_disk_is_no_fault_of_ours(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        argv = [sys.executable, "-m", "pilotfish", "tools"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "No space left on device. Free some space and try again.\n")


def test_a_folder_that_is_gone_is_no_fault_of_ours(folder: Path) -> None:
    argv = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m pilotfish check"
    done = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, check=False)
    said = "The current folder no longer exists. Change to another one.\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", said)


@pytest.mark.server("basedpyright")
def test_a_home_that_cannot_be_made_keeps_no_file_from_being_checked(folder: Path) -> None:
    environment = {**os.environ, "PILOTFISH_HOME": "/proc/nowhere", "PATH": os.path.dirname(sys.executable)}
    done = pilotfish("check", "a.py", env=environment)
    assert (done.returncode, done.stdout) == (0, "No problems in 1 file.\n"), done.stderr


HEAVY = {"anyio", "asyncio", "msgspec", "pydantic", "psutil", "rich", "mcp", "textual"}


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        pytest.param("--help", set[str](), id="help"),
        pytest.param("--version", set[str](), id="version"),
        pytest.param("servers", {"msgspec"}, id="servers"),
        pytest.param("check --help", {"msgspec"}, id="help of a verb"),
        pytest.param("definition --help", {"msgspec"}, id="help of a question"),
        pytest.param("tools", {"msgspec"}, id="tools"),
    ],
)
def test_a_cheap_verb_imports_nothing_heavy(words: str, allowed: set[str], folder: Path) -> None:
    code = (
        "import sys; from pilotfish.surfaces.cli.main import run; "
        f"run({words.split()!r}); print('imported', *sorted(set(sys.modules) & {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()[-1].split()) - {"imported"} <= allowed


@pytest.mark.proves("CLI-1")
def test_a_diff_is_not_what_batch_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.diff").write_text("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    assert run(["batch", str(tmp_path / "a.diff")]) == 3
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"{tmp_path}/a.diff is a diff, and batch reads JSON lines."
    assert len(told) == 2


def test_a_move_for_which_no_server_answered_is_not_done() -> None:
    moved = Changes(applied=False, files=(FileChange(path="a.py", kind="rename", new_path="b.py", edits=0),))
    slow = answer_from(Operation.RENAME_FILE, moved, Effort(server_hits=1, caveats=("slow",)))
    whole = answer_from(Operation.RENAME_FILE, moved, Effort(server_hits=1))
    assert (exit_code_of_question(slow), exit_code_of_question(whole)) == (ExitCode.NO_VERDICT, ExitCode.OK)


@pytest.mark.proves("PLAT-1")
def test_a_pipe_of_windows_takes_what_its_encoding_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = io.BytesIO(), io.BytesIO()
    for name, pipe in zip(("stdout", "stderr"), pipes, strict=True):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(pipe, encoding="cp1252"))
    write_utf8()
    for stream in (sys.stdout, sys.stderr):
        print("→ λ.py \udcff", file=stream, flush=True)
    assert [pipe.getvalue().decode() for pipe in pipes] == ["→ λ.py \\udcff\n"] * 2


@pytest.mark.proves("PLAT-1", "T9")
def test_of_what_comes_before_the_standard_library_its_own_parts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is on Windows; a folder of `PYTHONPATH`, and that of `python -m`, are nobody's."""
    archive = f"/python/python{sys.version_info[0]}{sys.version_info[1]}.zip"
    kept = [archive, "/python/DLLs", "/python/Lib", "/python", "/python/Lib/site-packages"]
    monkeypatch.setattr(os, "__file__", "/python/Lib/os.py")
    monkeypatch.setattr(sys, "path", ["", "/project/DLLs", "/python/project", *kept])
    look_nowhere_else()
    assert sys.path == kept
