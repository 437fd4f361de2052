"""Questions whose answers go into a pipe: printed by the daemon, to the byte as the command line prints them."""

import os
import re
import signal
import subprocess
import sys

import pytest

from pilotfish.ipc.question_program import VERBS, answer, is_plain
from pilotfish.operations.rows import ROWS
from pilotfish.surfaces.cli.main import SECTIONS, run
from support.daemon.homes import WAIT_SECONDS, DaemonHome

Ended = subprocess.CompletedProcess[str]


def shell(home: DaemonHome, *command: str, variables: dict[str, str] | None = None) -> Ended:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=home.root,
        env={**home.environment, **(variables or {})},
        timeout=WAIT_SECONDS + 10,
        check=False,
    )


def imports_of(done: Ended) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


WORDS = """
definition a.x:1:1
hover a.x:1
hover --json a.x:1
hover nowhere.x:1
hover a.x
hover a.x:1:0
hover --root nothing a.x:1
hover --root .. workspace/sub/b.x:1
references a.x:1:1
source a.x good bad
"""


@pytest.mark.proves("CLI-1")
def test_the_daemon_prints_what_the_command_line_prints(
    home: DaemonHome, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (home.root / "sub").mkdir()
    home.write("a.x", "good\n")
    home.write("sub/b.x", "good\n")
    home.link().close()
    for name in ("HOME", "PILOTFISH_HOME"):
        monkeypatch.setenv(name, home.environment[name])
    for folder in (home.root, home.root / "sub"):
        monkeypatch.chdir(folder)
        for words in map(str.split, WORDS.strip().splitlines()):
            whole = run(words), *map(_timeless, capfd.readouterr())
            short = answer(words, os.environ), *map(_timeless, capfd.readouterr())
            assert short == whole
        for wrong in (["hover", "a.x:1", "--no-such-option"], ["hover"]):
            assert answer(wrong, os.environ) is None
            assert capfd.readouterr() == ("", "")


CHECKS = """
check
check a.x
check a.x sub --json
check --project --all
check --project --format sarif
check --project --format github
check --only-new --severity error
"""


@pytest.mark.proves("CLI-1", "DIAG-13")
def test_the_daemon_prints_a_check(
    home: DaemonHome, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it knows, what it has to check first, and what it refuses."""
    (home.root / "sub").mkdir()
    home.write("a.x", "good\nbad\n")
    home.write("sub/b.x", "bad\n")
    home.link().close()
    for name in ("HOME", "PILOTFISH_HOME"):
        monkeypatch.setenv(name, home.environment[name])
    monkeypatch.chdir(home.root)
    assert answer(["check"], os.environ) == 1
    assert "a.x" in capfd.readouterr().out
    for words in map(str.split, CHECKS.strip().splitlines()):
        short = answer(words, os.environ), *map(_timeless, capfd.readouterr())
        assert short == (run(words), *map(_timeless, capfd.readouterr()))
    monkeypatch.chdir(home.root / "sub")
    words = ["check", "--root", ".."]
    short = answer(words, os.environ), *capfd.readouterr()
    assert short == (run(words), *capfd.readouterr())
    assert "a.x" not in str(short)
    (home.root / "sub" / "b.x").write_text("good\n")
    assert (answer(words, os.environ), capfd.readouterr().out) == (0, "No problems in 1 file.\n")
    missing = answer(["check", "nowhere.x"], os.environ), *capfd.readouterr()
    assert missing == (run(["check", "nowhere.x"]), *capfd.readouterr())
    assert missing[0] == 3
    assert answer(["check", "--project", "b.x"], os.environ) is None
    assert capfd.readouterr() == ("", "")


def _timeless(text: str) -> str:
    return re.sub(r'"durationMs": \d+', "", text)


def test_a_plain_question_imports_nothing_of_the_command_line(home: DaemonHome) -> None:
    home.write("a.x", "good\n")
    home.link().close()
    done = shell(home, "-X", "importtime", "-m", "pilotfish", "hover", "a.x:1")
    assert (done.returncode, "a word" in done.stdout) == (0, True)
    assert "pilotfish.ipc.question_program" in imports_of(done)
    assert not {"click", "msgspec", "json", "typing"} & imports_of(done)
    cold = shell(home, "-X", "importtime", "-m", "pilotfish", "check")
    assert (cold.returncode, cold.stdout) == (0, "No problems in 1 file.\n")
    assert not {"click", "msgspec", "json", "typing"} & imports_of(cold)


@pytest.mark.parametrize("variables", [{"PILOTFISH_NO_DAEMON": "1"}, {}], ids=["not wanted", "not running"])
def test_without_a_daemon_the_command_line_does_it(home: DaemonHome, variables: dict[str, str]) -> None:
    home.write("a.x", "good\n")
    done = shell(home, "-m", "pilotfish", "hover", "a.x:1", variables=variables)
    assert (done.returncode, "a word" in done.stdout) == (0, True)


def test_only_questions_in_pipes_are_left_to_the_daemon(capfd: pytest.CaptureFixture[str]) -> None:
    assert is_plain(["hover", "a.x:1"], {})
    assert not is_plain([], {})
    assert not is_plain(["rename", "a", "b"], {})
    assert not is_plain(["hover", "--help"], {})
    assert is_plain(["check", "--project"], {})
    assert not is_plain(["check", "--watch"], {})
    assert not is_plain(["hover", "a.x:1", "--no-daemon"], {})
    assert not is_plain(["hover", "a.x:1"], {"PILOTFISH_NO_DAEMON": "1"})
    assert not is_plain(["hover", "a.x:1"], {"_PILOTFISH_COMPLETE": "bash_complete"})
    assert answer(["hover", "--help"], os.environ) is None
    assert capfd.readouterr() == ("", "")


def test_the_verbs_are_all_that_ask_in_one_word() -> None:
    one_word = {row.verb for row in ROWS.values() if " " not in row.verb}
    assert set(SECTIONS["Ask"]) & one_word == VERBS - {"check"}


def test_a_reader_who_leaves_and_a_person_who_interrupts_see_no_traceback(home: DaemonHome) -> None:
    home.configure("mute")
    home.write("a.x", "good\n")
    home.link().close()
    with asking(home, "hover", "a.x:1") as left:
        assert left.stdout is not None
        left.stdout.close()
        assert left.stderr is not None
        assert (left.stderr.read(), left.wait(WAIT_SECONDS)) == (b"", 141)
    with asking(home, "definition", "a.x:1:1") as interrupted:
        with home.control() as line:
            while not any(one["calls"] for one in line.request("about")["sessions"]):
                pass
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.communicate(timeout=WAIT_SECONDS) == (b"", b"Interrupted.\n")
        assert interrupted.returncode == 130


def asking(home: DaemonHome, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pilotfish", *words]
    return subprocess.Popen(
        command, cwd=home.root, env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
