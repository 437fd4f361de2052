"""A repository that was approved once, and what it tries afterwards; and approvals that nobody gave."""

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome, ended, fake_server
from support.files.approvals import approve
from support.files.canaries import Canary, canary
from support.via.processes import WAYS, run


@pytest.fixture
def approved(home: DaemonHome) -> DaemonHome:
    """A person approved a workspace that brings its own server, and a file that an option of it names."""
    entry = fake_server("answering", extensions=[".own"])
    (home.root / "server.sh").write_text(f"#!/bin/sh\nexec {shlex.join(entry['command'])}\n")
    (home.root / "server.sh").chmod(0o755)
    home.write("plugin.txt", "before")
    entry["command"] = ["./server.sh", "--require=./plugin.txt"]
    (home.root / ".pilotfish").mkdir()
    (home.root / ".pilotfish" / "lsp.json").write_text(json.dumps({"lsp": {"own": entry}}))
    home.write("a.own", "bad\n")
    assert "./server.sh" in approve(str(home.root), home.environment).screen
    return home


def poison(home: DaemonHome, told: Canary) -> None:
    """Change the approved program in place: same name, inode and mode."""
    script = home.root / "server.sh"
    script.write_text(script.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n: < {told}\n"))


@pytest.mark.slow
@pytest.mark.proves("T49", "T4", "A14.12")
@pytest.mark.parametrize("way", WAYS)
def test_an_approved_program_that_has_changed_does_not_run(approved: DaemonHome, tmp_path: Path, way: str) -> None:
    before = WAYS[way](approved, "a.own")
    assert ("works" if way == "doctor" else "bad word") in before, before
    told = canary(tmp_path)
    poison(approved, told)
    after = WAYS[way](approved, "a.own")
    assert "bad word" not in after
    assert not told.was_read()
    assert "trust" in after or way == "hook", after


@pytest.mark.proves("T49", "F81", "A14.12")
def test_nor_after_a_crash_within_one_session(approved: DaemonHome, tmp_path: Path) -> None:
    with approved.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.own"], "kind": "edit"})["text"]
        (server,) = (pid for pid, line in approved.processes().items() if line.split()[-1].endswith("answering"))
        told = canary(tmp_path)
        poison(approved, told)
        os.kill(server, signal.SIGKILL)
        assert ended(server)
        answer = link.request("check", {"paths": ["a.own"]})
        assert answer["ok"] is False
        assert not told.was_read()


@pytest.mark.proves("T49", "A14.15")
def test_a_file_in_an_option_that_has_changed_stops_the_server(approved: DaemonHome) -> None:
    with approved.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.own"], "kind": "edit"})["text"]
        (server,) = (pid for pid, line in approved.processes().items() if line.split()[-1].endswith("answering"))
        approved.write("plugin.txt", "after")
        assert link.request("check", {"paths": ["a.own"]})["ok"] is False
        assert ended(server)
        assert "content of plugin.txt" in run(approved, "config", "check").stdout.decode()
        approved.write("plugin.txt", "before")
        assert "bad word" in json.dumps(link.request("check", {"paths": ["a.own"]}))


@pytest.mark.slow
@pytest.mark.proves("T50", "A14.13")
@pytest.mark.parametrize("way", WAYS)
def test_a_folder_that_was_cloned_again_is_not_trusted(approved: DaemonHome, tmp_path: Path, way: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(approved.root, copy)
    shutil.rmtree(approved.root)
    shutil.copytree(copy, approved.root)
    after = WAYS[way](approved, "a.own")
    assert "bad word" not in after
    assert "trust" in after or way == "hook", after


NAMED = {
    "an option": ({"command": ["node", "--require=./x.js"]}, "x.js"),
    "a shell command": ({"command": ["sh", "-c", "true && exec ./x.sh"]}, "x.sh"),
    "a module": ({"command": ["python3", "-m", "x"]}, "x.py"),
    "a program of the environment": ({"command": ["x-server"]}, ".venv/bin/x-server"),
    "a setting": ({"command": ["server"], "settings": {"check": {"overrideCommand": ["./x.sh"]}}}, "x.sh"),
    "an option of initialization": ({"command": ["server"], "initialization": {"plugins": ["./x.js"]}}, "x.js"),
    "a variable": ({"command": ["server"], "env": {"TOOL_OPTIONS": "-javaagent:./x.jar"}}, "x.jar"),
}
"""Entries of a project, and a file that each names; `tests/config/test_named_files.py` has more of them."""


@pytest.mark.slow
@pytest.mark.proves("T49", "T4", "A14.15")
@pytest.mark.parametrize("case", NAMED)
def test_an_approval_is_of_every_file_that_is_named(home: DaemonHome, case: str) -> None:
    entry, name = NAMED[case]
    (home.root / ".pilotfish").mkdir()
    (home.root / ".pilotfish" / "lsp.json").write_text(json.dumps({"lsp": {"own": {**entry, "extensions": [".own"]}}}))
    (home.root / name).parent.mkdir(parents=True, exist_ok=True)
    home.write(name, "before")
    approve(str(home.root), home.environment)
    assert b"stale" not in run(home, "trust", "--list").stdout
    home.write(name, "after")
    assert b"stale" in run(home, "trust", "--list").stdout


EMPTY = (
    "sha256:b16da047a2853723708f72cfd3a60fcc876e860147d19177654b2dc4ce173dd3",
    "sha256:184efb08c5815820b335f387981607d3df5565887e77e8fc17d77add38c5b8e8",
)
"""The hashes of an offer of nothing, as they are computed now and were before: the same in every folder."""


@pytest.mark.proves("T51", "T6", "A14.14")
def test_a_hash_that_no_terminal_has_shown_approves_nothing(home: DaemonHome, approved: DaemonHome) -> None:
    other = {**approved.environment, "HOME": f"{home.root}-other", "PILOTFISH_HOME": f"{home.root}-other/state"}
    shown = approve(str(approved.root), other).digest
    assert shown is not None
    run(approved, "untrust")
    refused = run(approved, "trust", "--hash", shown)
    assert refused.returncode != 0
    assert b"no terminal has shown" in refused.stderr
    assert b"Nothing is trusted" in run(approved, "trust", "--list").stdout


@pytest.mark.proves("T51", "T6", "A14.14")
@pytest.mark.parametrize("constant", EMPTY)
def test_nothing_is_approved_by_the_hash_of_nothing(home: DaemonHome, constant: str) -> None:
    refused = run(home, "trust", "--hash", constant)
    assert refused.returncode != 0
    assert b"nothing that a hash could name" in refused.stderr
    assert b"Nothing is trusted" in run(home, "trust", "--list").stdout
