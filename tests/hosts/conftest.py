"""Which tests of real hosts run: those of the gate always, the others with `--hosts`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemons import DaemonHome
from support.hosts import MANIFEST, host_home


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


def _in_gate(mark: pytest.Mark) -> bool:
    return mark.kwargs.get("gate", True) and all(MANIFEST[host].get("gate") for host in mark.args)
