"""Users with workspaces that somebody else wrote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome, daemon_home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    with daemon_home(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def old_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonHome]:
    """One that all tests of a module share, daemon and all; each brings a workspace of its own."""
    with daemon_home(tmp_path_factory.mktemp("user")) as made:
        yield made
