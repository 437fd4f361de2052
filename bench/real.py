"""How long an agent waits in real projects: `PYTHONPATH=bench .venv/bin/python bench/real.py [--loads 0,4]`.

The same edits through Claude Code's events and, in the same minutes, through the least client of the same server
(`bare`), which asks for the edited file alone; on a quiet machine and beside busy loops. What an edit broke is the word
of the language's command line (`bench/told`). Ratios are of medians; the targets stand in the table.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from told import __main__ as told
from told import corpus, edits, report
from told.figures import line, percentile, rule
from told.report import Outcome, Run

PROJECTS = ("flask+venv", "rich+venv", "rxjs", "zod", "cobra")
UNFINISHED = "not checked yet"
HEADINGS = (
    *("project", "server", "load", "edits"),
    *("edited file: bare p50", "ours p50 (≤ 1.2 × bare)", "ours p95 (≤ 600 at load 0)"),
    *("all that broke: p50 (≤ 600)", "p95 (≤ 2,000)", "files told", "harmless p50 (≤ 100)"),
    *("without a verdict (≤ 1 %; ≤ 5 % at load 4)", "Read, PreToolUse p95 (≤ 30)", "SessionStart (≤ 30)"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", default=",".join(PROJECTS))
    parser.add_argument("--edits", type=int, default=24)
    parser.add_argument("--loads", default="0,4", help="busy processes beside it")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds after each call of a tool")
    parser.add_argument("--report", default="", help="a file for the table")
    chosen = parser.parse_args()
    rows, loads = [line(HEADINGS), rule(line(HEADINGS))], list[float]()
    for name in chosen.projects.split(","):
        for load in map(int, chosen.loads.split(",")):
            loads.append(os.getloadavg()[0])
            rows.append(line(measured(corpus.projects()[name], load, chosen)))
            print(rows[-1], flush=True)
    about = report.circumstances(sys.argv[1:], loads) | {"command": " ".join(["bench/real.py", *sys.argv[1:]])}
    page = ["# How long an agent waits in real projects", "", *(f"- {name}: {said}" for name, said in about.items())]
    page += ["", "Milliseconds. " + (__doc__ or "").partition("\n\n")[2].strip(), "", *rows, ""]
    print("\n".join(page))
    if chosen.report:
        Path(chosen.report).write_text("\n".join(page))


def measured(project: corpus.Project, load: int, chosen: argparse.Namespace) -> list[str]:
    """One row: the same edits, bare and through the hooks."""
    server = project.servers[0]
    options = told.options(["--seed", str(chosen.seed), "--pause", str(chosen.pause)])
    planned, true = told.planned(project, server, chosen.edits, options)
    with busy(load):
        runs = [told.watched(project, server, subject, planned, true, options) for subject in ("bare", "claude-code")]
    return [project.name, server, str(load), str(len(planned)), *figures(*runs)]


def figures(bare: Run, ours: Run) -> Sequence[str]:
    """Without each one's first edit, which meets a cold server."""
    floor, waited = bare.outcomes[1:], ours.outcomes[1:]
    alone = [place for place, one in enumerate(waited) if not one.verdict.broken and one.edit.tool != "patch"]
    own, least = (
        [waited[place].told.milliseconds for place in alone],
        [floor[place].told.milliseconds for place in alone],
    )
    breaking = [one for one in waited if one.verdict.broken or one.verdict.own_new]
    everything = [one.told.milliseconds for one in breaking if not (one.verdict.untold or one.verdict.missing)]
    harmless = [one.told.milliseconds for one in waited if one.edit.kind in edits.GROUPS["harmless"]]
    late = sum(UNFINISHED in one.told.text for one in waited)
    broken, said = (sum(len(part(one)) for one in waited) for part in (_broken, _said))
    ratio = percentile(own, 0.5) / max(1.0, percentile(least, 0.5))
    return [
        _ms(least, 0.5),
        f"{_ms(own, 0.5)} ({ratio:.2f} ×)",
        _ms(own, 0.95),
        *(_ms(everything, part) for part in (0.5, 0.95)),
        f"{said} of {broken}",
        f"{_ms(harmless, 0.5)} (n {len(harmless)})",
        f"{late} of {len(waited)}",
        _ms([wait for one in waited for event, wait in one.told.waits if event != "SessionStart"], 0.95),
        _ms([wait for one in ours.outcomes for event, wait in one.told.waits if event == "SessionStart"], 0.95),
    ]


def _broken(one: Outcome) -> Sequence[str]:
    return one.verdict.broken


def _said(one: Outcome) -> Sequence[str]:
    return one.verdict.told


def _ms(values: Sequence[float], part: float) -> str:
    return f"{percentile(values, part):.0f}" if values else "–"


@contextmanager
def busy(count: int) -> Generator[None]:
    """So many processes that never rest; a moment later the load is there."""
    loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for loop in loops:
        loop.start()
    try:
        time.sleep(1 if loops else 0)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.join()


def _spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()
