"""What happened, counted. Local only: nothing leaves the machine."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotfish.errors import Code, Failure

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds of the latency histogram."""


@dataclass(slots=True)
class Histogram:
    """Latencies in buckets, as Prometheus has them: bounded whatever the number of measurements."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        bucket = next((index for index, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        self.counts[bucket] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass(slots=True)
class Counters:
    """Per server id."""

    starts: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[tuple[str, Code]] = field(default_factory=Counter[tuple[str, Code]])
    checks: Counter[str] = field(default_factory=Counter[str])
    time_outs: Counter[str] = field(default_factory=Counter[str])
    diagnostics: Counter[str] = field(default_factory=Counter[str])
    latency: dict[str, Histogram] = field(default_factory=dict[str, Histogram])

    def started(self, server: str) -> None:
        self.starts[server] += 1

    def failed(self, server: str, failure: Failure) -> None:
        self.failures[server, failure.code] += 1

    def checked(self, server: str, *, seconds: float, found: int, timed_out: bool) -> None:
        """One check of one file by one server."""
        self.checks[server] += 1
        self.time_outs[server] += timed_out
        self.diagnostics[server] += found
        self.latency.setdefault(server, Histogram()).add(seconds)

    def crashes(self) -> Mapping[str, int]:
        crashed: Counter[str] = Counter()
        for (server, code), count in self.failures.items():
            if code is Code.SERVER_CRASHED:
                crashed[server] += count
        return crashed
