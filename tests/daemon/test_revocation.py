"""Trust that is taken back while its servers run, through a real daemon and the verbs that people use."""

import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pilotfish.config.files import open_workspace
from pilotfish.config.load import Catalogue, ConfigRequest, load_from
from pilotfish.config.places import user_places
from pilotfish.config.trust import pin_of, read_offer, write_pin
from pilotfish.servers.catalogue import builtin_layer, canonical_id
from pilotfish.surfaces.cli.main import run
from support.daemon.homes import DaemonHome, ended, fake_server

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def project(home: DaemonHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that names its own server, and is asked about from its folder."""
    file = home.root / ".pilotfish" / "lsp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"lsp": {"own": fake_server("answering", extensions=[".own"])}}))
    home.write("a.own", "bad\n")
    for name in ("HOME", "PILOTFISH_HOME"):
        monkeypatch.setenv(name, home.environment[name])
    monkeypatch.chdir(home.root)
    return home.root


def listed(home: DaemonHome, roots: Sequence[str]) -> None:
    home.configure(security={"trustedProjectRoots": roots})


def shown_digest(root: Path) -> str:
    """What a terminal has shown of the project."""
    request = ConfigRequest(str(root), user_places(os.environ), Catalogue(builtin_layer(), canonical_id))
    with open_workspace(str(root)) as workspace:
        loaded = load_from(workspace, request)
        offer = read_offer(workspace, loaded.project_file, loaded.project)
        write_pin(request.places.shown, pin_of(workspace, offer))
        return offer.digest


def servers(home: DaemonHome) -> list[int]:
    """The processes of language servers; without their supervisors."""
    return [pid for pid, command in home.processes().items() if "daemon.scenarios" in command.split()[-1]]


def by_file(home: DaemonHome, *, trusted: bool) -> None:
    listed(home, [str(home.root)] if trusted else [])


def by_verb(home: DaemonHome, *, trusted: bool) -> None:
    assert run(["trust", "--hash", shown_digest(home.root)] if trusted else ["untrust"]) == 0


@pytest.mark.proves("F81", "TRUST-4", "TRUST-6")
@pytest.mark.parametrize("change", [by_file, by_verb])
def test_its_servers_are_stopped_before_anybody_asks_again(
    change: Callable[..., None], home: DaemonHome, project: Path, capsys: Captured
) -> None:
    assert run(["check", "a.own"]) == 2
    assert servers(home) == []
    change(home, trusted=True)
    assert run(["check", "a.own"]) == 1
    running = servers(home)
    assert running
    change(home, trusted=False)
    assert all(map(ended, running))
    assert "trust revoked" in home.log
    capsys.readouterr()
    assert run(["check", "a.own", "--json"]) == 2
    assert servers(home) == []


@pytest.mark.proves("TRUST-7", "F81")
def test_trust_that_a_host_takes_back_stops_programs_of_the_project_at_once(
    home: DaemonHome, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(home.root)
    for name in ("HOME", "PILOTFISH_HOME"):
        monkeypatch.setenv(name, home.environment[name])
    entry = fake_server("answering", extensions=[".own"])
    program = home.root / "node_modules" / ".bin" / "toyls"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nexec {shlex.join(entry['command'])}\n")
    program.chmod(0o755)
    home.configure(lsp={"own": {**entry, "command": ["toyls"]}})
    home.write("a.own", "bad\n")
    said = Path(home.environment["HOME"]) / ".claude.json"
    said.write_text(json.dumps({"projects": {str(home.root): {"hasTrustDialogAccepted": True}}}))
    assert run(["check", "a.own"]) == 2, "the host is not wired"
    assert run(["setup", "claude-code"]) == 0
    assert run(["check", "a.own"]) == 1
    running = servers(home)
    assert running
    settings = json.loads(said.read_text())
    settings["projects"][str(home.root)]["hasTrustDialogAccepted"] = False
    said.write_text(json.dumps(settings))
    assert all(map(ended, running))
    assert "trust revoked" in home.log
    capsys.readouterr()
    assert run(["check", "a.own"]) == 2
    assert "which is not trusted" in capsys.readouterr().out
