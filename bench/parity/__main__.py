"""`bench/run [--quick] [--seed N] [--only NAME,…] [--out FOLDER]` and `bench/compare A.json B.json`."""

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from parity import agent_loop, lives, measures, ours, peers, report
from parity.subjects import Kind, Scratch, bare

OURS = [
    Kind("library", ours.library, is_ours=True),
    Kind("mcp", ours.with_daemon(ours.mcp), is_ours=True),
    Kind("cli", ours.with_daemon(ours.command_line), is_ours=True),
    Kind("hook", ours.with_daemon(ours.hook), is_ours=True),
]
FLOOR = Kind("bare", bare)


def main() -> int:
    arguments = argparse.ArgumentParser(prog="bench", description=__doc__)
    verbs = arguments.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run")
    run.add_argument("--quick", action="store_true")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--only", default="")
    run.add_argument("--out", type=Path, default=Path("bench-report"))
    compare = verbs.add_parser("compare")
    compare.add_argument("files", nargs=2, type=Path)
    chosen = arguments.parse_args()
    if chosen.verb == "compare":
        print(report.compared(*chosen.files))
        return 0
    only: set[str] = set(chosen.only.split(",")) - {""}
    kinds = [kind for kind in [FLOOR, *OURS, *peers.KINDS.values()] if not only or kind.name in only]
    for kind in kinds:
        if kind.name in peers.PINS:
            peers.install(kind.name)
    plan = replace(measures.QUICK if chosen.quick else measures.WHOLE, seed=chosen.seed)
    records = asyncio.run(measured(plan, kinds, only))
    written = report.written(chosen.out, plan, records, " ".join(["bench/run", *sys.argv[2:]]))
    print(written.read_text())
    return 0


async def measured(plan: measures.Plan, kinds: list[Kind], only: set[str]) -> list[measures.Record]:
    with tempfile.TemporaryDirectory() as folder:
        bench = measures.Bench(plan, kinds, Scratch(Path(folder).resolve()))
        for language in plan.languages:
            for step in (measures.warm, measures.cold, lives.lives):
                said(f"{language}: {step.__name__}")
                await step(bench, language)
        if not only or "opencode" in only:
            said("the agent loop")
            agent_loop.loops(bench)
        return bench.records


def said(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
