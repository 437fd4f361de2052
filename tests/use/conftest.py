"""A user at a shell: real configuration files, real processes, and what the verbs and the MCP tools print."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import daemon_home
from support.daemon.users import ShellUser


@pytest.fixture
def user(tmp_path: Path) -> Iterator[ShellUser]:
    with daemon_home(tmp_path) as home:
        yield ShellUser(home)
