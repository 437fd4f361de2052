"""Variables of whoever asks that lead into an untrusted repository: no server gets them, whatever the way in."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.hosts.shared.host_spec import installed_programs
from pilotfish.ipc.client import Introduction, Terms, open_link
from support.daemon.homes import WAIT_SECONDS, DaemonHome, no_daemon_left
from support.files.canaries import canary
from support.process_tree import environment
from support.servers.real import make_user, require
from support.via.processes import WAYS

CANARY = "open({told!r}).close()\n"
"""Runs at the start of every Python that finds it."""


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user of a real server that is a Python program, in a repository that nobody trusts."""
    require(["basedpyright"])
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=False)
    home = DaemonHome(user.workspace, {**user.environment, "PATH": f"{user.environment['PATH']}:/usr/bin:/bin"})
    home.write("a.py", "number: int = 'text'\n")
    with no_daemon_left(home.environment["PILOTFISH_HOME"]):
        yield home


@pytest.mark.slow
@pytest.mark.proves("T47", "T12", "A14.11")
@pytest.mark.parametrize("way", WAYS)
def test_a_module_of_the_repository_is_not_loaded_into_a_real_server(
    victim: DaemonHome, tmp_path: Path, way: str
) -> None:
    told = canary(tmp_path)
    victim.write("sitecustomize.py", CANARY.format(told=str(told)))
    victim.environment["PYTHONPATH"] = f".:{victim.root}"
    said = WAYS[way](victim, "a.py")
    assert ("works" if way == "doctor" else "not assignable") in said, said
    assert not told.was_read()


@pytest.mark.proves("T47", "T12", "A13.3")
@pytest.mark.parametrize("program", [("pilotfish",), ("python", "-m", "pilotfish")], ids=" ".join)
@pytest.mark.parametrize("words", [("--help",), ("check", "a.x"), ("hook", "plain"), ("mcp",)], ids=" ".join)
def test_a_module_of_the_current_folder_is_not_loaded_into_ours(
    home: DaemonHome, tmp_path: Path, program: tuple[str, ...], words: tuple[str, ...]
) -> None:
    told = canary(tmp_path)
    for name in MODULES:
        home.write(f"{name}.py", CANARY.format(told=str(told)))
    home.write("a.x", "bad\n")
    done = subprocess.run(
        [f"{os.path.dirname(sys.executable)}/{program[0]}", *program[1:], *words],
        env={**home.environment, "PYTHONPATH": "."},
        cwd=home.root,
        input=b'{"files":["a.x"]}' if words[0] == "hook" else b"",
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.stderr == b""
    assert bool(done.stdout) is (words[0] != "mcp")
    assert not told.was_read()


@pytest.mark.proves("T47", "T12", "A13.3")
def test_no_module_of_the_current_folder_is_loaded_into_the_hook_program_that_setup_writes(
    home: DaemonHome, tmp_path: Path
) -> None:
    told = canary(tmp_path)
    for name in (*MODULES, "pilotfish", "sitecustomize", "usercustomize", "encodings"):
        home.write(f"{name}.py", CANARY.format(told=str(told)))
    home.write("a.x", "bad\n")
    variables = {"PYTHONPATH": ".", "PYTHONSTARTUP": "sitecustomize.py", "PYTHONHOME": "."}
    done = subprocess.run(
        installed_programs({}).hook("plain"),
        env={**home.environment, **variables},
        cwd=home.root,
        input=b'{"files":["a.x"]}',
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (bool(done.stdout), done.stderr) == (True, b"")
    assert not told.was_read()


MODULES = ("anyio", "click", "json", "msgspec", "select", "socket", "subprocess", "typing")

LEADING = {
    "CC": "./cc",
    "CONDA_PREFIX": "{root}/conda",
    "GOFLAGS": "-toolexec=./tool",
    "GOROOT": "go",
    "LD_LIBRARY_PATH": "{root}/lib",
    "LUA_PATH": "/usr/share/?.lua;./?.lua",
    "MISE_CONFIG_FILE": "{root}/mise.toml",
    "NODE_PATH": "{root}/node_modules:.",
    "PERL5LIB": "lib",
    "PYTHONPATH": ":{root}",
    "RUBYLIB": "/proc/self/cwd",
    "VIRTUAL_ENV": "{root}/.venv",
    "XDG_CONFIG_HOME": "{root}/.config",
}


@pytest.mark.proves("T47", "A14.11")
def test_no_variable_that_leads_into_the_root_reaches_a_server(home: DaemonHome) -> None:
    home.environment.update({name: value.format(root=home.root) for name, value in LEADING.items()})
    home.environment["PATH"] = f"{home.root}/bin:.:/proc/self/cwd/bin:{home.environment['PATH']}"
    home.environment["XDG_CONFIG_HOME"] = f"{home.environment['HOME']}/.config"
    home.write("a.x", "bad\n")
    with home.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        (daemon,) = home.daemons()
        (server,) = (pid for pid, line in home.processes().items() if pid != daemon and "supervisor" not in line)
        given = environment(server)
    assert given.keys() & LEADING.keys() == {"XDG_CONFIG_HOME"}
    assert str(home.root) not in given["PATH"].split(os.pathsep)
    assert not any(entry.startswith((str(home.root), ".", "/proc")) for entry in given["PATH"].split(os.pathsep))


@pytest.mark.slow
@pytest.mark.proves("T9", "T48", "A14.18", "A18.6")
@pytest.mark.parametrize("way", WAYS)
def test_a_path_into_the_repository_does_not_decide_which_program_runs(
    victim: DaemonHome, tmp_path: Path, way: str
) -> None:
    told, planted = canary(tmp_path), victim.root / "bin"
    planted.mkdir()
    for name in ("basedpyright-langserver", "node", "python3", "git"):
        (planted / name).write_text(f"#!/bin/sh\n: < {told}\n")
        (planted / name).chmod(0o755)
    (tmp_path / "alias").symlink_to(planted)
    entries = (str(planted), "bin", str(tmp_path / "alias"), "/proc/self/cwd/bin", victim.environment["PATH"])
    victim.environment["PATH"] = os.pathsep.join(entries)
    said = WAYS[way](victim, "a.py")
    assert ("works" if way == "doctor" else "not assignable") in said, said
    assert not told.was_read()


@pytest.mark.proves("T48", "REG-4", "A14.18")
def test_what_one_client_has_set_is_not_in_the_server_of_another(home: DaemonHome, tmp_path: Path) -> None:
    home.write("a.x", "bad\n")
    poisoned = {**home.environment, "PYTHONPATH": str(tmp_path / "elsewhere")}
    passing = {**home.environment, "TERM": "dumb", "PATH": f"{tmp_path}:{home.environment['PATH']}"}
    found = list[set[int]]()
    for variables in (poisoned, home.environment, passing):
        with open_link(Introduction(cwd=str(home.root)), Terms(variables, True, WAIT_SECONDS)) as link:
            assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
            found.append(
                {pid for pid, line in home.processes().items() if "fakels" in line and "supervisor" not in line}
            )
    first, second, third = found
    assert len(first) == 1
    assert len(second) == 2
    assert second == third, "what changes nothing must not cost a second server"
    (clean,) = second - first
    assert "PYTHONPATH" not in environment(clean)
