"""Virtual time, and homes with daemons in real time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome, daemon_home
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user without a daemon; whatever daemon a test starts is ended after it."""
    with daemon_home(tmp_path) as made:
        yield made
