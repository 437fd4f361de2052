"""The daemon by hand."""

import json
import os
import re
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from pilotfish.surfaces.cli import daemon as daemon_verbs
from pilotfish.surfaces.cli.touched import touched
from support.daemon.homes import DaemonHome
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
    told = run(touched, "a.x").output
    assert ("bad word" in told, told.endswith("\n")) == (True, True)
    home.write("a.x", "good\n")
    assert run(touched, "a.x").output == ""
    shown = run(daemon_verbs.daemon, "status")
    assert (shown.exit_code, "toy × 1" in shown.output) == (0, True)
    assert f"started pid={pid}" in run(daemon_verbs.daemon, "logs").output
    assert run(daemon_verbs.daemon, "stop").output == "Stopped.\n"
    assert not alive(pid)
    assert "ended why=asked to" in run(daemon_verbs.daemon, "logs", "-n", "1").output


@pytest.mark.proves("FMT-8", "CLI-1")
def test_a_verb_does_without_the_daemon_where_none_can_be_had_and_says_so(
    run: Callable[..., Result], home: DaemonHome
) -> None:
    os.makedirs(home.place.socket)
    os.chmod(home.place.folder, 0o700)
    home.write("a.x", "bad\n")
    done = run(touched, "a.x")
    assert (done.exit_code, "bad word" in done.stdout) == (0, True)
    assert re.fullmatch(r"Continuing without the daemon .*is not a socket\n", done.stderr)
    assert home.processes() == {}


@pytest.mark.proves("FMT-8")
def test_touched_ends_with_0_whatever_the_workspace_is(run: Callable[..., Result]) -> None:
    done = run(touched, "a.x", "--root", "nowhere", "--json")
    told = json.loads(done.output)
    assert (done.exit_code, told["state"], "not a folder" in told["reason"]) == (0, "unavailable", True)
