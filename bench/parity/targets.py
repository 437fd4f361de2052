"""What must hold, as rows of `targets.toml`: a figure out of the records, and the bound that it is held against.

A figure is that of the language that does worse. A target that nobody measured is "not measured", never passed.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.numbers import NAN, difference, interval, median, percentile, quotient, spread

from parity.edits import ALL as EDITS
from parity.edits import LAST_WORD, TOLD
from parity.measures import LISTS
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


TARGETS = tuple(Target(**row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["targets"])


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
