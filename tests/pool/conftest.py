"""Virtual time: a time-out of two minutes takes milliseconds, and nothing here can be flaky by the clock."""

from typing import Any

import pytest
import trio.testing


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
