"""What another user of the machine put above, in or beside our folder: it decides nothing."""

import json
import os
from pathlib import Path

import pytest

from pilotfish.ipc.client import Introduction, open_link
from support.daemon.homes import DaemonHome
from support.files.canaries import canary
from support.via.processes import WAYS, run

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")

POISONED = {"lsp": {"toy": {"settings": {"level": 7}}}, "feedback": {"maxFiles": 1}}


def give_away(folder: Path) -> None:
    """To another user, with all that is in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@pytest.fixture
def shared(home: DaemonHome, tmp_path: Path) -> DaemonHome:
    """Our folder in a place that all may write to, where another user has made a repository of it."""
    place = tmp_path / "shared"
    mine = place / "mine"
    mine.mkdir(parents=True)
    place.chmod(0o1777)
    (place / ".git").mkdir()
    (place / ".pilotfish").mkdir()
    (place / ".pilotfish" / "lsp.json").write_text(json.dumps(POISONED))
    (place / "theirs.x").write_text("bad\n")
    for name in (".git", ".pilotfish", "theirs.x"):
        give_away(place / name)
    (mine / "a.x").write_text("bad\n")
    return DaemonHome(mine, home.environment)


@pytest.mark.proves("T56", "A14.20")
def test_a_repository_of_another_user_above_ours_is_not_its_root(shared: DaemonHome) -> None:
    shown = json.loads(run(shared, "config", "show", "--json").stdout)
    assert shown["root"] == str(shared.root)
    with open_link(Introduction(cwd=str(shared.root)), shared.terms()) as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        answer = link.request("check", {"paths": ["../theirs.x"]})
        assert [error["code"] for error in answer["errors"]] == ["outside_workspace"]
        assert link.request("status")["root"] == str(shared.root)


@pytest.mark.slow
@pytest.mark.proves("T56", "A14.20")
@pytest.mark.parametrize("way", [way for way in WAYS if way != "doctor"])
def test_a_configuration_of_another_user_does_not_count(home: DaemonHome, way: str) -> None:
    for name in ("own", "theirs"):
        folder = home.root / name
        (folder / ".pilotfish").mkdir(parents=True)
        (folder / "a.x").write_text("bad\n")
        (folder / ".pilotfish" / "lsp.json").write_text(json.dumps({"lsp": False}))
    give_away(home.root / "theirs" / ".pilotfish")
    own, theirs = (DaemonHome(home.root / name, home.environment) for name in ("own", "theirs"))
    assert "bad word" not in WAYS[way](own, "a.x")
    assert "bad word" in WAYS[way](theirs, "a.x")
    assert "belongs to another user" in run(theirs, "config", "check").stdout.decode()


@pytest.mark.proves("T48", "T56", "A14.20")
def test_a_program_that_another_user_can_change_is_not_started(home: DaemonHome, tmp_path: Path) -> None:
    told, planted = canary(tmp_path), tmp_path / "planted"
    planted.mkdir()
    (planted / "basedpyright-langserver").write_text(f"#!/bin/sh\n: < {told}\n")
    (planted / "basedpyright-langserver").chmod(0o755)
    planted.chmod(0o777)
    home.environment["PATH"] = f"{planted}:/usr/bin:/bin"
    home.configure(lsp={})
    home.write("a.py", "import os\n")
    said = "".join(WAYS[way](home, "a.py") for way in ("hook", "check", "check without a daemon", "doctor"))
    assert not told.was_read()
    assert "other users can change the program" in said
