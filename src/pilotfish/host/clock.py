"""The wall clock, for people only: it jumps. Deadlines use `anyio.current_time()`."""

import time


class WallClock:
    """The `Clock` port over the system's time of day."""

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()  # noqa: TID251 - the one place that may ask
