"""Virtual time: nothing here waits for a clock. Tests with real processes ask for asyncio themselves."""

import pytest

from support.left_behind import no_task_left_behind, nothing_left_behind
from support.servers.real import require
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend", "no_task_left_behind", "nothing_left_behind"]


@pytest.fixture(autouse=True)
def servers_are_here(request: pytest.FixtureRequest) -> None:
    """Every server that the test is marked with; without one the test is skipped, in CI it fails."""
    for mark in request.node.iter_markers("server"):
        require(mark.args)
