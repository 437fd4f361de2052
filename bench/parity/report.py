"""The report of a run: Markdown for people, JSON for `compare`, plots. Nothing in it is rounded up.

What was measured and what somebody says about it stay apart: remarks are a file of their own, taken over as they are.
"""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from told import figures, tables

from parity.numbers import NAN, interval, median, percentile, quotient, spread
from parity.peers import PINS
from parity.plots import PLOTTED, bars
from parity.records import Bench, Record
from parity.subjects import CLONE
from parity.targets import Figure, verdicts

REMARKS = Path(__file__).parent / "remarks.md"

UNITS = {
    "second session: new servers": "",
    "memory": "MB",
    "memory of an idle session": "KB",
    "growth over edits": "MB",
    "left after": "",
    "feedback bytes": "bytes",
    "tool schema bytes": "bytes",
    "questions per second": "",
}
"""How the names of measures begin that are figures, with their units, the longest counting; all others are times."""


def written(folder: Path, bench: Bench, command: str) -> Path:
    """Write `REPORT.md`, `report.json` and `plots/`; returns the report."""
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    about, records = circumstances(command), bench.records
    data = {
        "about": about,
        "plan": asdict(bench.plan),
        "records": [asdict(one) | {"milliseconds": [round(each, 3) for each in one.milliseconds]} for one in records],
    }
    (folder / "report.json").write_text(json.dumps(data) + "\n")
    parts = [_head(about), *_broken(bench.broken), _targets(records)]
    for measure in dict.fromkeys(one.measure for one in records):
        found = [one for one in records if one.measure == measure]
        parts.append(_times(measure, found) if unit(measure) is None else _figures(measure, found))
        if measure in PLOTTED:
            name = f"plots/{PLOTTED[measure]}.svg"
            (folder / name).write_text(bars(measure, found))
            parts.append(f"![{measure}]({name})\n")
    parts += _told()
    if REMARKS.exists():
        parts.append(f"## Remarks\n\nWritten by hand about the figures above.\n\n{REMARKS.read_text()}")
    report = folder / "REPORT.md"
    report.write_text("\n".join(parts))
    return report


def unit(measure: str) -> str | None:
    """None for a time."""
    found = [begin for begin in UNITS if measure.startswith(begin)]
    return UNITS[max(found, key=len)] if found else None


def circumstances(command: str) -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=CLONE, capture_output=True, text=True, check=False
    )
    pins = {name: version for kinds in PINS.values() for pinned in kinds.values() for name, version in pinned.items()}
    npm = json.loads((CLONE / "tools" / "npm-packages.json").read_text())
    hosts = json.loads((CLONE / "tools" / "hosts.json").read_text())
    load = Path("/proc/loadavg")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "commit": commit.stdout.strip(),
        "machine": f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        "load at the end": load.read_text().strip() if load.exists() else "unknown",
        "python": platform.python_version(),
        "basedpyright": version("basedpyright"),
        **{name: npm[name] for name in ("typescript-language-server", "typescript") if name in npm},
        "opencode": hosts["opencode"]["npm"]["@opencode-ai/plugin"],
        **pins,
    }


def _head(about: dict[str, str]) -> str:
    lines = "\n".join(f"- {name}: {value}" for name, value in about.items())
    return (
        "# Benchmark report\n\nWhat the program printed, of one run. Everybody works on the same fixtures with the "
        "same language servers, each with processes of its own, in turns. Read the ratios; what stands behind them in "
        f"brackets is a 95 % interval.\n\n{lines}\n"
    )


def _broken(parts: Sequence[str]) -> list[str]:
    return ["## Parts that broke\n\n" + "".join(f"- {one}\n" for one in parts)] if parts else []


def _targets(records: Sequence[Record]) -> str:
    rows = [
        f"| {one.target.name} | {_ranged(one.figure)} | ≤ {one.target.bound:g} {one.target.unit} | {one.word} |"
        for one in verdicts(records)
    ]
    return "## Targets\n\n| what | measured | bound | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _times(measure: str, records: Sequence[Record]) -> str:
    lines = [
        f"## {measure}",
        "",
        "| subject | language | n | p50 ms | p95 | p99 | × bare | wrong | unanswered | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in _ordered(records):
        times = one.milliseconds
        floor = next((f for f in records if f.subject == "bare" and f.language == one.language), None)
        base = floor.milliseconds if floor and floor is not one else []
        against = (
            Figure(median(times) / median(base), *spread(times, base, quotient)) if times and base else Figure(NAN)
        )
        lines.append(
            f"| {one.subject} | {one.language} | {len(times)} | {_ranged(Figure(median(times), *interval(times)))} "
            f"| {_shown(percentile(times, 0.95))} | {_shown(percentile(times, 0.99))} | {_ranged(against)} "
            f"| {one.wrong} | {one.unanswered} | {one.failure or ''} |"
        )
    return "\n".join(lines) + "\n"


def _figures(measure: str, records: Sequence[Record]) -> str:
    lines = [f"## {measure}", "", "| subject | language | value | |", "|---|---|---|---|"]
    lines += [
        f"| {one.subject} | {one.language} | {_shown(median(one.milliseconds))} {unit(measure)} | {one.failure or ''} |"
        for one in _ordered(records)
    ]
    return "\n".join(lines) + "\n"


def _ordered(records: Sequence[Record]) -> list[Record]:
    """By language, those that were first seen first; the order of turns says nothing."""
    known = ["bare", "library", "mcp", "cli", "hook"]
    return sorted(
        records, key=lambda one: (one.language, known.index(one.subject) if one.subject in known else 9, one.subject)
    )


def _told() -> list[str]:
    """What `bench/told/run` measured before, as it was kept: it takes longer than all of this."""
    parts = list[str]()
    if rows := figures.rows(figures.SUBJECTS):
        said = "Kept results of `bench/told/run --subjects`; what they were measured on is in [told](told/SUBJECTS.md)."
        hosts, everybody = tables.of_hosts(rows), tables.of_subjects(rows)
        parts.append(f"## What the agent is told\n\n{said}\n\n{hosts}\n\n{everybody}\n")
    if rows := figures.rows(figures.OTHERS):
        said = "Kept results of `bench/told/run --kinds others,fix`, by the hook program with Claude Code's events."
        parts.append(f"## Other files\n\n{said}\n\n{tables.of_others(rows)}\n")
    return parts


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
    lines = [f"| measure | language | subject | {first.name} | {second.name} | ratio |", "|---|---|---|---|---|---|"]
    for key in [*one, *(key for key in two if key not in one)]:
        a, b = one.get(key, []), two.get(key, [])
        change = Figure(median(b) / median(a), *spread(b, a, quotient)) if a and b and all(a) else Figure(NAN)
        lines.append(f"| {' | '.join(key)} | {_shown(median(a))} | {_shown(median(b))} | {_ranged(change)} |")
    return "\n".join(lines)


def _times_of(data: dict[str, list[dict[str, object]]]) -> dict[tuple[str, str, str], list[float]]:
    records = [Record(**one) for one in data["records"]]  # pyright: ignore[reportArgumentType] -- our own file
    return {(one.measure, one.language, one.subject): one.milliseconds for one in records}
