"""What happened, counted. Local only: nothing leaves the machine."""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from msgspec import Struct, field

from pilotfish.errors import Code
from pilotfish.system.clock import current_time

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds of the latency histogram."""


MAX_SAMPLES = 1000
"""Of each kind: enough for a 95th percentile of the last hours, 8 KB."""


class Timings(Struct):
    """How long one kind of work took: in buckets, as Prometheus has them, and the last times themselves, for exact
    percentiles of what is going on now. Bounded whatever their number."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0
    last: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds
        self.last.append(seconds)

    @property
    def count(self) -> int:
        return sum(self.counts)

    def percentile(self, percent: int) -> float:
        """The smallest latency that so many of a hundred do not exceed; 0 without any."""
        ranked = sorted(self.last)
        return ranked[max(0, -(-len(ranked) * percent // 100) - 1)] if ranked else 0.0


class Counters(Struct):
    """Per server id, but for `operations`."""

    starts: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[tuple[str, Code]] = field(default_factory=Counter[tuple[str, Code]])
    checks: Counter[str] = field(default_factory=Counter[str])
    time_outs: Counter[str] = field(default_factory=Counter[str])
    diagnostics: Counter[str] = field(default_factory=Counter[str])
    latency: dict[str, Timings] = field(default_factory=dict[str, Timings])
    """Of checks."""
    operations: dict[str, Timings] = field(default_factory=dict[str, Timings])
    """What clients asked for, by its name: `edit`, `check`, `hover`."""

    @contextmanager
    def timed(self, operation: str) -> Generator[None]:
        """Count what the block does, however it ends."""
        started = current_time()
        try:
            yield
        finally:
            self.add_operation(operation, current_time() - started)

    def add_operation(self, operation: str, seconds: float) -> None:
        self.operations.setdefault(operation, Timings()).add(seconds)

    def add_check(self, server: str, *, seconds: float, found: int, timed_out: bool) -> None:
        self.checks[server] += 1
        self.time_outs[server] += timed_out
        self.diagnostics[server] += found
        self.latency.setdefault(server, Timings()).add(seconds)

    def crashes(self) -> Mapping[str, int]:
        return {server: count for (server, code), count in self.failures.items() if code is Code.SERVER_CRASHED}
