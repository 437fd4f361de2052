"""Figures from the rows that `--out` wrote, whenever that was: for the tables that stand in reports and the plots.

A row is one edit of one subject: `report.record`, or the same without the texts, `report.kept`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.numbers import mean, percentile

Row = Mapping[str, Any]

HERE = Path(__file__).resolve().parent
SUBJECTS = HERE / "subjects.jsonl"
"""All subjects in one run."""
OTHERS = HERE / "others.jsonl"
"""Edits that break other files, a run for each project and server."""


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def runs(found: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """The rows of each project, server and subject, in the order of the file."""
    by: dict[tuple[str, str, str], list[Row]] = {}
    for row in found:
        by.setdefault((row["project"], row["server"], row["subject"]), []).append(row)
    return by


def size(row: Row) -> int:
    told = row["told"]
    return told["bytes"] if "bytes" in told else len((told["text"] + told.get("between", "")).encode())


@dataclass(frozen=True)
class Figures:
    """One subject on one project."""

    edits: int
    breaking: int
    own_new: int
    own_told: int
    """In the same turn."""
    own_late: int
    """Edits of those that a later turn told."""
    broken: int
    told: int
    late: int
    never: int
    shown: int
    """Findings that were told, right or not."""
    false: int
    """Of them, those that were not new."""
    old: int
    """Of these, those that the checker reports, though not as new."""
    size: float
    """Mean bytes, of all edits."""
    harmless_sizes: tuple[int, ...]
    quiet_sizes: tuple[int, ...]
    """After edits that brought nothing new, by the checker."""
    first_ms: float
    own_times: tuple[float, ...]
    """After edits that broke their own file or nothing; the first, with a cold server, is left out everywhere."""
    others_times: tuple[float, ...]
    harmless_times: tuple[float, ...]
    cpu_seconds: float | None
    """Per edit; None where it was not kept."""
    megabytes: float | None
    failed: int
    """Edits that the subject itself failed at."""

    @property
    def times(self) -> tuple[float, ...]:
        return (*self.own_times, *self.others_times)


def figures(found: Sequence[Row]) -> Figures:
    verdicts = [row["verdict"] for row in found]
    late = {tuple(pair) for verdict in verdicts for pair in verdict["late_for"]}
    untold = {
        (row["edit"]["number"], file)
        for row in found
        for file in row["verdict"]["broken"]
        if file not in row["verdict"]["told"]
    }
    missing = {(row["edit"]["number"], one["file"]) for row in found for one in row["verdict"]["missing"]}
    own_new = sum(verdict["own_new"] for verdict in verdicts)
    false = sum(len(verdict["old"]) + len(verdict["unknown"]) for verdict in verdicts)
    harmless = [row for row in found if row["edit"]["group"] == "harmless"]
    warm = [row for row in found if row["edit"]["number"] > 1]
    cost: Mapping[str, float] = found[0].get("cost") or {}
    return Figures(
        edits=len(found),
        breaking=sum(bool(row["verdict"]["broken"] or row["verdict"]["own_new"]) for row in found),
        own_new=own_new,
        own_told=own_new - sum(len(verdict["missing"]) for verdict in verdicts),
        own_late=len(missing & late),
        broken=sum(len(verdict["broken"]) for verdict in verdicts),
        told=sum(len(verdict["told"]) for verdict in verdicts),
        late=len(untold & late),
        never=len(untold - late),
        shown=false + sum(len(verdict["right"]) + len(verdict["late"]) for verdict in verdicts),
        false=false,
        old=sum(len(verdict["old"]) for verdict in verdicts),
        size=mean([size(row) for row in found]),
        harmless_sizes=tuple(map(size, harmless)),
        quiet_sizes=tuple(size(row) for row in found if not row["new"]),
        first_ms=next((row["told"]["milliseconds"] for row in found if row["edit"]["number"] == 1), 0.0),
        own_times=tuple(row["told"]["milliseconds"] for row in warm if not row["verdict"]["broken"]),
        others_times=tuple(row["told"]["milliseconds"] for row in warm if row["verdict"]["broken"]),
        harmless_times=tuple(row["told"]["milliseconds"] for row in harmless if row["edit"]["number"] > 1),
        cpu_seconds=cost["cpu_seconds"] / len(found) if cost else None,
        megabytes=cost["megabytes"] if cost else None,
        failed=sum(bool(row["told"]["error"]) for row in found),
    )


def delays(times: Sequence[float]) -> str:
    return f"{percentile(times, 0.5):.0f} / {percentile(times, 0.95):.0f} (n {len(times)})" if times else "–"


def precision(one: Figures) -> str:
    """Of what was told, how much was new or still untold."""
    return f"{(one.shown - one.false) / one.shown:.0%} ({one.false} of {one.shown} not new)" if one.shown else "–"


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "–"
