"""`--host`: a person at a shell sees the servers that a host has in its own files, and starts nothing by looking."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import WAIT_SECONDS, DaemonHome, daemon_home, fake_server


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user whose only server is in Pi's own file."""
    with daemon_home(tmp_path) as made:
        folder = Path(made.environment["HOME"])
        (folder / ".config" / "pilotfish" / "lsp.json").unlink()
        (folder / ".pi" / "agent").mkdir(parents=True)
        (folder / ".pi" / "agent" / "lsp.json").write_text(json.dumps({"lsp": {"toy": fake_server("answering")}}))
        made.write("a.x", "bad\n")
        yield made


def run(home: DaemonHome, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", "-m", "pilotfish", *words],
        capture_output=True,
        text=True,
        cwd=home.root,
        env=home.environment,
        timeout=WAIT_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.proves("CLI-1", "TUI-2")
def test_the_servers_of_pi_are_seen_checked_and_stopped_by_its_name(home: DaemonHome) -> None:
    assert "toy" not in run(home, "status")[1]
    assert "toy" in run(home, "status", "--host", "pi")[1]
    home.control(start=True).close()
    assert "idle" in run(home, "status", "--host", "pi")[1]
    assert "fakels" not in str(home.processes())
    code, said = run(home, "check", "a.x", "--host", "pi")
    assert (code, "bad word" in said) == (1, True)
    assert "bad word" in run(home, "check", "a.x", "--host", "pi", "--no-daemon")[1]
    assert run(home, "logs", "toy", "--host", "pi")[0] == 0
    assert "bad word" in run(home, "touched", "a.x", "--host", "pi")[1]
    assert "No LSP server configured" in run(home, "hover", "a.x:1:1")[1]
    assert "No LSP server configured" not in run(home, "hover", "a.x:1:1", "--host", "pi")[1]
    assert "toy" in run(home, "servers", "toy", "--host", "pi")[1]
    assert "toy" in run(home, "doctor", "--host", "pi")[1]
    assert "1 active" in run(home, "panel", "--host", "pi")[1]
    assert run(home, "stop", "toy", "--host", "pi")[0] == 0
    assert run(home, "stop", "toy")[0] != 0


def test_a_name_that_is_no_host_s_is_refused(home: DaemonHome) -> None:
    code, said = run(home, "status", "--host", "pie")
    assert code != 0
    assert "Did you mean pi?" in said
