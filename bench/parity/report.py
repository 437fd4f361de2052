"""The report of a run: Markdown for people, JSON for `compare`, a plot per measure. Nothing in it is rounded up."""

import json
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from parity.measures import Plan, Record
from parity.numbers import interval, median, percentile
from parity.peers import PINS
from parity.plots import bars
from parity.subjects import CLONE
from parity.targets import verdicts

SINGLE = {
    "second session: new servers": "",
    "memory of the bridge": "MB",
    "memory of the servers": "MB",
    "left after the end": "",
    "left after kill -9": "",
    "feedback bytes": "bytes",
    "tool schema bytes": "bytes",
}
"""Measures that are one figure, with its unit; all others are times."""


def written(folder: Path, plan: Plan, records: Sequence[Record], command: str) -> Path:
    """Write `REPORT.md`, `report.json` and the plots; returns the report."""
    folder.mkdir(parents=True, exist_ok=True)
    about = circumstances(command)
    data = {"about": about, "plan": asdict(plan), "records": [asdict(one) for one in records]}
    (folder / "report.json").write_text(json.dumps(data, indent=1))
    measures = list(dict.fromkeys(one.measure for one in records))
    parts = [_head(about), _targets(records)]
    for measure in measures:
        found = [one for one in records if one.measure == measure]
        parts.append(_single(measure, found) if measure in SINGLE else _times(measure, found))
        if measure.startswith(("warm definition", "edit: introduce", "cold")):
            name = measure.replace(":", "").replace(" ", "-") + ".svg"
            (folder / name).write_text(bars(measure, {f"{one.subject} ({one.language})": one for one in found}))
            parts.append(f"![{measure}]({name})\n")
    report = folder / "REPORT.md"
    report.write_text("\n".join(parts))
    return report


def circumstances(command: str) -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=CLONE, capture_output=True, text=True, check=False
    )
    pins = {name: version for kinds in PINS.values() for pinned in kinds.values() for name, version in pinned.items()}
    load = Path("/proc/loadavg")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "commit": commit.stdout.strip(),
        "machine": f"{platform.system()} {platform.release()}, {platform.machine()}, {_cores()} cores",
        "load at the end": load.read_text().strip() if load.exists() else "unknown",
        "python": platform.python_version(),
        "basedpyright": version("basedpyright"),
        **pins,
    }


def _cores() -> int:
    import os

    return os.cpu_count() or 0


def _head(about: dict[str, str]) -> str:
    lines = "\n".join(f"- {name}: {value}" for name, value in about.items())
    return (
        "# Benchmark report\n\nWhat the program printed, of one run. Everybody works on the same fixtures with the "
        f"same language servers, in turns. Read the ratios.\n\n{lines}\n"
    )


def _targets(records: Sequence[Record]) -> str:
    rows = [
        f"| {one.target.name} | {one.figure:.2f} {one.target.unit} "
        f"| {one.target.bound:g} {one.target.unit} | {one.word} |"
        for one in verdicts(records)
    ]
    return "## Targets\n\n| what | measured | bound | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _times(measure: str, records: Sequence[Record]) -> str:
    lines = [
        f"## {measure}",
        "",
        "| subject | language | n | p50 ms | 95 % of it | p95 | p99 | × bare | wrong | unanswered | |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in records:
        low, high = interval(one.milliseconds)
        floor = next((f for f in records if f.subject == "bare" and f.language == one.language), None)
        ratio = median(one.milliseconds) / median(floor.milliseconds) if floor and floor.milliseconds else float("nan")
        lines.append(
            f"| {one.subject} | {one.language} | {len(one.milliseconds)} | {_shown(median(one.milliseconds))} "
            f"| {_shown(low)} … {_shown(high)} | {_shown(percentile(one.milliseconds, 0.95))} "
            f"| {_shown(percentile(one.milliseconds, 0.99))} | {_shown(ratio)} | {one.wrong} | {one.unanswered} "
            f"| {one.failure or ''} |"
        )
    return "\n".join(lines) + "\n"


def _single(measure: str, records: Sequence[Record]) -> str:
    lines = [f"## {measure}", "", "| subject | language | value |", "|---|---|---|"]
    lines += [
        f"| {one.subject} | {one.language} | {_shown(median(one.milliseconds))} {SINGLE[measure]} |" for one in records
    ]
    return "\n".join(lines) + "\n"


def _shown(value: float) -> str:
    if value != value:  # Only "not a number" differs from itself.
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def compared(first: Path, second: Path) -> str:
    """Every median of two runs side by side, and their ratio."""
    one, two = (_medians(json.loads(path.read_text())) for path in (first, second))
    lines = [f"| measure | language | subject | {first.name} | {second.name} | ratio |", "|---|---|---|---|---|---|"]
    for key in [*one, *(key for key in two if key not in one)]:
        a, b = one.get(key, float("nan")), two.get(key, float("nan"))
        lines.append(f"| {' | '.join(key)} | {_shown(a)} | {_shown(b)} | {_shown(b / a if a else float('nan'))} |")
    return "\n".join(lines)


def _medians(data: dict[str, list[dict[str, object]]]) -> dict[tuple[str, str, str], float]:
    records = [Record(**one) for one in data["records"]]  # pyright: ignore[reportArgumentType] -- our own file
    return {(one.measure, one.language, one.subject): median(one.milliseconds) for one in records}
