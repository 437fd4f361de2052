"""Which tests of real hosts run: those of the gate always, the others with `--hosts`; and whose homes they run in."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome, daemon_home
from support.hosts.real import CPU, MANIFEST, RUN_SECONDS, host_home
from support.hosts.users import User

HOST_SECONDS = 3 * RUN_SECONDS
"""For a test that runs a host: the usual limit is shorter than what the host alone may take on a busy machine."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = _is_released if config.getoption("hosts") else _in_gate
    left_out = [item for item in items if not all(map(chosen, item.iter_markers("host")))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in items:
        if item.get_closest_marker("host") is not None and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(HOST_SECONDS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    missing = [host for host, row in MANIFEST.items() if CPU not in row.get("cpus", [CPU])]
    if config.getoption("hosts") and missing:
        terminalreporter.write_line(f"not run, because they have no package for {CPU}: {', '.join(missing)}")


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


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    user = User(tmp_path.resolve())
    user.home.mkdir()
    (user.project / ".git").mkdir(parents=True)
    for name in list(os.environ):
        if name.endswith(("_HOME", "_DIR")) or name.startswith("XDG_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(user.home))
    monkeypatch.setenv("PILOTFISH_HOME", str(user.state))
    monkeypatch.chdir(user.project)
    return user


def _is_released(mark: pytest.Mark) -> bool:
    return all(CPU in MANIFEST[host].get("cpus", [CPU]) for host in mark.args)


def _in_gate(mark: pytest.Mark) -> bool:
    return mark.kwargs.get("gate", True) and all(MANIFEST[host].get("gate") for host in mark.args)
