"""Options and fixtures of the whole suite."""

import os
import signal
import sys
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

from support.left_behind import no_task_left_behind, nothing_left_behind
from support.servers.real import require

__all__ = ["no_task_left_behind", "nothing_left_behind"]

settings.register_profile("suite", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""A property holds however slow the machine is; the clock of a shared one says nothing about it."""
settings.register_profile("quick", settings.get_profile("suite"), max_examples=25)
"""For `./check --quick`: a wrong property mostly shows within a few examples; the gate tries all of them."""
settings.load_profile("suite")


# A shell that runs the suite in the background has it ignore both, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32":
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cycles", type=int, default=200, help="how often a leak test kills its parent")
    parser.addoption("--operations", type=int, default=3_000, help="how many random file operations a watcher follows")
    parser.addoption("--rounds", type=int, default=3, help="how often sixteen clients race to start the daemon")
    parser.addoption("--hosts", action="store_true", help="run the tests of every real host, not only of the gate's")
    parser.addoption("--ray", action="store_true", help="run the tests that need Ray")
    parser.addoption("--schedules", type=int, default=12, help="how many orders of disturbances a server's pipes see")
    parser.addoption("--portable", action="store_true", help="with the code paths of other systems")
    parser.addoption("--race", type=int, default=2_000, help="how often a file is opened while its folder is swapped")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("portable"):
        from support.portable import force, reach_programs

        force()
        if not hasattr(config, "workerinput"):
            config.add_cleanup(partial(os.unlink, reach_programs()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("portable") or sys.platform != "linux":
        left_out = [item for item in items if item.get_closest_marker("linux") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def anyio_backend() -> str:
    """What production runs on; tests in virtual time override this with trio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def servers_are_here(request: pytest.FixtureRequest) -> None:
    """Every server that the test is marked with; without one the test is skipped, in CI it fails."""
    for mark in request.node.iter_markers("server"):
        require(mark.args)
