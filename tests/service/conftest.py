"""Virtual time: a time-out of ten seconds takes milliseconds, and how long a check takes is exact."""

from typing import Any

import pytest
import trio.testing


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
