"""What must hold, as rows: a figure out of the records, and the bound that it is held against.

A figure is that of the language that does worse. A target that nobody measured is "not measured", never passed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parity.edits import ALL as EDITS
from parity.edits import LAST_WORD, TOLD
from parity.lists import ALL as LISTS
from parity.measures import DUEL
from parity.numbers import NAN, difference, interval, median, percentile, quotient, spread
from parity.programs import CHECKED, MCP_MEMORY
from parity.records import Record

OURS = ("library", "mcp", "cli", "hook", "opencode + ours")


@dataclass(frozen=True)
class Figure:
    """A value and, where it is an estimate, its interval."""

    value: float
    low: float = NAN
    high: float = NAN


NOTHING = Figure(NAN)


@dataclass(frozen=True)
class Table:
    """All records, to be looked up."""

    records: Sequence[Record]

    def languages(self, measure: str, *subjects: str) -> list[str]:
        """Those in which all of these subjects have times."""
        found = dict.fromkeys(one.language for one in self.records if one.measure == measure)
        return [one for one in found if all(self.times(measure, subject, one) for subject in subjects)]

    def times(self, measure: str, subject: str, language: str | None = None) -> list[float]:
        return [
            value
            for one in self.records
            if (one.measure, one.subject) == (measure, subject) and language in {None, one.language}
            for value in one.milliseconds
        ]


@dataclass(frozen=True)
class Target:
    """One promise."""

    name: str
    bound: float
    figure: Callable[[Table], Figure]
    unit: str = "ms"


@dataclass(frozen=True)
class Verdict:
    target: Target
    figure: Figure

    @property
    def word(self) -> str:
        if self.figure.value != self.figure.value:  # Only "not a number" differs from itself.
            return "not measured"
        return "pass" if self.figure.value <= self.target.bound else "MISSED"


def verdicts(records: Sequence[Record]) -> tuple[Verdict, ...]:
    table = Table(records)
    return tuple(Verdict(target, target.figure(table)) for target in TARGETS)


# --- Figures -------------------------------------------------------------------------------------------------------


def _worst(figures: Sequence[Figure]) -> Figure:
    return max(figures, key=lambda one: one.value, default=NOTHING)


def ratio(measure: str, subject: str, other: str, *, of: str | None = None) -> Callable[[Table], Figure]:
    """Median of one subject by that of another in the same measure, or in the one that `of` names."""
    return lambda table: _worst(
        [
            _combined(table.times(measure, subject, one), table.times(of or measure, other, one), quotient)
            for one in table.languages(measure, subject)
            if table.times(of or measure, other, one)
        ]
    )


def over(measure: str, subject: str, other: str) -> Callable[[Table], Figure]:
    """The difference of the medians."""
    return lambda table: _worst(
        [
            _combined(table.times(measure, subject, one), table.times(measure, other, one), difference)
            for one in table.languages(measure, subject, other)
        ]
    )


def _combined(first: Sequence[float], second: Sequence[float], combined: Callable[[float, float], float]) -> Figure:
    return Figure(combined(median(first), median(second)), *spread(first, second, combined))


def middle(measure: str, subject: str) -> Callable[[Table], Figure]:
    return lambda table: _worst(
        [
            Figure(median(table.times(measure, subject, one)), *interval(table.times(measure, subject, one)))
            for one in table.languages(measure, subject)
        ]
    )


def tail(measure: str, subject: str) -> Callable[[Table], Figure]:
    return lambda table: _worst(
        [Figure(percentile(table.times(measure, subject, one), 0.95)) for one in table.languages(measure, subject)]
    )


def tail_ratio(measure: str, subject: str, other: str) -> Callable[[Table], Figure]:
    return lambda table: _worst(
        [
            Figure(
                percentile(table.times(measure, subject, one), 0.95)
                / percentile(table.times(measure, other, one), 0.95)
            )
            for one in table.languages(measure, subject, other)
        ]
    )


def most(measure: str, *subjects: str) -> Callable[[Table], Figure]:
    """The greatest value of any of them."""
    return lambda table: _worst([Figure(value) for one in subjects for value in table.times(measure, one)])


def _untrue(table: Table) -> Figure:
    ours = [one for one in table.records if one.subject in OURS]
    asked = [one for one in ours if one.milliseconds or one.unanswered]
    return Figure(float(sum(one.wrong + one.unanswered for one in asked))) if asked else NOTHING


def _slowest_edit(table: Table) -> Figure:
    return _worst([Figure(percentile(table.times(edit, "hook"), 0.95)) for edit in EDITS if table.times(edit, "hook")])


def _longest(table: Table) -> Figure:
    return _worst([over(measure, "library", "bare")(table) for measure in LISTS if table.times(measure, "library")])


def _hook_program(table: Table) -> Figure:
    """What it takes by what it may take: one and a half interpreters that do nothing, and 5 ms."""
    measure = "hook program, the wait taken off"
    hook, nothing = table.times(measure, "hook"), table.times(measure, "python -I -S -c pass")
    return _combined(hook, nothing, lambda one, other: one / (1.5 * other + 5)) if hook else NOTHING


def _growing(table: Table) -> Figure:
    """An edit after the most touched files by one after the fewest."""
    measures = [one.measure for one in table.records if one.measure.startswith("edit after ")]
    ordered = sorted(dict.fromkeys(measures), key=lambda one: int(one.split()[2]))
    return ratio(ordered[-1], "library", "library", of=ordered[0])(table) if len(ordered) > 1 else NOTHING


def _edit_ratio(table: Table) -> Figure:
    """Edit by edit, since the server's own time is that of the same edit."""
    figures: list[Figure] = []
    for kind in TOLD:
        for one in table.languages(f"edit: {kind}", "library"):
            whole = table.times(f"edit: {kind}", "library", one)
            own = table.times(LAST_WORD.format(kind), "library", one)
            quotients = [quotient(*pair) for pair in zip(whole, own, strict=False)]
            figures += [Figure(median(quotients), *interval(quotients))] if quotients else []
    return _worst(figures)


TARGETS = (
    Target("warm definition, library over bare, the two alone", 1.0, over(DUEL.format("library"), "library", "bare")),
    Target("warm definition, daemon + MCP over bare, the two alone", 3.0, over(DUEL.format("mcp"), "mcp", "bare")),
    Target("warm definition, library over bare, among all", 1.0, over("warm definition", "library", "bare")),
    Target("warm definition, daemon + MCP over bare, among all", 3.0, over("warm definition", "mcp", "bare")),
    Target("edit → diagnostics (introduce, fix, no-op), library / the server's own time", 1.1, _edit_ratio, "×"),
    Target(
        "edit that leaves a file clean / one that breaks it, library",
        1.1,
        ratio("edit: fix", "library", "library", of="edit: introduce"),
        "×",
    ),
    Target("references and symbols of 10 to 1,000 entries, library over bare, the worst", 1.0, _longest),
    Target("wrong or missing answers of ours", 0.0, _untrue, ""),
    Target("hook program / (1.5 × an interpreter that does nothing + 5 ms)", 1.0, _hook_program, "×"),
    Target("daemon, from nothing to its welcome", 150.0, middle("daemon, from nothing to greeted", "daemon")),
    Target("cold start to the first definition, daemon + MCP over bare", 400.0, over("cold definition", "mcp", "bare")),
    Target("second session, first answer", 50.0, middle("second session, first answer", "mcp")),
    Target("second session, new servers", 0.0, most("second session: new servers", "mcp"), ""),
    Target("daemon memory, nothing running", 90.0, most("memory of the daemon, nothing running", "daemon"), "MB"),
    Target("daemon memory, MCP in use", 90.0, most(MCP_MEMORY, "daemon"), "MB"),
    Target("daemon memory, after a check of 900 files", 120.0, most(CHECKED, "daemon"), "MB"),
    Target("daemon memory, per idle session", 200.0, most("memory of an idle session", "daemon"), "KB"),
    Target("growth over edits of one file", 5.0, most("growth over edits of one file", "library"), "MB"),
    Target("edit after the most touched files / after the fewest, library", 2.0, _growing, "×"),
    Target("tools/list, named", 8192.0, most("tool schema bytes", "mcp"), "bytes"),
    Target(
        "parity: warm definition p50, ours in OpenCode / its own",
        1.05,
        ratio("definition in the agent loop", "opencode + ours", "opencode"),
        "×",
    ),
    Target(
        "parity: warm definition p95, ours in OpenCode / its own",
        1.05,
        tail_ratio("definition in the agent loop", "opencode + ours", "opencode"),
        "×",
    ),
    Target(
        "parity: warm edit p50, ours in OpenCode / its own",
        1.05,
        ratio("edit in the agent loop", "opencode + ours", "opencode"),
        "×",
    ),
    Target(
        "parity: cold first edit, ours in OpenCode / its own",
        1.10,
        ratio("first edit in the agent loop", "opencode + ours", "opencode"),
        "×",
    ),
    Target(
        "parity: diagnostics in one command, ours / opencode debug lsp",
        1.10,
        ratio("diagnostics in one command, from nothing", "cli", "opencode debug lsp"),
        "×",
    ),
    Target("parity: edit → diagnostics p95, hook, the slowest kind", 3500.0, _slowest_edit),
    Target(
        "parity: processes left after the end", 0.0, most("left after the end", "library", "mcp", "cli", "hook"), ""
    ),
    Target("parity: processes left after kill -9", 0.0, most("left after kill -9", "mcp", "cli", "hook"), ""),
    Target("parity: feedback of twenty errors", 2048.0, most("feedback bytes", "library", "hook"), "bytes"),
)
