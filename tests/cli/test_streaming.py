"""A check of a folder tells what it knows while it goes on, and when it is interrupted: real servers, real pipes.

One file is judged by basedpyright. The other one waits for a server that judges nothing before the test lets it.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.surfaces.cli.terminal.progress import LINE_SECONDS, MANY, ProgressBar
from support.daemon.homes import fake_server, no_daemon_left, processes_of
from support.servers.real import User, make_user, require

Captured = pytest.CaptureFixture[str]

FIRST = "first.py:1:15  error: Type \"Literal['one']\" is not assignable"
UNKNOWN = "partial: interrupted: 1 of 2 files were not checked"

by_both = pytest.mark.parametrize("words", [pytest.param([], id="daemon"), pytest.param(["--no-daemon"], id="alone")])


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    made = tmp_path / "gate"
    os.mkfifo(made)
    return made


@pytest.fixture
def user(tmp_path: Path, gate: Path) -> Generator[User]:
    require(["basedpyright"])
    made = make_user(
        tmp_path, ["basedpyright"], {"lsp": {"toy": fake_server("gated", env={"GATE": str(gate)})}}, trusted=False
    )
    (made.workspace / "first.py").write_text("number: int = 'one'\n")
    (made.workspace / "last.x").write_text("bad\n")
    with no_daemon_left(made.environment["PILOTFISH_HOME"]):
        yield made


@contextmanager
def checking(user: User, *words: str) -> Generator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "pilotfish", "check", ".", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=user.workspace,
        env=dict(user.environment),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: "subprocess.Popen[bytes]") -> str:
    """Within a time that only a hang exceeds."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 120)[0], "nothing came"
    return process.stdout.readline().decode()


@by_both
@pytest.mark.server("basedpyright")
@pytest.mark.proves("CLI-1")
def test_the_errors_of_a_file_are_told_while_others_are_checked(user: User, gate: Path, words: list[str]) -> None:
    with checking(user, *words) as process:
        assert first_line(process).startswith(FIRST)
        # The other file cannot have been judged.
        assert process.poll() is None
        with gate.open("wb"):
            rest, _ = process.communicate(timeout=120)
    assert rest.decode().splitlines() == ["last.x:1:1  error: bad word", "2 errors in 2 of 2 files."]
    assert process.returncode == 1


@by_both
@pytest.mark.server("basedpyright")
@pytest.mark.proves("CLI-1")
def test_an_interrupted_check_ends_with_what_is_known_and_leaves_nothing_behind(user: User, words: list[str]) -> None:
    with checking(user, *words) as process:
        assert first_line(process).startswith(FIRST)
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=120)
    assert rest.decode().splitlines() == [UNKNOWN, "1 error in 1 of 1 file."]
    assert (process.returncode, error.decode().splitlines()[-1]) == (130, "Interrupted.")
    if words:
        assert processes_of(user.environment["PILOTFISH_HOME"]) == {}


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        pytest.param(MANY, f"checked 2 of {MANY} files\nchecked 4 of {MANY} files\n", id="many"),
        pytest.param(4, "", id="few"),
    ],
)
def test_in_a_pipe_progress_is_a_line_now_and_then(files: int, lines: str, capsys: Captured) -> None:
    now = 0.0
    with ProgressBar(files, "checked {} of {} files", lambda: now) as bar:
        for seconds in (0.5, 2.0, 2.0 + LINE_SECONDS / 2, 2.0 + LINE_SECONDS):
            now = seconds
            bar.step()
    assert capsys.readouterr().err == lines
