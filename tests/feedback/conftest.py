"""The option of the model of freshness."""

import pytest

EXAMPLES = 130
"""In the gate, over all kinds of servers: so that this way of playing them is not forgotten."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", type=int, default=EXAMPLES, help="how many schedules Hypothesis draws")


@pytest.fixture(scope="session")
def examples(request: pytest.FixtureRequest) -> int:
    # The option is unknown when the whole suite is run: this folder is then looked at after the command line.
    return request.config.getoption("--examples", default=EXAMPLES) or EXAMPLES
