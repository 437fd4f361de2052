"""Options of the marker tests, and what holds for each of them."""

import pytest

from support.left_behind import no_task_left_behind, nothing_left_behind
from support.real_servers import require

__all__ = ["no_task_left_behind", "nothing_left_behind"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the goldens of the marker cases")


@pytest.fixture(autouse=True)
def servers_are_here(request: pytest.FixtureRequest) -> None:
    """Every server that the test is marked with; without one the test is skipped, in CI it fails."""
    for mark in request.node.iter_markers("server"):
        require(mark.args)
