"""The figures of a run, as JSON lines for machines and as text for people."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from harness import pages
from harness.numbers import mean, percentile

from told.conversation import Told
from told.edits import Edit
from told.figures import figures
from told.score import Verdict
from told.subjects import Cost
from told.truth import Problem, Truth, one_line

WIDTH = 220
MOST_LINES = 6
"""Of one sort of mistake, for one edit."""


@dataclass(frozen=True)
class Outcome:
    """One edit, all that is known about it."""

    edit: Edit
    truth: Truth
    told: Told
    verdict: Verdict

    @property
    def is_wrong(self) -> bool:
        return bool(self.verdict.false or self.verdict.missing or self.verdict.untold or self.told.error)


@dataclass(frozen=True)
class Run:
    project: str
    server: str
    subject: str
    seed: int
    outcomes: Sequence[Outcome]
    cost: Cost


FILES = frozenset({"--out", "--report"})
"""Options with a file behind them."""


def command(arguments: Sequence[str]) -> str:
    """Without where the results go, and how much of them is shown."""
    kept = list[str]()
    for before, argument in pairwise(["", *arguments]):
        if argument not in {*FILES, "--all", "--text"} and before not in FILES:
            kept.append(argument)
    return shlex.join(["bench/told/run", *kept])


def page(runs: Sequence[Run], arguments: Sequence[str], loads: Sequence[float]) -> str:
    """Markdown for a file of its own: what was measured, on what, and every mistake."""
    lines = [
        "# What the agent is told\n",
        "What the program printed; [README.md](README.md) explains the columns.\n",
        pages.listed(pages.circumstances(command(arguments), loads)),
        *("", table(runs), "", by_kind(runs)),
    ]
    for run in runs:
        if wrong := [explained(one) for one in run.outcomes if one.is_wrong]:
            lines += ["", f"## Mistakes: {run.project}, {run.server}, {run.subject}", "", "```text", *wrong, "```"]
    return "\n".join(lines) + "\n"


HEAD = (
    *("project", "server", "subject", "edits", "false (old + unknown)", "own file: new / missing (late)"),
    *("other files: broken / told / late / never", "bytes per harmless edit", "bytes where nothing is new"),
    *("first ms", "p50 / p95 ms", "CPU s per edit", "MB"),
)


def table(runs: Sequence[Run]) -> str:
    """Markdown, a row for each run."""
    rows = list[Sequence[object]]()
    for run in runs:
        one = figures([record(run, outcome) for outcome in run.outcomes])
        rows.append([
            *(run.project, run.server, run.subject, one.edits),
            f"**{one.false}** ({one.old} + {one.false - one.old})" if one.false else "0",
            f"{one.own_new} / {one.own_new - one.own_told} ({one.own_late})",
            f"{one.broken} / {one.told} / {one.late} / {one.never}",
            f"{mean(one.harmless_sizes):.0f} (n {len(one.harmless_sizes)})",
            f"{mean(one.quiet_sizes):.0f} (n {len(one.quiet_sizes)})",
            *(f"{one.first_ms:.0f}", _both(one.times)),
            *(f"{run.cost.cpu_seconds / max(1, one.edits):.1f}", f"{run.cost.megabytes:.0f}"),
        ])  # fmt: skip
    return pages.table(HEAD, rows)


def _both(times: Sequence[float]) -> str:
    return f"{percentile(times, 0.5):.0f} / {percentile(times, 0.95):.0f}"


KINDS_HEAD = ("kind", "subject", "n", "false", "own: new / missing", "others: broken / told", "bytes", "p50 / p95 ms")


def by_kind(runs: Sequence[Run]) -> str:
    """Markdown, a row for each kind of edit and each subject."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in (record(run, one) for run in runs for one in run.outcomes):
        found.setdefault((row["edit"]["group"], row["edit"]["kind"], row["subject"]), []).append(row)
    rows = list[Sequence[object]]()
    for (_, kind, subject), some in sorted(found.items()):
        one, times = figures(some), [row["told"]["milliseconds"] for row in some]
        own, others = f"{one.own_new} / {one.own_new - one.own_told}", f"{one.broken} / {one.told}"
        rows.append([kind, subject, one.edits, one.false, own, others, f"{one.size:.0f}", _both(times)])
    return pages.table(KINDS_HEAD, rows)


def explained(outcome: Outcome) -> str:
    """One edit in words: what was done, what was told wrongly or not at all."""
    edit, told, verdict = outcome.edit, outcome.told, outcome.verdict
    mark = "✗" if outcome.is_wrong else "✓"
    what = f"{mark} {edit.number:>3} {edit.kind} ({edit.tool}) {edit.paths[0]}: {edit.note}"
    size = f"told {len(told.text.encode())} bytes in {told.milliseconds:.0f} ms" + (
        f", {told.state}" if told.state else ""
    )
    counts = f"new {sum(map(len, outcome.truth.new.values()))} in {len(outcome.truth.new)} files"
    lines = [f"{what}; {counts}; {size}"]
    lines += [f"      error: {one_line(told.error)[:WIDTH]}"] if told.error else []
    lines += [f"      {told.state}: {one_line(told.reason)[:WIDTH]}"] if told.reason and outcome.is_wrong else []
    lines += _listed("FALSE, the checker reports it, not as new", verdict.old)
    lines += _listed("FALSE, the checker does not report it", verdict.unknown)
    lines += _listed("MISSING in the edited file", verdict.missing)
    untold = [next(one for one in outcome.truth.new[file] if one.severity == "error") for file in verdict.untold]
    lines += _listed("UNTOLD other file, its first new error", untold)
    lines += _listed("late", verdict.late)
    return "\n".join(lines)


def record(run: Run, outcome: Outcome) -> dict[str, Any]:
    """One JSON line: all but the texts of the files."""
    edit = outcome.edit
    return {
        "project": run.project,
        "server": run.server,
        "subject": run.subject,
        "seed": run.seed,
        "edit": {
            "number": edit.number,
            "kind": edit.kind,
            "group": edit.group,
            "tool": edit.tool,
            "paths": edit.paths,
            "note": edit.note,
            "undoes": edit.undoes,
        },
        "told": asdict(outcome.told),
        "new": [asdict(one) for found in outcome.truth.new.values() for one in found],
        "verdict": asdict(outcome.verdict),
        "wrong": outcome.is_wrong,
        "cost": asdict(run.cost),
    }


def json_lines(runs: Iterable[Run], *, short: bool = False) -> str:
    """A row for each edit of each run; `short` ones have no texts."""
    rows = [record(run, one) for run in runs for one in run.outcomes]
    return "".join(json.dumps(kept(row) if short else row) + "\n" for row in rows)


def kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Enough for every figure: what was told is a number of bytes, a finding is its file. A kept row stays as it is."""
    verdict, told = row["verdict"], row["told"]
    if "text" not in told:
        return dict(row)
    findings = ("right", "late", "old", "unknown", "missing")
    short = {name: [{"file": one["file"]} for one in verdict[name]] for name in findings}
    new = [{"file": one["file"], "severity": one["severity"]} for one in row["new"]]
    size = len((told["text"] + told.get("between", "")).encode())
    said = {"milliseconds": round(told["milliseconds"], 1), "bytes": size, "error": bool(told["error"])}
    return {**row, "told": said, "new": new, "verdict": {**verdict, **short}}


def _listed(title: str, problems: Sequence[Problem]) -> list[str]:
    lines = [f"      {title}: {str(problem)[:WIDTH]}" for problem in problems[:MOST_LINES]]
    if len(problems) > MOST_LINES:
        lines.append(f"      {title}: … and {len(problems) - MOST_LINES} more")
    return lines
