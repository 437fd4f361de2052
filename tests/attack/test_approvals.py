"""A repository that was approved once, and what it tries afterwards; and approvals that nobody gave."""

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from pilotfish.config.places import user_places
from support.daemon.homes import DaemonHome, ended, fake_server
from support.files.approvals import approve
from support.files.canaries import canary
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
    assert approve(str(home.root), home.environment).programs.keys() == {"server.sh", "plugin.txt"}
    return home


def poison(home: DaemonHome, told: Path) -> None:
    """Change the approved program in place: same name, inode and mode."""
    script = home.root / "server.sh"
    script.write_text(script.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\ntouch {told}\n"))


@pytest.mark.slow
@pytest.mark.proves("T49", "T4")
@pytest.mark.parametrize("way", WAYS)
def test_an_approved_program_that_has_changed_does_not_run(approved: DaemonHome, tmp_path: Path, way: str) -> None:
    before = WAYS[way](approved, "a.own")
    assert ("works" if way == "doctor" else "bad word") in before, before
    poison(approved, canary(tmp_path))
    after = WAYS[way](approved, "a.own")
    assert "bad word" not in after
    assert not canary(tmp_path).exists()
    assert "trust" in after or way == "hook", after


@pytest.mark.proves("T49", "F81")
def test_nor_after_a_crash_within_one_session(approved: DaemonHome, tmp_path: Path) -> None:
    with approved.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.own"], "kind": "edit"})["text"]
        (server,) = (pid for pid, line in approved.processes().items() if line.split()[-1].endswith("answering"))
        poison(approved, canary(tmp_path))
        os.kill(server, signal.SIGKILL)
        assert ended(server)
        answer = link.request("check", {"paths": ["a.own"]})
        assert answer["ok"] is False
        assert not canary(tmp_path).exists()


@pytest.mark.proves("T49")
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
@pytest.mark.proves("T50")
@pytest.mark.parametrize("way", WAYS)
def test_a_folder_that_was_cloned_again_is_not_trusted(approved: DaemonHome, tmp_path: Path, way: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(approved.root, copy)
    shutil.rmtree(approved.root)
    shutil.copytree(copy, approved.root)
    after = WAYS[way](approved, "a.own")
    assert "bad word" not in after
    assert "trust" in after or way == "hook", after


@pytest.mark.proves("T51", "T6")
def test_a_hash_that_no_terminal_has_shown_approves_nothing(approved: DaemonHome, tmp_path: Path) -> None:
    offer = approve(str(approved.root), approved.environment)
    run(approved, "untrust")
    refused = run(approved, "trust", "--hash", offer.digest)
    assert refused.returncode != 0
    assert b"no terminal has shown" in refused.stderr
    empty = DaemonHome(tmp_path / "empty", approved.environment)
    empty.root.mkdir()
    constant = approve(str(empty.root), empty.environment).digest
    run(empty, "untrust")
    refused = run(empty, "trust", "--hash", constant)
    assert refused.returncode != 0
    assert b"nothing that a hash could name" in refused.stderr
    assert os.listdir(user_places(approved.environment).pins) == []
