"""What must hold, as rows: a figure out of the records, and the bound that it is held against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parity.measures import Record
from parity.numbers import median, percentile

EDITS = tuple(
    f"edit: {what}" for what in ("introduce", "fix", "no-op", "cross-file", "created", "deleted", "outside edit")
)


@dataclass(frozen=True)
class Table:
    """All records, to be looked up."""

    records: Sequence[Record]

    def all(self, measure: str, subject: str) -> list[Record]:
        return [one for one in self.records if (one.measure, one.subject) == (measure, subject)]

    def times(self, measure: str, subject: str, language: str | None = None) -> list[float]:
        found = [one for one in self.all(measure, subject) if language in {None, one.language}]
        return [value for one in found for value in one.milliseconds]

    def value(self, measure: str, subject: str) -> float:
        """The first value of a measure that is one figure."""
        return median(self.times(measure, subject))


@dataclass(frozen=True)
class Target:
    """One promise. `figure` is not a number when nothing of it was measured."""

    name: str
    bound: float
    figure: Callable[[Table], float]
    unit: str = "ms"


@dataclass(frozen=True)
class Verdict:
    target: Target
    figure: float

    @property
    def word(self) -> str:
        if self.figure != self.figure:  # Only "not a number" differs from itself.
            return "not measured"
        return "pass" if self.figure <= self.target.bound else "MISSED"


def _worst_overhead(table: Table, subject: str) -> float:
    """p50 of a warm definition over the floor's, in the worse of the languages."""
    over = [
        median(table.times("warm definition", subject, one.language))
        - median(table.times("warm definition", "bare", one.language))
        for one in table.all("warm definition", subject)
    ]
    return max(over, default=float("nan"))


def _worst_ratio(table: Table, measure: str, subject: str, other: str) -> float:
    ratios = [
        median(table.times(measure, subject, one.language)) / median(table.times(measure, other, one.language))
        for one in table.all(measure, subject)
        if table.times(measure, other, one.language)
    ]
    return max(ratios, default=float("nan"))


def _wrong(table: Table, subjects: Sequence[str]) -> float:
    return float(sum(one.wrong + one.unanswered for one in table.records if one.subject in subjects))


def _clean_over_broken(table: Table) -> float:
    ratios = [
        median(table.times("edit: fix", "library", one.language))
        / median(table.times("edit: introduce", "library", one.language))
        for one in table.all("edit: fix", "library")
    ]
    return max(ratios, default=float("nan"))


OURS = ("library", "mcp", "cli", "hook")

TARGETS = (
    Target("warm definition, library over bare", 1.0, lambda table: _worst_overhead(table, "library")),
    Target(
        "warm definition, library / bare", 1.2, lambda t: _worst_ratio(t, "warm definition", "library", "bare"), "×"
    ),
    Target("warm definition, daemon + MCP over bare", 3.0, lambda table: _worst_overhead(table, "mcp")),
    Target(
        "edit → diagnostics (introduce), library / bare",
        1.1,
        lambda t: _worst_ratio(t, "edit: introduce", "library", "bare"),
        "×",
    ),
    Target("edit that leaves a file clean / one that breaks it, library", 1.1, _clean_over_broken, "×"),
    Target("wrong or missing answers of ours", 0.0, lambda table: _wrong(table, OURS), ""),
    Target(
        "edit → diagnostics p95, hook", 3500.0, lambda table: percentile(table.times("edit: introduce", "hook"), 0.95)
    ),
    Target("second session, first answer", 50.0, lambda table: table.value("second session", "mcp")),
    Target("second session, new servers", 0.0, lambda table: table.value("second session: new servers", "mcp"), ""),
    Target("daemon memory, one server's session", 90.0, lambda table: table.value("memory of the bridge", "mcp"), "MB"),
    Target("processes left after the end", 0.0, lambda table: table.value("left after the end", "mcp"), ""),
    Target("processes left after kill -9", 0.0, lambda table: table.value("left after kill -9", "mcp"), ""),
    Target("feedback of twenty errors", 2048.0, lambda table: table.value("feedback bytes", "hook"), "bytes"),
    Target("tools/list, named", 8192.0, lambda table: table.value("tool schema bytes", "mcp"), "bytes"),
    Target(
        "warm, ours in OpenCode / its own",
        1.05,
        lambda t: _worst_ratio(t, "edit in the agent loop", "opencode + ours", "opencode"),
        "×",
    ),
    Target(
        "cold, ours in OpenCode / its own",
        1.10,
        lambda t: _worst_ratio(t, "first edit in the agent loop", "opencode + ours", "opencode"),
        "×",
    ),
)


def verdicts(records: Sequence[Record]) -> tuple[Verdict, ...]:
    table = Table(records)
    return tuple(Verdict(target, target.figure(table)) for target in TARGETS)
