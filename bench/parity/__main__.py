"""`bench/run [--quick] [--seed N] [--only NAME,…] [--out FOLDER]` and `bench/compare A.json B.json` (or two `.jsonl` of
`bench/told/run --out`).

`--only` takes parts (`warm`, `cold`, `lives`, …), subjects (`bare`, `mcp`, `cclsp`, …) and languages: of each of these,
what is named is run, or all where nothing of it is named.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from harness import processes
from harness.setting import end_on_signal
from told import figures

from parity import agent_loop, lives, measures, programs, report
from parity.records import QUICK, WHOLE, Bench, Plan, plain, said
from parity.subjects import KINDS, PEERS, Kind, Scratch, smoke

Part = Callable[[Bench, str], Awaitable[None]]

PARTS: dict[str, Part] = {
    "warm": measures.warm,
    "cold": measures.cold,
    "scale": measures.scale,
    "lists": measures.lists,
    "lives": lives.lives,
    "growth": programs.growth,
    "once": agent_loop.once,
    "loop": agent_loop.loops,
}
"""Run for each language; `programs` has none."""

PROGRAMS = "programs"


def main() -> int:
    chosen = _arguments()
    if chosen.verb == "compare":
        return _compared(*chosen.files)
    end_on_signal()
    names = set(KINDS)
    parts, subjects = chosen.only & {*PARTS, PROGRAMS}, chosen.only & names
    languages = chosen.only & set(QUICK.languages)
    if unknown := chosen.only - parts - subjects - languages:
        known = ", ".join([*PARTS, PROGRAMS, *names, *QUICK.languages])
        raise SystemExit(f"--only does not know {', '.join(unknown)}; it knows {known}")
    plan = replace(QUICK if chosen.quick else WHOLE, seed=chosen.seed)
    plan = replace(plan, languages=tuple(one for one in plan.languages if not languages or one in languages))
    bench = asyncio.run(measured(plan, parts or {*PARTS, PROGRAMS}, subjects or names))
    print(report.written(chosen.out, bench, _command(chosen)).read_text())
    return 1 if bench.broken else 0


def _compared(first: Path, second: Path) -> int:
    """Medians of two runs of `bench/run`; of `bench/told/run`, what was told, and 1 where the second told it worse."""
    if first.suffix != ".jsonl":
        print(report.compared(first, second))
        return 0
    table, is_worse = figures.compared(figures.rows(first), figures.rows(second))
    print(table)
    return int(is_worse)


def _command(chosen: argparse.Namespace) -> str:
    """How to run it again; where the report goes is of no interest to others."""
    quick, only = (
        ["--quick"] if chosen.quick else [],
        [f"--only {','.join(sorted(chosen.only))}"] if chosen.only else [],
    )
    return " ".join(["bench/run", *quick, f"--seed {chosen.seed}", *only])


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="bench", description=__doc__)
    verbs = arguments.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run")
    run.add_argument("--quick", action="store_true")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--only", default=set[str](), type=lambda said: set(said.split(",")))
    run.add_argument("--out", type=Path, default=Path("bench-report"))
    compare = verbs.add_parser("compare")
    compare.add_argument("files", nargs=2, type=Path)
    return arguments.parse_args()


async def measured(plan: Plan, parts: set[str], subjects: set[str]) -> Bench:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        bench = Bench(plan, [], Scratch(root))
        for kind in (kind for kind in KINDS.values() if kind.name in subjects):
            bench.kinds = [*bench.kinds, replace(kind, languages=await _works(bench, kind))]
        try:
            for name, part in PARTS.items():
                for language in plan.languages if name in parts else ():
                    await _done(bench, f"{name}, {language}", part(bench, language))
            if PROGRAMS in parts:
                await _done(bench, PROGRAMS, programs.programs(bench))
        finally:
            processes.end_below(root)
        said("done")
        bench.loads.append(os.getloadavg()[0])
        return bench


async def _done(bench: Bench, name: str, part: Awaitable[None]) -> None:
    """A part that breaks is told of in the report, and what the others measure in an hour is not lost with it."""
    said(name)
    try:
        await part
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is told
        traceback.print_exc()
        bench.broken.append(f"{name}: {type(error).__name__}: {plain(error, bench.scratch.root)}")


async def _works(bench: Bench, kind: Kind) -> tuple[str, ...]:
    """The languages in which it can be measured: what a registry does not give cannot, nor what fails its smoke test.

    The report says so; and of one that passes half of it, with the figures of the other half.
    """
    peer, found = PEERS.get(kind.name), list[str]()
    if peer is None or not peer.pins:
        return kind.languages
    for language in bench.plan.languages:
        said(f"smoke test of {kind.name}, {language}")
        try:
            peer.install()
            failed = await smoke(peer, language, bench.scratch)
        except (OSError, subprocess.CalledProcessError) as error:
            failed: dict[str, str] = dict.fromkeys(("definition", "shown"), f"not installed: {plain(error)}")
        for what, measure in (("definition", "warm definition"), ("shown", "edit: introduce")):
            if what in failed:
                bench.fail([measure], language, kind.name, failed[what])
        found += [language] if len(failed) < 2 else []
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main())
