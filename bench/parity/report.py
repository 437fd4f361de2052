"""The report of a run: Markdown for people, JSON for `compare`, plots. Nothing in it is rounded up.

What was measured and what somebody says about it stay apart: remarks are a file of their own, taken over as they are.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from harness.numbers import NAN, interval, median, percentile, quotient, spread
from harness.pages import HIGH, MIDDLE, Bar, chart, circumstances, listed, table
from harness.servers import CLONE

from parity.peers import PEERS
from parity.records import Bench, Record
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


PLOTTED = {
    "warm definition": "warm-definition",
    "cold definition": "cold-definition",
    "edit: introduce": "edit-introduce",
    "edit: fix": "edit-fix",
    "edit in the agent loop": "agent-loop-edit",
    "definition in the agent loop": "agent-loop-definition",
}
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
    parts = [_head(about), *_broken(bench.broken), _targets(records)]
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


def _head(about: dict[str, str]) -> str:
    return (
        "# Benchmark report\n\nWhat the program printed, of one run. Everybody works on the same fixtures with the "
        "same language servers, each with processes of its own, in turns. Read the ratios; what stands behind them in "
        f"brackets is a 95 % interval.\n\n{listed(about)}\n"
    )


def _broken(parts: Sequence[str]) -> list[str]:
    return ["## Parts that broke\n\n" + "".join(f"- {one}\n" for one in parts)] if parts else []


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
