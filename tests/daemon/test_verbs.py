"""The daemon by hand."""

import json
import os
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from pilotfish.surfaces import daemon_verbs
from support.daemons import DaemonHome
from support.process_tree import alive


@pytest.fixture
def run(home: DaemonHome, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name in ("HOME", "PILOTFISH_HOME"):
        monkeypatch.setenv(name, home.environment[name])
    monkeypatch.chdir(home.root)

    def invoke(command: click.Command, *arguments: str) -> Result:
        return CliRunner().invoke(command, arguments)

    return invoke


def test_a_daemon_is_started_looked_at_and_stopped(run: Callable[..., Result], home: DaemonHome) -> None:
    assert run(daemon_verbs.daemon, "status").exit_code == 1
    assert json.loads(run(daemon_verbs.daemon, "status", "--json").output) == {"running": False}
    assert "No daemon" in run(daemon_verbs.daemon, "stop").output
    started = run(daemon_verbs.daemon, "start", "--json")
    assert started.exit_code == 0, started.output
    pid = json.loads(started.output)["pid"]
    assert f"process {pid}" in run(daemon_verbs.daemon, "start").output
    home.write("a.x", "bad\n")
    assert "bad word" in run(daemon_verbs.touched, "a.x").output
    home.write("a.x", "good\n")
    assert run(daemon_verbs.touched, "a.x").output == ""
    shown = run(daemon_verbs.daemon, "status")
    assert (shown.exit_code, "toy × 1" in shown.output) == (0, True)
    assert f"started pid={pid}" in run(daemon_verbs.daemon, "logs").output
    assert run(daemon_verbs.daemon, "stop").output == "Stopped.\n"
    assert not alive(pid)
    assert "ended why=asked to" in run(daemon_verbs.daemon, "logs", "-n", "1").output


@pytest.mark.proves("FMT-8")
def test_touched_ends_with_0_when_no_daemon_can_be_had(run: Callable[..., Result], home: DaemonHome) -> None:
    os.makedirs(home.place.socket)
    os.chmod(home.place.folder, 0o700)
    done = run(daemon_verbs.touched, "a.x")
    assert (done.exit_code, done.output) == (0, "")
    told = json.loads(run(daemon_verbs.touched, "a.x", "--json").output)
    assert (told["state"], "no socket" in told["reason"]) == ("unavailable", True)
