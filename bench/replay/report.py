"""The figures of a replay: JSON for machines, Markdown for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness import pages
from harness.numbers import percentile

from replay.play import Outcome, Played

MOST_LINES = 60
"""About mistakes; the counts are of all."""


def figures(played: Sequence[Played]) -> dict[str, Any]:
    """The counts of some replays."""
    outcomes = [one for each in played for one in each.outcomes]
    edits = [one for one in outcomes if one.kind == "edit"]
    quiet = [one for one in outcomes if one.kind in {"harmless", "disorder"} and not one.new]
    waits, told = [one.milliseconds for one in edits], sum(each.told for each in played)
    broken = sum(len(one.broken) for one in outcomes)
    untold = sum(len(each.untold) for each in played)
    later = sum(len(each.untold & each.later) for each in played)
    return {
        "changes": len({(one.project, one.change) for one in played}),
        "replays": len(played),
        "edits": sum(one.edits for one in edits),
        "batches": len(edits),
        "lines told": sum(one.lines for one in outcomes),
        "older": sum(len(one.older) for one in outcomes),
        "repeated": sum(len(one.repeated) for one in outcomes),
        "false": sum(len(one.false) for one in outcomes),
        "harmless": len(quiet),
        "harmless with text": sum(one.is_uncalled_for for one in quiet),
        "broken files": broken,
        "told in the same turn": broken - untold,
        "told later": later,
        "never told": untold - later,
        "left at the stop": sum(len(each.left) for each in played),
        "left and told": sum(len(each.left_told) for each in played),
        "else at the stop": sum(len(each.beside) for each in played),
        "right lines": told,
        "premature": sum(len(each.premature) for each in played),
        "told as open": sum(each.opened for each in played),
        "bytes per replay": round(sum(one.size for one in outcomes) / max(1, len(played))),
        "wait per edit ms": round(sum(waits) / max(1, sum(one.edits for one in edits))),
        "wait p50 ms": round(percentile(waits, 0.5)),
        "wait p95 ms": round(percentile(waits, 0.95)),
        "no verdict": sum(one.has_no_verdict for one in edits),
    }


def table(of: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each figure, a column for each of these."""
    rows = [[name, *(one[name] for one in of.values())] for name in next(iter(of.values()))]
    return pages.table(["", *of], rows)


def summary(played: Sequence[Played]) -> dict[str, dict[str, Any]]:
    """The figures of all, by order and by project."""
    orders = {one.order: [each for each in played if each.order == one.order] for one in played}
    projects = {one.project: [each for each in played if each.project == one.project] for one in played}
    return {
        "orders": {name: figures(several) for name, several in {"all": played, **orders}.items()},
        "projects": {name: figures(several) for name, several in projects.items()},
    }


def page(played: Sequence[Played], about: Mapping[str, str], before: Mapping[str, Any] | None = None) -> str:
    """What was measured, on what; `before` is what `--out` wrote in an earlier run of the same command."""
    wrong = [one for one in played if one.is_wrong]
    found = [line for one in wrong for line in explained(one)]
    more = [f"… and {len(found) - MOST_LINES} lines more"] if len(found) > MOST_LINES else []
    lines = [
        "# Real changes, replayed\n",
        "Written by `bench/replay/run`; [README.md](README.md) says what the figures mean.\n",
        pages.listed(about),
        *(f"\n{table(of)}" for of in summary(played).values()),
        *_beside(played, before or {}),
        f"\n## Mistakes in {len(wrong)} of {len(played)} replays\n\n```text",
        *(*found[:MOST_LINES], *more, "```"),
    ]
    return "\n".join(lines) + "\n"


def _beside(played: Sequence[Played], before: Mapping[str, Any]) -> list[str]:
    if not before:
        return []
    about = " · ".join(str(value) for name, value in before["about"].items() if name not in {"command", "machine"})
    shown = table({"before": before["orders"]["all"], "now": figures(played)})
    return [f"\n## The same changes before ({about})\n\n{shown}"]


def explained(played: Played) -> list[str]:
    """What was wrong, in words."""
    lines = [f"{played.project} {played.change}, {played.order}:"]
    for number, one in enumerate(played.outcomes):
        about = f"  {number} {one.kind} {one.what}: {one.size} bytes in {one.milliseconds:.0f} ms"
        never = sorted(file for step, file in played.untold - played.later if step == number)
        said = [*_mistakes(one), *(f"    NEVER told: {file}" for file in never)]
        lines += [about, *said] if said else []
    lines += [f"  stop, else: {one[:200]}" for one in played.beside]
    lines += [f"  stop, not told: {file}" for file in played.left if file not in played.left_told]
    return lines


def _mistakes(one: Outcome) -> list[str]:
    words = {"OLDER": one.older, "REPEATED": one.repeated, "FALSE": one.false}
    lines = [f"    {word}: {text[:200]}" for word, texts in words.items() for text in texts]
    if one.is_uncalled_for:
        lines.append(f"    TEXT: {' '.join(one.text.split())[:200]}")
    return lines + ([f"    ERROR: {one.error[:200]}"] if one.error else [])
