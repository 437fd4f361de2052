"""Which tests of real hosts run: those of the gate always, the others with `--hosts`; and whose homes they run in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome, daemon_home
from support.hosts.real import MANIFEST, host_home


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("hosts"):
        return
    left_out = [item for item in items if not all(map(_in_gate, item.iter_markers("host")))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user of a host, with one quick language server for Python."""
    with host_home(tmp_path) as home:
        yield home


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonHome]:
    """A user with a daemon, for all the tests of a plugin that leave it as it is."""
    with daemon_home(tmp_path_factory.mktemp("user")) as made:
        made.control(start=True).close()
        yield made


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user without a daemon, for a test of a plugin that breaks it."""
    with daemon_home(tmp_path) as made:
        made.write("a.x", "bad\n")
        yield made


def _in_gate(mark: pytest.Mark) -> bool:
    return mark.kwargs.get("gate", True) and all(MANIFEST[host].get("gate") for host in mark.args)
