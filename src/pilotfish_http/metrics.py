"""The counters in the text format of Prometheus, made on request. Nothing is sent anywhere."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from pilotfish.pool.counters import BUCKETS, Counters, Timings
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Broken, Key, Missing, Rested, Running, Slot, Starting, Stopping

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MIB = 1024 * 1024

Labels = Mapping[str, str]

Family = tuple[str, str, str, Iterable[tuple[Labels, float]]]
"""Name, kind, text, and the samples."""

_STATES: Mapping[type[Slot], str] = {
    Starting: "starting",
    Running: "running",
    Stopping: "stopping",
    Rested: "rested",
    Broken: "broken",
    Missing: "missing",
}


def metrics_text(
    counters: Counters, seconds: float = 0.0, sessions: int = 0, entries: Mapping[Key, Entry] | None = None
) -> str:
    """All metrics, in the text format: the counters, and present values."""
    lines = chain.from_iterable(_family(*family) for family in _families(counters, seconds, sessions, entries or {}))
    return "".join(f"{line}\n" for line in chain(lines, _histograms(counters.latency)))


def _families(counters: Counters, seconds: float, sessions: int, entries: Mapping[Key, Entry]) -> Iterator[Family]:
    yield "uptime_seconds", "gauge", "How long the daemon runs.", [({}, seconds)]
    yield "client_sessions", "gauge", "Client sessions.", [({}, sessions)]
    states = Counter(_STATES[type(entry.slot)] for entry in entries.values())
    by_state = [({"state": state}, states[state]) for state in _STATES.values()]
    yield "servers", "gauge", "Language servers by state.", by_state
    yield "server_memory_bytes", "gauge", "Memory of a server's process tree.", _memory(entries)
    for name, text, counted in (
        ("server_starts_total", "Starts of a server.", counters.starts),
        ("server_crashes_total", "Crashes of a server.", counters.crashes()),
        ("checks_total", "Checks of one file by one server.", counters.checks),
        ("check_timeouts_total", "Checks that ended without a verdict in time.", counters.time_outs),
        ("diagnostics_total", "Diagnostics found by checks.", counters.diagnostics),
    ):
        yield name, "counter", text, [({"server": server}, counted[server]) for server in sorted(counted)]
    failed = sorted(counters.failures.items())
    failures = [({"server": server, "code": code}, count) for (server, code), count in failed]
    yield "server_failures_total", "counter", "Failures of a server, by what went wrong.", failures


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    yield f"# HELP pilotfish_{name} {text}"
    yield f"# TYPE pilotfish_{name} {kind}"
    yield from (_sample(name, labels, value) for labels, value in samples)


def _sample(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    return f"pilotfish_{name}{{{inner}}} {value:g}" if inner else f"pilotfish_{name} {value:g}"


def _escaped(value: str) -> str:
    """A path may hold any bytes: what is not UTF-8 is escaped, and so are line breaks."""
    clean = value.encode("utf-8", "backslashreplace").decode()
    return clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _memory(entries: Mapping[Key, Entry]) -> Iterator[tuple[Labels, float]]:
    """One server may run twice for a root, while another configuration takes over: they are one sample. A process at
    which several worktrees take turns is the first one's."""
    measured: dict[tuple[str, str], float] = {}
    shared = set[str]()
    for key, entry in sorted(entries.items(), key=lambda pair: pair[0].root):
        if entry.memory_mib is not None and not (entry.process and entry.process in shared):
            shared.add(entry.process)
            measured[key.server, key.root] = measured.get((key.server, key.root), 0.0) + entry.memory_mib
    yield from (({"server": server, "root": root}, mib * MIB) for (server, root), mib in sorted(measured.items()))


def _histograms(latency: Mapping[str, Timings]) -> Iterator[str]:
    name = "check_seconds"
    yield from _family(name, "histogram", "From a change to its verdict, per server.", ())
    for server, histogram in sorted(latency.items()):
        below = 0
        for bound, count in zip(BUCKETS, histogram.counts, strict=False):
            below += count
            yield _sample(f"{name}_bucket", {"server": server, "le": f"{bound:g}"}, below)
        yield _sample(f"{name}_bucket", {"server": server, "le": "+Inf"}, histogram.count)
        yield _sample(f"{name}_sum", {"server": server}, histogram.total)
        yield _sample(f"{name}_count", {"server": server}, histogram.count)
