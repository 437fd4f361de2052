"""A project, and a user with ty who judges patches of it."""

import os
import subprocess
from pathlib import Path

import pytest

from support.left_behind import no_task_left_behind, nothing_left_behind
from support.servers.real import User, make_user, require
from support.values.patched_project import FILES

__all__ = ["no_task_left_behind", "nothing_left_behind"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--ray"):
        return
    left_out = [item for item in items if item.get_closest_marker("ray")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def servers_are_here() -> None:
    require(["ty"])


@pytest.fixture
def user(tmp_path: Path) -> User:
    """`tmp` is where the copies are made."""
    made = make_user(tmp_path, ["ty"], {}, trusted=True)
    (tmp_path / "tmp").mkdir()
    # git is there, as on every machine of a programmer.
    path = os.pathsep.join([made.environment["PATH"], "/usr/bin", "/bin"])
    user = User(made.workspace, {**made.environment, "PATH": path, "TMPDIR": str(tmp_path / "tmp")})
    for name, text in FILES.items():
        (user.workspace / name).write_text(text)
    for words in ("init -q", "add -A", "-c user.name=n -c user.email=e commit -qm first"):
        subprocess.run(["git", *words.split()], cwd=user.workspace, check=True)
    return user
