"""Options and fixtures of the whole suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cycles", type=int, default=200, help="how often a leak test kills its parent")


@pytest.fixture
def anyio_backend() -> str:
    """What production runs on; tests in virtual time override this with trio."""
    return "asyncio"
