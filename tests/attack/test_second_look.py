"""A fresh attempt after the findings of the second round were closed: ideas that were new, each with what must hold.

`docs/SECURITY.md` lists them all, with those that other files try.
"""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.model import AbsPath
from pilotfish.service.changes.journal import lock_abandoned
from pilotfish.service.launches import PythonEnvironments
from support.clients.ears import Ear
from support.daemon.homes import WAIT_SECONDS, DaemonHome, fake_server, no_daemon_left
from support.files.approvals import approve
from support.files.canaries import canary
from support.process_tree import environment
from support.servers.evil import ORDER
from support.servers.real import make_user, require
from support.via.processes import WAYS, run

CANARY = "open({told!r}).close()\n"


def server_of(home: DaemonHome) -> int:
    (daemon,) = home.daemons()
    (server,) = (pid for pid, line in home.processes().items() if pid != daemon and "supervisor" not in line)
    return server


@pytest.mark.slow
@pytest.mark.proves("T47", "A18.1")
def test_a_home_inside_the_repository_is_not_the_servers(tmp_path: Path) -> None:
    """A home has code in it: Python's user site, npm's settings."""
    require(["basedpyright"])
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=False)
    told = canary(tmp_path)
    inside = user.workspace / "home"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = inside / ".local" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (packages / "usercustomize.py").write_text(CANARY.format(told=str(told)))
    variables = {**user.environment, "HOME": str(inside), "PATH": f"{user.environment['PATH']}:/usr/bin:/bin"}
    home = DaemonHome(user.workspace, variables)
    home.write("a.py", "number: int = 'text'\n")
    with no_daemon_left(variables["PILOTFISH_HOME"]):
        said = WAYS["check"](home, "a.py")
        assert "not assignable" in said, said
    assert not told.was_read()


@pytest.mark.proves("T47", "T48", "T12", "A18.9", "A18.10")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_PRELOAD", "./evil.so"),
        ("NODE_OPTIONS", "--require ./evil.js"),
        ("JAVA_TOOL_OPTIONS", "-javaagent:./evil.jar"),
        ("RUBYOPT", "-r./evil"),
        ("PERL5OPT", "-Mevil"),
        ("PYTHONSTARTUP", "evil.py"),
        ("BASH_ENV", "./evil.sh"),
        ("GIT_DIR", "{root}/.git"),
        ("SHELL", "{root}/sh"),
        ("LC_ALL", "../../evil"),
        ("CC", "gcc -B./"),
        ("MISE_YES", "1"),
        ("MISE_TRUSTED_CONFIG_PATHS", "/"),
        ("LD_LIBRARY_PATH", "$ORIGIN/../lib"),
        ("PYTHONPATH", "/" + ":/".join(map(str, range(40_000)))),
    ],
)
def test_no_other_variable_brings_code_of_the_repository(home: DaemonHome, name: str, value: str) -> None:
    home.write("a.x", "bad\n")
    # Not by a process' own environment, whose strings the kernel bounds: by the message, as any client can.
    variables = {**home.environment, name: value.format(root=home.root)}
    home.control(start=True).close()
    with open_link(Introduction(cwd=str(home.root)), Terms(variables, False, WAIT_SECONDS)) as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        assert name not in environment(server_of(home))


@pytest.mark.proves("T26", "T48", "A18.11")
def test_a_path_without_end_is_cut(home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    home.control(start=True).close()
    endless = os.pathsep.join(f"/nowhere/{number}" for number in range(100_000))
    variables = {**home.environment, "PATH": f"{home.environment['PATH']}:{endless}"}
    with open_link(Introduction(cwd=str(home.root)), Terms(variables, False, WAIT_SECONDS)) as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        assert len(environment(server_of(home))["PATH"].split(os.pathsep)) <= 500


@pytest.mark.proves("T49", "A14.4", "A18.12")
def test_a_change_that_keeps_size_and_time_is_a_change(home: DaemonHome, tmp_path: Path) -> None:
    script, told = home.root / "server.sh", canary(tmp_path)
    line = f"exec {shlex.join(fake_server('answering')['command'])}\n"
    script.write_text(f"#!/bin/sh\n#{'x' * len(f': < {told}')}\n{line}")
    script.chmod(0o755)
    (home.root / ".pilotfish").mkdir()
    entry = {"own": {"command": ["./server.sh"], "extensions": [".own"]}}
    (home.root / ".pilotfish" / "lsp.json").write_text(json.dumps({"lsp": entry}))
    home.write("a.own", "bad\n")
    approve(str(home.root), home.environment)
    with home.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.own"], "kind": "edit"})["text"]
        before = script.stat()
        script.write_text(f"#!/bin/sh\n : < {told}\n{line}")
        os.utime(script, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (script.stat().st_size, script.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        assert link.request("check", {"paths": ["a.own"]})["ok"] is False
    assert not told.was_read()


@pytest.mark.proves("T49", "A18.13")
def test_a_program_of_the_same_name_in_a_folder_below_was_not_approved(home: DaemonHome, tmp_path: Path) -> None:
    told, inner = canary(tmp_path), home.root / "inner"
    inner.mkdir()
    for folder, text in ((home.root, "true"), (inner, f": < {told}")):
        (folder / "server.sh").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "server.sh").chmod(0o755)
    (home.root / ".pilotfish").mkdir()
    entry = {"own": {"command": ["./server.sh"], "extensions": [".own"], "roots": ["marker"]}}
    (home.root / ".pilotfish" / "lsp.json").write_text(json.dumps({"lsp": entry}))
    (inner / "marker").write_text("")
    (inner / "a.own").write_text("bad\n")
    approve(str(home.root), home.environment)
    said = "".join(WAYS[way](home, "inner/a.own") for way in ("hook", "check", "check without a daemon", "MCP"))
    assert not told.was_read()
    assert "is not what was approved" in said


@pytest.mark.proves("T53", "T28", "A18.22")
def test_no_file_is_moved_to_where_it_would_steer(home: DaemonHome) -> None:
    home.write("a.x", f"{ORDER}\n")
    (home.root / "rules").mkdir()
    (home.root / "rules" / "a.x").write_text(f"{ORDER}\n")
    with home.link() as link:
        for old, new in (
            ("a.x", "CLAUDE.local.md"),
            ("a.x", ".cursor/rules/a.mdc"),
            ("a.x", ".github/instructions/a.instructions.md"),
            ("a.x", "sub/.Claude/CLAUDE.MD"),
            ("rules", ".clinerules"),
            ("rules", ".claude"),
        ):
            question = {"operation": "renameFile", "filePath": old, "newPath": new, "apply": True}
            assert link.request("ask", question)["ok"] is False, new
            assert not (home.root / new).exists()
            assert (home.root / old).exists()


@pytest.mark.slow
@pytest.mark.proves("T52", "A18.21")
@pytest.mark.parametrize(
    ("server", "name", "text"),
    [
        ("json", "a.json", '{"$schema": "./s.json", "a": }\n'),
        ("yaml", "a.yaml", "# yaml-language-server: $schema=s.json\na: [1\n"),
    ],
)
def test_a_schema_of_the_repository_that_refers_elsewhere_is_not_followed(
    tmp_path: Path, server: str, name: str, text: str
) -> None:
    require([server])
    user = make_user(tmp_path, [server], {}, trusted=False)
    home = DaemonHome(user.workspace, {**user.environment, "PATH": f"{user.environment['PATH']}:/usr/bin:/bin"})
    ear = Ear()
    home.write("s.json", json.dumps({"allOf": [{"$ref": ear.address}], "$schema": ear.address}))
    home.write(name, text)
    with no_daemon_left(home.environment["PILOTFISH_HOME"]):
        assert "error" in WAYS["check without a daemon"](home, name)
    ear.close()
    assert ear.heard == []


@pytest.mark.proves("T6", "T51", "A18.27")
def test_trust_is_not_taken_from_an_answer_that_was_typed_ahead(home: DaemonHome) -> None:
    for given in (b"y\n", b"yes\n" * 100):
        assert run(home, "trust", given=given).returncode != 0
    assert b"Nothing is trusted" in run(home, "trust", "--list").stdout


@pytest.mark.slow
@pytest.mark.proves("T47", "T1", "A18.2")
@pytest.mark.parametrize(
    ("variable", "way"),
    [
        ("HOME", "hook"),
        ("HOME", "check without a daemon"),
        ("HOME", "service"),
        ("HOME", "doctor"),
        ("XDG_CONFIG_HOME", "check"),
    ],
)
def test_a_configuration_in_the_repository_is_never_the_users(
    home: DaemonHome, tmp_path: Path, variable: str, way: str
) -> None:
    told, inside = canary(tmp_path), home.root / "inside"
    folder = inside / (".config/pilotfish" if variable == "HOME" else "pilotfish")
    folder.mkdir(parents=True)
    command = ["/bin/sh", "-c", f": < {told}"]
    entry = {"toy": {"command": command, "extensions": [".x"]}}
    rules = {"projectConfigPolicy": "always", "trustedProjectRoots": ["/**"]}
    (folder / "lsp.json").write_text(json.dumps({"lsp": entry, "security": rules}))
    home.write("a.x", "bad\n")
    home.environment[variable] = str(inside)
    said = WAYS[way](home, "a.x")
    assert not told.was_read(), said
    assert "the user's file is inside the workspace" in run(home, "config", "check").stdout.decode()


@pytest.mark.slow
@pytest.mark.proves("T47", "A18.3")
@pytest.mark.parametrize(
    ("value", "way"),
    [
        ("{root}/state", "hook"),
        ("{root}/state", "check"),
        ("{root}/state", "service"),
        ("{root}/state", "doctor"),
        ("state", "check without a daemon"),
    ],
)
def test_a_state_in_the_repository_is_never_ours(tmp_path: Path, value: str, way: str) -> None:
    """Programs of ours, interpreters of ours and journals are in there."""
    require(["basedpyright"])
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=False)
    told = canary(tmp_path)
    tools = user.workspace / "state" / "tools" / "bin"
    tools.mkdir(parents=True)
    for name in ("basedpyright-langserver", "python3", "node", "git"):
        (tools / name).write_text(f"#!/bin/sh\n: < {told}\n")
        (tools / name).chmod(0o755)
    variables = {**user.environment, "PATH": f"{user.environment['PATH']}:/usr/bin:/bin"}
    home = DaemonHome(user.workspace, {**variables, "PILOTFISH_HOME": value.format(root=user.workspace)})
    home.write("a.py", "number: int = 'text'\n")
    with no_daemon_left(home.environment["PILOTFISH_HOME"]):
        said = WAYS[way](home, "a.py")
    assert not told.was_read(), said
    assert "not assignable" not in said


@pytest.mark.proves("T47", "TRUST-8", "A18.4")
def test_an_interpreter_that_somebody_put_where_ours_would_be_does_not_run(tmp_path: Path) -> None:
    root, told = tmp_path / "root", canary(tmp_path)
    packages = root / ".venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    known = PythonEnvironments(AbsPath(str(root)), {"HOME": str(tmp_path)}, str(tmp_path / "pythons"))
    made = known.interpreter(AbsPath(str(root)))
    assert made is not None
    honest = Path(made).read_text()
    for planted, mode in ((f"#!/bin/sh\n: < {told}\n", 0o700), (honest, 0o777)):
        Path(made).write_text(planted)
        Path(made).chmod(mode)
        assert known.interpreter(AbsPath(str(root))) == made
        assert Path(made).read_text() == honest
        assert Path(made).stat().st_mode & 0o777 == 0o700


@pytest.mark.proves("T47", "T15", "A18.5")
def test_a_journal_that_others_could_have_written_is_not_taken_up(tmp_path: Path) -> None:
    journal = tmp_path / "journal" / "0123456789abcdef"
    journal.mkdir(parents=True)
    (journal / "plan").write_text(json.dumps({"files": [], "made": [], "emptied": []}))
    for mode, count in ((0o755, 0), (0o707, 0), (0o700, 1)):
        journal.chmod(mode)
        assert len(list(lock_abandoned(AbsPath(str(journal.parent))))) == count
