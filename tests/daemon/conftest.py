"""Virtual time, and homes with daemons in real time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio.testing

from support.daemon.homes import DaemonHome, daemon_home


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user without a daemon; whatever daemon a test starts is ended after it."""
    with daemon_home(tmp_path) as made:
        yield made
