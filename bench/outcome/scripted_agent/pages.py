"""The figures of kept outcomes: the report, and the table in the README of the repository."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness import pages

from scripted_agent.agent import Outcome
from scripted_agent.arms import ARMS

HERE = Path(__file__).parents[1]
KEPT, REPORT = HERE / "report.jsonl", HERE / "REPORT.md"
README = HERE.parents[1] / "README.md"
_TABLE = re.compile(r"(<!-- outcome:[^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)

FIGURES: Mapping[str, Callable[[Outcome], int]] = {
    "turns": lambda one: one.turns,
    "files read": lambda one: one.reads,
    "bytes read": lambda one: one.bytes_read,
    "unplanned files repaired": lambda one: one.found,
    "of": lambda one: one.unplanned,
    "left-over errors": lambda one: one.left,
    "premature detours": lambda one: one.premature,
    "lines told": lambda one: one.told,
    "tokens": lambda one: one.tokens,
}
SHORT = ("turns", "files read", "bytes read", "left-over errors", "premature detours")


def kept(path: Path) -> list[Outcome]:
    return [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]


def table(outcomes: Sequence[Outcome], names: Sequence[str] = tuple(FIGURES)) -> str:
    """A row for each arm, summed over all changes."""
    # A script uses no tokens.
    shown = [name for name in names if name != "tokens" or any(one.tokens for one in outcomes)]
    rows = list[list[str]]()
    for arm in sorted({one.arm for one in outcomes}, key=list(ARMS).index):
        several = [one for one in outcomes if one.arm == arm]
        rows.append([arm, *(f"{sum(map(FIGURES[name], several)):,}" for name in shown)])
    return pages.table(["arm", *shown], rows)


def page(outcomes: Sequence[Outcome], about: Mapping[str, str]) -> str:
    parts = [
        "# An agent under different kinds of feedback\n",
        "Written by `bench/outcome/run`; [README.md](README.md) says what was done.\n",
        pages.listed(about),
        f"- {counted(outcomes)}\n\n{tables(outcomes)}\n",
    ]
    return "\n".join(parts)


def counted(outcomes: Sequence[Outcome]) -> str:
    """What these outcomes are of."""
    changes = {(one.project, one.change) for one in outcomes}
    projects = ", ".join(f"{name} {sum(of == name for of, _ in changes)}" for name in dict(sorted(changes)))
    orders = ", ".join(
        f"{name} {len({one.change for one in outcomes if one.order == name})}"
        for name in dict.fromkeys(one.order for one in outcomes)
    )
    agent = "a model" if any(one.tokens for one in outcomes) else "a script, no model"
    return f"agent: {agent}\n- changes: {len(changes)} ({projects}); in the orders {orders}"


def tables(outcomes: Sequence[Outcome]) -> str:
    """All together, then by order and by project."""
    names = dict.fromkeys([*(one.order for one in outcomes), *(one.project for one in outcomes)])
    parts = [f"## {name}\n\n{table([one for one in outcomes if name in {one.order, one.project}])}" for name in names]
    return "\n\n".join([table(outcomes), *parts])


def readme(outcomes: Sequence[Outcome]) -> str:
    """The README with the table of these outcomes in it."""
    about = counted(outcomes).replace("\n-", ";").capitalize()
    return _TABLE.sub(rf"\g<1>{table(outcomes, SHORT)}\n\n{about}.\n\g<2>", README.read_text())
