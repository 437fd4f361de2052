"""The verbs of people who look at servers, with a real daemon."""

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pilotfish.surfaces.cli.one_server import logs, restart, stop, trace
from pilotfish.surfaces.cli.status import stats, status
from support.daemon.homes import DaemonHome
from support.process_tree import alive

Run = Callable[..., Result]


@pytest.mark.proves("TUI-2")
def test_without_a_daemon_status_says_so_and_starts_none(run: Run, home: DaemonHome) -> None:
    done = run(status)
    assert done.exit_code == 0, done.output
    assert "No daemon is running" in done.output
    assert line_of(done, "toy").split() == ["toy", "idle"]
    assert home.processes() == {}
    assert not os.path.exists(home.environment["PILOTFISH_HOME"])


@pytest.mark.parametrize(
    ("verb", "arguments", "code"),
    [
        pytest.param(stats, (), 1, id="stats"),
        pytest.param(restart, ("toy",), 0, id="restart"),
        pytest.param(stop, ("toy",), 0, id="stop"),
        pytest.param(logs, ("toy",), 1, id="logs"),
        pytest.param(trace, ("toy",), 1, id="trace"),
    ],
)
def test_without_a_daemon_no_verb_starts_one(
    run: Run, home: DaemonHome, verb: click.Command, arguments: tuple[str, ...], code: int
) -> None:
    assert run(verb, *arguments).exit_code == code
    assert home.processes() == {}


@pytest.mark.proves("TUI-2", "OBS-1")
def test_a_server_is_watched_through_its_life(run: Run, home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    with home.link() as link:
        link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        first = shown(run)
        assert first["daemon"] is True
        (instance,) = next(row for row in first["rows"] if row["serverId"] == "toy")["instances"]
        assert alive(instance["pid"])
        assert instance["memoryMib"] > 1
        assert instance["sessions"] == 1
        assert line_of(run(status), "toy").split()[:3] == ["toy", "active", str(instance["pid"])]
        counted = json.loads(run(stats, "--json").output)
        assert counted["running"]
        assert [server["serverId"] for server in counted["servers"]] == ["toy"]
        assert "edit" in run(stats).output

        again = run(restart, "toy")
        assert (again.exit_code, "restarted as process" in again.output) == (0, True), again.output
        (instance_after,) = next(row for row in shown(run)["rows"] if row["serverId"] == "toy")["instances"]
        assert instance_after["pid"] != instance["pid"]
        assert not alive(instance["pid"])

        assert "stopped" in run(stop, "toy").output
        assert not alive(instance_after["pid"])
        assert line_of(run(status), "toy").split() == ["toy", "idle"]
        assert "not running" in run(stop, "toy").output


@pytest.mark.proves("TUI-2")
def test_a_broken_server_makes_status_end_with_1(run: Run, home: DaemonHome) -> None:
    home.configure("complaining")
    home.write("a.x", "bad\n")
    with home.link() as link:
        link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        done = run(status)
        assert done.exit_code == 1, done.output
        assert line_of(done, "toy").split() == ["toy", "broken"]
        assert "exited with code 7; tried again in" in done.output
        words = run(logs, "toy")
        # What a server writes cannot move the cursor of whoever reads it (T32).
        assert ("no licence" in words.output, "\x1b" in words.output) == (True, False), words.output


@pytest.mark.proves("TUI-2")
def test_a_service_that_cannot_run_is_one_line(run: Run, home: DaemonHome) -> None:
    os.makedirs(home.place.socket)
    os.chmod(home.place.folder, 0o700)
    done = run(status)
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert done.output.startswith("LSP unavailable: ")
    assert "not a socket" in json.loads(run(status, "--json").output)["unavailable"]


def test_a_trace_shows_what_goes_to_and_fro_and_keeps_secrets(run: Run, home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    with home.link() as link:
        link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        lines: list[str] = []
        listening = threading.Thread(
            target=lambda: lines.append(CliRunner().invoke(trace, ["toy", "-n", "12", "--bodies"]).output)
        )
        listening.start()
        while listening.is_alive():
            home.write("a.x", f"token = 'abc{os.urandom(4).hex()}'\n")
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
        listening.join()
    (text,) = lines
    assert "→ textDocument/didChange" in text
    assert "← answer" in text
    assert ("abc" in text, "token = ‹redacted›" in text) == (False, True), text


def test_a_trace_of_a_server_that_nobody_knows_is_refused(run: Run, home: DaemonHome) -> None:
    with home.link():
        done = run(trace, "nothing-like-it")
    assert done.exit_code != 0
    assert "unknown server" in str(done.exception)


def test_the_daemons_log_is_shown_whether_it_runs_or_not(run: Run, home: DaemonHome) -> None:
    with home.link():
        pass
    assert "started pid=" in run(logs).output
    home.kill_all()
    assert "started pid=" in run(logs).output


def shown(run: Run) -> dict[str, Any]:
    return json.loads(run(status, "--json").output)


def line_of(done: Result, server: str) -> str:
    return next(line for line in done.output.splitlines() if line.startswith(f"{server} "))
