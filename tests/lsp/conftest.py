"""Real programs: the client of each test, the daemon behind it, and the server behind that."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.left_behind import no_task_left_behind, nothing_left_behind
from support.servers.real import make_user, require

__all__ = ["no_task_left_behind", "nothing_left_behind"]


@pytest.fixture(autouse=True)
def servers_are_here(request: pytest.FixtureRequest) -> None:
    """Every server that the test is marked with; without one the test is skipped, in CI it fails."""
    for mark in request.node.iter_markers("server"):
        require(mark.args)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user with ty, whose processes are all gone afterwards."""
    user = make_user(tmp_path, ["ty"], {}, trusted=True)
    # git is there, as on every machine of a programmer.
    path = os.pathsep.join([user.environment["PATH"], "/usr/bin", "/bin"])
    made = DaemonHome(user.workspace, {**user.environment, "PATH": path})
    try:
        yield made
    finally:
        made.kill_all()
