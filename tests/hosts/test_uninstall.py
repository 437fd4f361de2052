"""`pilotfish uninstall`: every file of every host is as it was before, and nothing of ours is left."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hosts.test_setup import EXISTING, SCOPES
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared import changes
from pilotfish.hosts.shared.changes import Receipts
from pilotfish.surfaces.cli.main import run
from pilotfish.surfaces.cli.uninstall import OWN
from support.daemon.homes import no_daemon_left
from support.hosts.users import User
from support.process_tree import alive

pytestmark = pytest.mark.proves("PLAT-2", "HOOK-3")


@pytest.fixture
def elsewhere(user: User) -> Path:
    """Another project, which is not the one that uninstall runs in."""
    folder = user.project.parent / "elsewhere"
    (folder / ".git").mkdir(parents=True)
    (folder / ".mcp.json").write_text('{"mcpServers": {"other": {}}}')
    return folder


def test_everything_goes_and_every_file_of_a_host_is_as_it_was(
    user: User, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user.give(EXISTING)
    config = user.home / ".config" / "pilotfish"
    before = user.files()
    for host, scope in SCOPES:
        assert run(["setup", host, f"--{scope}"]) == 0
    assert run(["setup", "claude-code", "--project", "--root", str(elsewhere)]) == 0
    wired = user.files()
    config.mkdir()
    (config / "lsp.json").write_text("{}")
    (user.state / "tools" / "bin").mkdir(parents=True)
    (user.state / "tools" / "bin" / "server").symlink_to("nowhere")
    capsys.readouterr()
    assert run(["uninstall", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert {path: content for path, content in user.files().items() if "/.config/pilotfish" not in path} == wired
    assert all(f"{spec.title}: " in shown for spec in load_hosts().values())
    assert all(part in shown for part in (f"{user.state}/tools", str(config), f"{elsewhere}/.mcp.json"))
    assert run(["uninstall"]) == 1
    assert "add --yes" in capsys.readouterr().out
    assert run(["uninstall", "--yes"]) == 0
    assert user.files() == before
    assert not user.state.exists()
    assert (elsewhere / ".mcp.json").read_text() == '{"mcpServers": {"other": {}}}'
    assert {path.name for path in elsewhere.iterdir()} == {".git", ".mcp.json"}
    assert "What is left is the program itself" in capsys.readouterr().out
    assert run(["uninstall"]) == 0
    assert "There is nothing of Pilotfish" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("prefix", "programs", "last"),
    [
        (".local/share/pilotfish", "bin", "delete {home}/.local/share/pilotfish and {home}/.local/bin/pilotfish"),
        ("project/.venv", "bin", "{home}/project/.venv/bin/pip uninstall pilotfish"),
        ("project/.venv", "Scripts", "{home}/project/.venv/Scripts/pip uninstall pilotfish"),
        (".local/share/uv/tools/pilotfish", "bin", "uv tool uninstall pilotfish"),
    ],
)
def test_what_is_left_is_named_as_it_was_installed(
    user: User,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    prefix: str,
    programs: str,
    last: str,
) -> None:
    """On Windows programs are in another folder."""
    monkeypatch.setattr("pilotfish.surfaces.cli.uninstall.BIN", programs)
    assert run(["setup", "claude-code", "--project"]) == 0
    assert "asks once whether to use the MCP server of .mcp.json" in capsys.readouterr().out
    assert run(["setup", "claude-code", "--global"]) == 0
    assert "asks once whether" not in capsys.readouterr().out
    monkeypatch.setattr("sys.prefix", str(user.home / prefix))
    assert run(["uninstall", "--yes"]) == 0
    assert f"the program itself: {last.format(home=user.home)}\n" in capsys.readouterr().out


@pytest.mark.proves("PLAT-1")
def test_what_windows_does_not_delete_of_a_program_that_runs_is_named_last(
    user: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the path of the program is written otherwise than ours."""
    program = user.state / "program"
    (program / "Scripts").mkdir(parents=True)
    (program / "Scripts" / "python.exe").touch()
    unlink = os.unlink

    def delete(path: str, **more: Any) -> None:
        if path.endswith("python.exe"):
            raise PermissionError
        unlink(path, **more)

    monkeypatch.setattr(os, "unlink", delete)
    monkeypatch.setattr("sys.prefix", f"{user.state}/./program")
    assert run(["uninstall", "--yes"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.endswith(f"the program itself: delete the file pilotfish.pyz, and the folder {program}\n")


@pytest.mark.parametrize(("scope", "name"), [("global", "settings.json"), ("project", "settings.local.json")])
def test_one_file_that_cannot_be_restored_keeps_nothing_but_the_copy_of_what_it_was(
    user: User, capsys: pytest.CaptureFixture[str], scope: str, name: str
) -> None:
    """Also the other files of its host become what they were. A home is a project too: the file is named once."""
    user.give({".gemini/settings.json": '{"theme": "x"}', f".claude/{name}": '{"model": "x"}'})
    before = user.files()
    for host in ("gemini", "claude-code"):
        assert run(["setup", host, f"--{scope}"]) == 0
    (user.state / "servers").mkdir()
    (user.state / "servers" / "server").touch()
    folder = user.home if scope == "global" else user.project
    settings = folder / ".claude" / name
    settings.write_text("{,}")
    capsys.readouterr()
    assert run(["uninstall", "--yes"]) == 1
    said = capsys.readouterr()
    (copy,) = (user.state / "setup").glob("*.backup")
    assert copy.read_text() == '{"model": "x"}'
    assert {path.name for path in user.state.rglob("*")} == {"setup", copy.name, f"{copy.stem}.json"}
    assert f"{settings}: not JSON: " in said.err
    assert said.err.endswith(f"by hand what names pilotfish.\nWhat was in it before setup is in {copy}\n")
    assert (said.out + said.err).count(str(settings)) == 1
    assert f"{user.state}/setup (" not in said.out
    assert "no host of this version" not in said.err
    assert run(["uninstall", "--yes"]) == 1
    again = capsys.readouterr()
    assert (again.out, again.err) == ("No daemon is running.\n", said.err)
    settings.write_text('{"model": "x"}')
    assert user.files() == before
    assert run(["uninstall", "--yes"]) == 0
    assert not user.state.exists()


def test_a_file_that_cannot_be_written_or_that_no_host_knows_keeps_its_copy(
    user: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    user.give({".gemini/settings.json": "{}", "of-another-version": "before"})
    assert run(["setup", "gemini"]) == 0
    Receipts(str(user.state / "setup")).keep(str(user.home / "of-another-version"), b"before", b"wired")
    (user.state / "servers").mkdir()
    monkeypatch.setattr(changes, "replace_file", fail)
    assert run(["uninstall", "--yes"]) == 1
    said = capsys.readouterr().err
    assert f"{user.home}/.gemini/settings.json cannot be written: Permission denied." in said
    assert f"{user.home}/of-another-version: setup has changed it, and no host of this version knows it." in said
    assert {path.read_text() for path in user.state.rglob("*.backup")} == {"{}", "before"}
    assert not (user.state / "servers").exists()


def test_a_malformed_file_that_setup_has_never_written_is_no_reason_to_fail(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    user.give({".gemini/settings.json": "{,}"})
    before = user.files()
    assert run(["setup", "claude-code"]) == 0
    assert run(["uninstall", "--yes"]) == 0
    assert capsys.readouterr().err == ""
    assert user.files() == before
    (user.home / ".gemini" / "settings.json").write_text('{"command": "pilotfish",,}')
    assert run(["uninstall", "--dry-run"]) == 0
    assert f"{user.home}/.gemini/settings.json: not JSON" in capsys.readouterr().err


def test_what_is_not_ours_stays(user: User) -> None:
    """`PILOTFISH_HOME` may name a folder with other things in it."""
    (user.state / "photos").mkdir(parents=True)
    (user.state / "logs").mkdir()
    (user.home / ".config" / "pilotfish").mkdir(parents=True)
    (user.home / ".config" / "pilotfish" / "lsp.json").write_text("{}")
    (user.state / "trust").mkdir()
    assert run(["uninstall", "--yes", "--keep-config"]) == 0
    assert {path.name for path in user.state.iterdir()} == {"photos", "trust"}
    assert (user.home / ".config" / "pilotfish" / "lsp.json").exists()


@pytest.mark.linux("a process id is of one container")
def test_links_of_a_daemon_that_was_killed_go_and_those_of_another_stay(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = user.home / "temporary"
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with subprocess.Popen(["true"]) as killed:
        pass
    space = os.stat("/proc/self/ns/pid").st_ino
    dead, living = (temporary / f"pilotfish-links-{space}-{pid}-x" for pid in (killed.pid, os.getpid()))
    for folder in (dead, living):
        folder.mkdir(0o700, parents=True)
        (folder / "0123abcd").symlink_to(user.state / "servers")
    (user.state / "logs").mkdir(parents=True)
    assert run(["uninstall", "--yes"]) == 0
    assert list(temporary.iterdir()) == [living]


def test_the_daemon_ends_first_and_all_that_it_made_is_known(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    with no_daemon_left(str(user.state)):
        assert run(["daemon", "start", "--json"]) == 0
        pid = json.loads(capsys.readouterr().out)["pid"]
        assert {path.name for path in user.state.iterdir()} <= set(OWN)
        assert run(["uninstall", "--yes"]) == 0
        assert not alive(pid)
    assert not user.state.exists()
