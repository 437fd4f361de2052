"""One daemon that serves for all tests that use it: none of them changes what another one sees."""

from collections.abc import Iterator

import pytest

from support.clients.http import HttpServed, http_served
from support.daemon.homes import DaemonHome, daemon_home


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonHome]:
    """A user; whatever daemon a test starts is ended after all of them."""
    with daemon_home(tmp_path_factory.mktemp("user")) as made:
        yield made


@pytest.fixture(scope="session")
def served(home: DaemonHome) -> Iterator[HttpServed]:
    home.write("good.x", "fine\n")
    home.write("wrong.x", "bad\n")
    with http_served(home) as made:
        yield made
