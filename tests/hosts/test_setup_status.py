"""`pilotfish setup --status`: which hosts are wired, which of them are installed, and what of it works."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.test_setup_again import rewrite_json
from pilotfish.hosts.edits.json_edit import JsonEdit
from pilotfish.hosts.registry import load_host, load_hosts
from pilotfish.hosts.shared.changes import Receipts
from pilotfish.hosts.shared.host_spec import SetupScope, Way, Where, WiredFile, installed_programs
from pilotfish.hosts.shared.status import is_installed
from pilotfish.protocol.wire import JsonObject
from pilotfish.surfaces.cli.main import run
from support.daemon.homes import no_daemon_left
from support.files.canaries import canary
from support.hosts.users import User, install

pytestmark = pytest.mark.proves("HOOK-3")


@pytest.fixture
def daemon(user: User) -> Iterator[None]:
    with no_daemon_left(str(user.state)):
        yield


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of one daemon for all hosts: what is tried of them leaves nothing behind in it."""
    folder = tmp_path_factory.mktemp("state")
    with no_daemon_left(str(folder)):
        yield folder


def files_of(host: str, scope: SetupScope, way: Way, user: User) -> tuple[WiredFile, ...]:
    home = str(user.home)
    where = Where(scope, home, f"{home}/.config", str(user.project), {}, installed_programs({}), way)
    return load_host(host).files(where)


ROWS = [
    (host, scope, way)
    for host, row in load_hosts().items()
    for scope in row.scopes
    for way in row.ways
    if files_of(host, scope, way, User(Path("/")))
]


@pytest.mark.parametrize(("host", "scope", "way"), ROWS, ids=map("-".join, ROWS))
def test_status_is_true_of_every_host(
    host: str,
    scope: SetupScope,
    way: Way,
    user: User,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of one that is not installed, of one that has written its files anew, and of one whose command is gone."""
    monkeypatch.setenv("PILOTFISH_HOME", str(state))
    monkeypatch.setenv("PATH", "")
    assert run(["setup", host, f"--{scope}", "--by", way]) == 0
    files = files_of(host, scope, way, user)
    for file in files:
        if isinstance(file.edit, JsonEdit):
            Path(file.path).write_text(rewrite_json(Path(file.path).read_text()))
    absent = status_of(host, capsys, ends=0)
    assert absent["files"] == dict.fromkeys([file.path for file in files], "wired")
    assert (absent["installed"], absent["works"], absent["trouble"]) == (False, False, [])

    row = load_host(host)
    install(user, monkeypatch, *row.programs[:1])
    if not row.programs:
        # An extension of an editor is known by its files alone.
        (user.home / row.folders[0] / "theirs").mkdir(parents=True, exist_ok=True)
    present = status_of(host, capsys, ends=0)
    assert (present["installed"], present["works"], present["trouble"]) == (True, True, [])

    broken = [file.path for file in files if sys.executable in Path(file.path).read_text()]
    for path in broken:
        Path(path).write_text(Path(path).read_text().replace(sys.executable, "/gone/python"))
    found = status_of(host, capsys, ends=1)
    assert broken
    assert not found["works"]
    assert all("run setup again" in found["files"][path] for path in broken)


def status_of(host: str, capsys: pytest.CaptureFixture[str], *, ends: int) -> JsonObject:
    capsys.readouterr()
    assert run(["setup", host, "--status", "--json"]) == ends
    (status,) = json.loads(capsys.readouterr().out)
    return status


@pytest.mark.usefixtures("daemon")
def test_status_sends_a_real_event_and_says_what_works(
    user: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(user, monkeypatch, "claude", "codex", "cline", "pi")
    assert run(["setup", "--status"]) == 0
    assert "No host is wired" in capsys.readouterr().out
    for host in ("claude-code", "codex", "cline", "aider", "pi"):
        assert run(["setup", host]) == 0
    assert run(["setup", "claude-code", "--project", "--by", "mcp"]) == 0
    capsys.readouterr()
    assert run(["setup", "--status", "--json"]) == 0
    found = {(row["host"], row["scope"]): row["works"] for row in json.loads(capsys.readouterr().out)}
    wired = [("claude-code", "global"), ("claude-code", "project")]
    wired += [(host, "global") for host in ("codex", "cline", "aider", "pi")]
    assert found == dict.fromkeys(wired, True) | {("aider", "global"): False}
    assert run(["setup", "--status"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "Aider (global): not installed" in said
    assert "Codex (global): works" in said


def test_a_host_is_installed_when_something_of_it_is_there_that_setup_did_not_write(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    for host in ("claude-code", "aider", "codex"):
        assert run(["setup", host]) == 0
    assert installed(user) == set()
    (user.home / ".claude" / "projects").mkdir()
    (user.home / ".config" / "zed").mkdir(parents=True)
    assert installed(user) == {"claude-code", "zed"}


def installed(user: User) -> set[str]:
    environment = {"HOME": str(user.home), "PATH": ""}
    where = Where("global", str(user.home), str(user.home / ".config"), "", environment, installed_programs({}))
    receipts = Receipts(str(user.state / "setup"))
    return {name for name, host in load_hosts().items() if is_installed(host, where, receipts)}


@pytest.mark.usefixtures("daemon")
def test_status_says_what_does_not_work(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup", "codex"]) == 0
    file = user.home / ".codex" / "hooks.json"
    file.write_text(file.read_text().replace("python", "python-that-is-gone"))
    (user.home / ".codex" / "config.toml").unlink()
    capsys.readouterr()
    assert run(["setup", "codex", "--status"]) == 1
    said = capsys.readouterr().out
    assert "run setup again" in said
    assert "config.toml: not wired" in said
    assert "cannot be seen from here" in said


@pytest.mark.usefixtures("daemon")
def test_status_says_that_gemini_uses_it_only_in_a_trusted_folder(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["setup", "gemini", "--project"]) == 0
    capsys.readouterr()
    assert run(["setup", "gemini", "--status"]) == 0
    assert "only in a folder that is trusted" in capsys.readouterr().out


def test_status_says_that_the_configuration_is_broken(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    (user.project / ".pilotfish").mkdir()
    (user.project / ".pilotfish" / "lsp.json").write_text('{"lsp": {')
    assert run(["setup", "--status", "--root", str(user.project)]) == 0
    said = capsys.readouterr()
    assert "The configuration has an error: " in said.err
    assert "No host is wired." in said.out


@pytest.mark.proves("A17.11", "T1", "T43")
@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_nothing_of_wiring_that_a_project_has_forged_runs_or_changes(
    host: str, user: User, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a clone has it: files of every host that look like ours, and start a program of the project."""
    told, program = canary(tmp_path), user.project / "python"
    assert run(["setup", host, "--project"]) == 0
    wired = [path for path in user.project.rglob("*") if path.is_file()]
    shutil.rmtree(user.state / "setup")
    program.write_text(f"#!/bin/sh\n: < {told}\n")
    program.chmod(0o755)
    for path in wired:
        path.write_text(path.read_text().replace(sys.executable, str(program)))
    (user.project / ".vscode").mkdir()
    (user.project / ".vscode" / "mcp.json").write_text('{"mcpServers": ' + "[" * 100_000)
    before = user.files()
    monkeypatch.chdir(user.project)
    for verb in (
        ["setup", "--status"],
        ["doctor"],
        ["setup", host, "--project", "--dry-run"],
        ["uninstall", "--dry-run"],
    ):
        run(verb)
    assert "Traceback" not in capsys.readouterr().err
    assert user.files() == before
    assert not told.was_read()
