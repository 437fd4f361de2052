"""What a person looks at beside the snapshot: one server in detail, and what was counted. Shapes, as in `api`."""

from typing import Literal

from msgspec import field

from pilotfish.api import Api


class Exchange(Api, frozen=True, kw_only=True):
    """One request to a server that has ended, without its content."""

    method: str
    asked_at: int
    """Milliseconds since the epoch."""
    duration_ms: int
    end: Literal["answered", "failed", "given up"]


class InstanceDetails(Api, frozen=True, kw_only=True):
    """What is too much for a snapshot: read when a person looks at one server."""

    root: str
    program: str = ""
    """Name and version as the server says them."""
    stderr: tuple[str, ...] = ()
    """Its last words on standard error, of the last run if it does not run now."""
    messages: tuple[str, ...] = ()
    """What it logged by way of the protocol, newest last."""
    documents: tuple[str, ...] = ()
    """Open files, the most recently used first."""
    diagnostics: dict[str, int] = field(default_factory=dict[str, int])
    """How many there are, by file."""
    exchanges: tuple[Exchange, ...] = ()
    """Newest last."""


class Latencies(Api, frozen=True, kw_only=True):
    """Of the last thousand times something was done, how long it took."""

    name: str
    count: int
    """Of all times."""
    p50_ms: int
    p95_ms: int


class ServerStats(Api, frozen=True, kw_only=True):
    server_id: str
    starts: int = 0
    failures: dict[str, int] = field(default_factory=dict[str, int])
    """By code: `server_crashed`, `init_timeout` and so on."""
    checks: int = 0
    time_outs: int = 0
    diagnostics: int = 0
    """That its checks found, of all of them together."""
    memory_mib: float | None = None


class Stats(Api, frozen=True, kw_only=True):
    """What was counted since the service was started. It stays on this machine."""

    uptime_ms: int
    operations: tuple[Latencies, ...] = ()
    checks: tuple[Latencies, ...] = ()
    """By server."""
    servers: tuple[ServerStats, ...] = ()
    memory_mib: float | None = None
    """Of this process, without the servers."""


class Restarted(Api, frozen=True, kw_only=True):
    """What became of a server at one root: it runs again, or why not."""

    root: str
    pid: int | None = None
    duration_ms: int = 0
    error: str | None = None
