"""The option of the model of freshness."""

import pytest

EXAMPLES = 650
"""In the gate: some 30 s on one core, over all kinds of servers, and the same ones each time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", type=int, default=EXAMPLES, help="how many schedules the model of freshness plays")


@pytest.fixture(scope="session")
def examples(request: pytest.FixtureRequest) -> int:
    # The option is unknown when the whole suite is run: this folder is then looked at after the command line.
    return request.config.getoption("--examples", default=EXAMPLES) or EXAMPLES
