"""Two clocks: one for deadlines and durations, and the one on the wall for people, which jumps."""

import asyncio
import time

import anyio


def current_time() -> float:
    """The time of the loop, as `anyio.current_time` has it: that takes five times as long to find out which loop."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return anyio.current_time()  # noqa: TID251 -- the one place that may ask


class WallClock:
    """The `Clock` port over the system's time of day."""

    def wall(self) -> float:
        return time.time()  # noqa: TID251 - the one place that may ask
