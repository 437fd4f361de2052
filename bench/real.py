"""How long an agent waits in real projects: `PYTHONPATH=bench .venv/bin/python bench/real.py [--loads 0,4]`.

The same edits through Claude Code's events and, in the same minutes, through the least client of the same server
(`bare`), which asks for the edited file alone; on a quiet machine and beside busy loops. What an edit broke is the word
of the language's command line (`bench/told`). Ratios are of medians; the targets stand in the table.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import corpus
from harness.numbers import percentile
from harness.pages import circumstances, head, line, listed, options
from told import __main__ as told
from told import edits
from told.report import Run

PROJECTS = ("flask+venv", "rich+venv", "rxjs", "zod", "cobra")
UNFINISHED = "not checked yet"
HEADINGS = (
    *("project", "server", "load", "edits"),
    *("edited file: bare p50", "ours p50 (≤ 1.2 × bare)", "ours p95 (≤ 600 at load 0)"),
    *("all that broke: p50 (≤ 600)", "p95 (≤ 2,000)", "files told", "harmless p50 (≤ 100)"),
    *("without a verdict (≤ 1 %; ≤ 5 % at load 4)", "Read, PreToolUse p95 (≤ 30)", "SessionStart (≤ 30)"),
)


def main() -> None:
    chosen = options(__doc__, projects=",".join(PROJECTS), edits=24, loads="0,4", seed=7, pause=1.0, report="")
    rows, loads = [head(HEADINGS)], list[float]()
    for name in chosen.projects.split(","):
        for load in map(int, chosen.loads.split(",")):
            loads.append(os.getloadavg()[0])
            rows.append(line(measured(corpus.projects()[name], load, chosen)))
            print(rows[-1], flush=True)
    about = circumstances(" ".join(["bench/real.py", *sys.argv[1:]]), loads)
    page = [
        "# How long an agent waits in real projects",
        "",
        listed(about),
        "",
        "Milliseconds. " + (__doc__ or "").partition("\n\n")[2].strip(),
        "",
        *rows,
        "",
    ]
    print("\n".join(page))
    if chosen.report:
        Path(chosen.report).write_text("\n".join(page))


def measured(project: corpus.Project, load: int, chosen: Any) -> list[str]:
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
    broken, said = (sum(len(getattr(one.verdict, part)) for one in waited) for part in ("broken", "told"))
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
