"""What must hold, and the report of a run: Markdown for people, JSON for `compare`, plots. Nothing is rounded up.

A target is a row of `targets.toml`: a figure out of the records, and the bound that it is held against. A figure is of
the language that does worse. A target that nobody measured is "not measured", never passed.
What was measured and what somebody says about it stay apart: remarks are a file of their own, taken over as they are.
"""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from harness.numbers import NAN, difference, interval, median, percentile, quotient, spread
from harness.pages import HIGH, MIDDLE, Bar, chart, circumstances, listed, table
from harness.servers import CLONE

from parity.measures import EDITS, LAST_WORD, LISTS, TOLD
from parity.records import Bench, Record
from parity.subjects import PEERS

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

    def languages(self, measure: str) -> list[str]:
        return list(dict.fromkeys(one.language for one in self.records if one.measure == measure))

    def times(self, measure: str, subject: str, language: str | None = None) -> list[float]:
        return [
            value
            for one in self.records
            if (one.measure, one.subject) == (measure, subject) and language in {None, one.language}
            for value in one.milliseconds
        ]


class Target:
    """One promise; `figure` has one item, the name of its figure and what that is given."""

    def __init__(self, name: str, bound: float, unit: str = "ms", **figure: Sequence[str]) -> None:
        self.name, self.bound, self.unit = name, bound, unit
        ((self._figure, self._given),) = figure.items()

    def figure(self, table: Table) -> Figure:
        return FIGURES[self._figure](table, *self._given)


DATA = tomllib.loads(Path(__file__).with_name("targets.toml").read_text())
TARGETS = tuple(Target(**row) for row in DATA["targets"])


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


def _of_two(
    figure: Callable[[Sequence[float], Sequence[float]], Figure],
) -> Callable[..., Figure]:
    """Of two subjects in the same measure, or the other in the one that `of` names, in every language that has both."""

    def worst(table: Table, measure: str, subject: str, other: str, of: str = "") -> Figure:
        several = [
            (table.times(measure, subject, one), table.times(of or measure, other, one))
            for one in table.languages(measure)
        ]
        return _worst([figure(*times) for times in several if all(times)])

    return worst


def _combined(first: Sequence[float], second: Sequence[float], combined: Callable[[float, float], float]) -> Figure:
    return Figure(combined(median(first), median(second)), *spread(first, second, combined))


_over = _of_two(lambda one, other: _combined(one, other, difference))


def _middle(table: Table, measure: str, subject: str) -> Figure:
    several = [table.times(measure, subject, one) for one in table.languages(measure)]
    return _worst([Figure(median(times), *interval(times)) for times in several if times])


def _most(table: Table, measure: str, *subjects: str) -> Figure:
    """The greatest value of any of them."""
    return _worst([Figure(value) for one in subjects for value in table.times(measure, one)])


def _untrue(table: Table) -> Figure:
    ours = [one for one in table.records if one.subject in OURS]
    asked = [one for one in ours if one.milliseconds or one.unanswered]
    return Figure(float(sum(one.wrong + one.unanswered for one in asked))) if asked else NOTHING


def _slowest_edit(table: Table) -> Figure:
    return _worst([Figure(percentile(table.times(edit, "hook"), 0.95)) for edit in EDITS if table.times(edit, "hook")])


def _longest(table: Table) -> Figure:
    return _worst([_over(table, measure, "library", "bare") for measure in LISTS if table.times(measure, "library")])


def _hook_program(table: Table) -> Figure:
    """What it takes by what it may take: one and a half interpreters that do nothing, and 5 ms."""
    measure = "hook program, the wait taken off"
    hook, nothing = table.times(measure, "hook"), table.times(measure, "python -I -S -c pass")
    return _combined(hook, nothing, lambda one, other: one / (1.5 * other + 5)) if hook else NOTHING


def _growing(table: Table) -> Figure:
    """An edit after the most touched files by one after the fewest."""
    measures = [one.measure for one in table.records if one.measure.startswith("edit after ")]
    ordered = sorted(dict.fromkeys(measures), key=lambda one: int(one.split()[2]))
    return FIGURES["ratio"](table, ordered[-1], "library", "library", ordered[0]) if len(ordered) > 1 else NOTHING


def _edit_ratio(table: Table) -> Figure:
    """Edit by edit, since the server's own time is that of the same edit."""
    figures: list[Figure] = []
    for kind in TOLD:
        for one in table.languages(f"edit: {kind}"):
            whole = table.times(f"edit: {kind}", "library", one)
            own = table.times(LAST_WORD.format(kind), "library", one)
            quotients = [quotient(*pair) for pair in zip(whole, own, strict=False)]
            figures += [Figure(median(quotients), *interval(quotients))] if quotients else []
    return _worst(figures)


FIGURES: Mapping[str, Callable[..., Figure]] = {
    "over": _over,
    "ratio": _of_two(lambda one, other: _combined(one, other, quotient)),
    "tail_ratio": _of_two(lambda one, other: Figure(percentile(one, 0.95) / percentile(other, 0.95))),
    "middle": _middle,
    "most": _most,
    "untrue": _untrue,
    "slowest_edit": _slowest_edit,
    "longest": _longest,
    "hook_program": _hook_program,
    "growing": _growing,
    "edit_ratio": _edit_ratio,
}


# --- The report ------------------------------------------------------------------------------------------------------

REMARKS = Path(__file__).parent / "remarks.md"

UNITS: Mapping[str, str] = DATA["units"]
"""How the names of measures begin that are figures, with their units, the longest counting; all others are times."""

PLOTTED: Mapping[str, str] = DATA["plots"]
"""Measure → the name of its plot."""


def written(folder: Path, bench: Bench, command: str) -> Path:
    """Write `REPORT.md`, `report.json` and `plots/`; returns the report."""
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    about, records = _about(command, bench.loads), bench.records
    data = {
        "about": about,
        "plan": asdict(bench.plan),
        "records": [asdict(one) | {"milliseconds": [round(each, 3) for each in one.milliseconds]} for one in records],
    }
    (folder / "report.json").write_text(json.dumps(data) + "\n")
    head = (
        "# Benchmark report\n\nWhat the program printed, of one run. Everybody works on the same fixtures with the "
        "same language servers, each with processes of its own, in turns. Read the ratios; what stands behind them in "
        f"brackets is a 95 % interval.\n\n{listed(about)}\n"
    )
    parts = [head]
    if bench.broken:
        parts.append("## Parts that broke\n\n" + "".join(f"- {one}\n" for one in bench.broken))
    parts.append(_targets(records))
    for measure in dict.fromkeys(one.measure for one in records):
        found = [one for one in records if one.measure == measure]
        parts.append(_times(measure, found) if unit(measure) is None else _figures(measure, found))
        if measure in PLOTTED:
            name = f"plots/{PLOTTED[measure]}.svg"
            (folder / name).write_text(bars(measure, found))
            parts.append(f"![{measure}]({name})\n")
    if REMARKS.exists():
        parts.append(f"## Remarks\n\nWritten by hand about the figures above.\n\n{REMARKS.read_text()}")
    report = folder / "REPORT.md"
    report.write_text("\n".join(parts))
    return report


def unit(measure: str) -> str | None:
    """None for a time."""
    found = [begin for begin in UNITS if measure.startswith(begin)]
    return UNITS[max(found, key=len)] if found else None


def _about(command: str, loads: Sequence[float]) -> dict[str, str]:
    npm = json.loads((CLONE / "tools" / "npm-packages.json").read_text())
    hosts = json.loads((CLONE / "tools" / "hosts.json").read_text())
    return {
        **circumstances(command, loads),
        "basedpyright": version("basedpyright"),
        **{name: npm[name] for name in ("typescript-language-server", "typescript") if name in npm},
        "opencode": hosts["opencode"]["npm"]["@opencode-ai/plugin"],
        **{name: pinned for peer in PEERS.values() for name, pinned in peer.pins.items()},
    }


def _targets(records: Sequence[Record]) -> str:
    rows = [
        (one.target.name, _ranged(one.figure), f"≤ {one.target.bound:g} {one.target.unit}", one.word)
        for one in verdicts(records)
    ]
    return f"## Targets\n\n{table(('what', 'measured', 'bound', ''), rows)}\n"


TIMES = ("subject", "language", "n", "p50 ms", "p95", "p99", "× bare", "wrong", "unanswered", "")


def _times(measure: str, records: Sequence[Record]) -> str:
    rows = list[Sequence[object]]()
    for one in _ordered(records):
        times = one.milliseconds
        floor = next((f for f in records if f.subject == "bare" and f.language == one.language), None)
        base = floor.milliseconds if floor and floor is not one else []
        against = (
            Figure(median(times) / median(base), *spread(times, base, quotient)) if times and base else Figure(NAN)
        )
        middle = _ranged(Figure(median(times), *interval(times)))
        high = [_shown(percentile(times, share, NAN)) for share in (0.95, 0.99)]
        counts = (one.wrong, one.unanswered, one.failure or "")
        rows.append([one.subject, one.language, len(times), middle, *high, _ranged(against), *counts])
    return f"## {measure}\n\n{table(TIMES, rows)}\n"


def _figures(measure: str, records: Sequence[Record]) -> str:
    rows = [
        (one.subject, one.language, f"{_shown(median(one.milliseconds))} {unit(measure)}", one.failure or "")
        for one in _ordered(records)
    ]
    return f"## {measure}\n\n{table(('subject', 'language', 'value', ''), rows)}\n"


def _ordered(records: Sequence[Record]) -> list[Record]:
    """By language, those that were first seen first; the order of turns says nothing."""
    known = ["bare", "library", "mcp", "cli", "hook"]
    return sorted(
        records, key=lambda one: (one.language, known.index(one.subject) if one.subject in known else 9, one.subject)
    )


def _ranged(figure: Figure) -> str:
    if figure.low != figure.low:  # Only "not a number" differs from itself.
        return _shown(figure.value)
    return f"{_shown(figure.value)} ({_shown(figure.low)} … {_shown(figure.high)})"


def _shown(value: float) -> str:
    if value != value:
        return "–"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"


def compared(first: Path, second: Path) -> str:
    """Every median of two runs side by side, and their ratio."""
    one, two = (_times_of(json.loads(path.read_text())) for path in (first, second))
    rows = list[Sequence[object]]()
    for key in [*one, *(key for key in two if key not in one)]:
        a, b = one.get(key, []), two.get(key, [])
        change = Figure(median(b) / median(a), *spread(b, a, quotient)) if a and b and all(a) else Figure(NAN)
        rows.append([*key, _shown(median(a)), _shown(median(b)), _ranged(change)])
    return table(("measure", "language", "subject", first.name, second.name, "ratio"), rows)


def _times_of(data: dict[str, list[dict[str, object]]]) -> dict[tuple[str, str, str], list[float]]:
    records = [Record(**one) for one in data["records"]]  # pyright: ignore[reportArgumentType] -- our own file
    return {(one.measure, one.language, one.subject): one.milliseconds for one in records}


def bars(title: str, records: Sequence[Record]) -> str:
    """Milliseconds on a line from 0, up to the end of the interval; subjects without an answer have no bar."""
    shown = sorted((one for one in records if one.milliseconds), key=lambda one: (one.language, one.subject))
    drawn = [
        Bar(f"{one.subject} ({one.language})", ((middle, MIDDLE), (high - middle, HIGH)), f"{middle:.2f} ms")
        for one in shown
        for middle, high in [(median(one.milliseconds), interval(one.milliseconds)[1])]
    ]
    return chart(title, (("median", MIDDLE), ("end of its 95 % interval", HIGH)), drawn)
