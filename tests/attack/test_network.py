"""Opening a file reaches no other machine: whatever it names, and whatever the server would fetch by itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clients.ears import Ear
from support.daemon.homes import DaemonHome, no_daemon_left
from support.files.canaries import canary
from support.servers.real import make_user, require
from support.via.processes import WAYS, run

SCHEMAS = {
    "yaml": ("a.yaml", "# yaml-language-server: $schema={address}\na: [1\n"),
    "json": ("a.json", '{{"$schema": "{address}", "a": }}\n'),
}
"""A file that names a schema, and has an error that needs none."""


@pytest.fixture
def ear() -> Iterator[Ear]:
    made = Ear()
    yield made
    made.close()


def victim(folder: Path, server: str, **config: Any) -> DaemonHome:
    """A user of one real server, in a repository that nobody trusts."""
    require([server])
    user = make_user(folder, [server], config, trusted=False)
    return DaemonHome(user.workspace, {**user.environment, "PATH": f"{user.environment['PATH']}:/usr/bin:/bin"})


@pytest.mark.slow
@pytest.mark.proves("T52", "A14.17")
@pytest.mark.parametrize("server", SCHEMAS)
def test_a_schema_is_fetched_by_the_users_own_setting_alone(tmp_path: Path, ear: Ear, server: str) -> None:
    name, text = SCHEMAS[server]
    for allowed in (False, True):
        folder = tmp_path / str(allowed)
        folder.mkdir()
        home = victim(folder, server, security={"remoteSchemas": allowed})
        home.write(name, text.format(address=ear.address))
        with no_daemon_left(home.environment["PILOTFISH_HOME"]):
            assert "1 error in" in WAYS["check without a daemon"](home, name)
        assert bool(ear.heard) is allowed


@pytest.mark.slow
@pytest.mark.proves("T52", "T10", "A14.17", "A18.19")
@pytest.mark.parametrize("way", WAYS)
def test_nor_can_the_project_allow_it(tmp_path: Path, ear: Ear, way: str) -> None:
    home = victim(tmp_path, "yaml")
    home.write("a.yaml", SCHEMAS["yaml"][1].format(address=ear.address))
    own = {
        "security": {"remoteSchemas": True},
        "lsp": {"yaml": {"settings": {"yaml": {"schemaStore": {"enable": True, "url": ear.address}}}}},
    }
    (home.root / ".pilotfish").mkdir()
    (home.root / ".pilotfish" / "lsp.json").write_text(json.dumps(own))
    with no_daemon_left(home.environment["PILOTFISH_HOME"]):
        assert ("works" if way == "doctor" else "Flow sequence") in WAYS[way](home, "a.yaml")
    assert ear.heard == []


@pytest.mark.slow
@pytest.mark.proves("T52", "T10", "A14.16", "A18.20")
@pytest.mark.parametrize("who", ["nobody", "the project", "the user"])
def test_no_types_are_fetched_for_a_javascript_file(tmp_path: Path, ear: Ear, who: str) -> None:
    entry = {"typescript": {"initialization": {"disableAutomaticTypingAcquisition": False}}}
    home = victim(tmp_path, "typescript", **({"lsp": entry} if who == "the user" else {}))
    (Path(home.environment["HOME"]) / ".npmrc").write_text(f"registry={ear.address}\n")
    if who == "the project":
        (home.root / ".pilotfish").mkdir()
        (home.root / ".pilotfish" / "lsp.json").write_text(json.dumps({"lsp": entry}))
    home.write("a.js", 'import all from "lodash";\nall.\n')
    with no_daemon_left(home.environment["PILOTFISH_HOME"]):
        assert "Identifier expected" in WAYS["check"](home, "a.js")
        (line,) = (line for line in home.processes().values() if "tsserver.js" in line)
    assert ("--disableAutomaticTypingAcquisition" in line) is (who != "the user")
    assert who == "the user" or ear.heard == []


@pytest.mark.proves("T52", "A14.17")
def test_a_database_server_waits_until_the_user_has_configured_it(home: DaemonHome, tmp_path: Path) -> None:
    told, programs = canary(tmp_path), tmp_path / "programs"
    programs.mkdir()
    (programs / "postgres-language-server").write_text(f"#!/bin/sh\n: < {told}\n")
    (programs / "postgres-language-server").chmod(0o755)
    home.environment["PATH"] = f"{programs}:/usr/bin:/bin"
    home.configure(lsp={})
    home.write("postgres-language-server.jsonc", '{"db": {"host": "db.example"}}')
    home.write("a.sql", "select 1;\n")
    said = "".join(way(home, "a.sql") for way in WAYS.values())
    assert not told.was_read()
    assert "you have not configured it" in said
    home.configure(lsp={"postgres": {"command": ["postgres-language-server", "lsp-proxy"]}})
    run(home, "check", "a.sql")
    assert told.was_read()
