"""Virtual time: a time-out of ten seconds takes milliseconds, and how long a check takes is exact.

A conftest or module that wants it imports `anyio_backend` from here.
"""

from collections.abc import Callable
from typing import Any

import anyio.lowlevel
import anyio.to_thread
import pytest
import trio.testing


async def _run_here(work: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:
    await anyio.lowlevel.checkpoint()
    return work(*arguments)


@pytest.fixture
def anyio_backend(monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, Any]]:
    """The clock jumps whenever every task waits, also for a thread: so what a thread would do is done at once."""
    monkeypatch.setattr(anyio.to_thread, "run_sync", _run_here)
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
