"""Plays random schedules of the model of freshness: is anything stale called fresh, or anything wrong called clean?

`python bench/schedules.py COUNT [--seed N]` plays COUNT schedules, the kinds of servers in turn; several runs with
different seeds may go side by side. `--number N` plays one of them again, and prints it. Exits 1 after a failure.
The model and its oracle are `tests/support/oracles/freshness.py`; `tests/feedback/test_freshness_model.py` plays 2,000
in every gate, and more by Hypothesis, which makes a failure small.
"""

import gc
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness.pages import options

from support.oracles.freshness import Checked, Schedule, make_ground, play, wrong
from support.oracles.schedules import numbered

MEMORY = Path("/dev/shm")

COLLECT_EVERY = 300
"""Schedules. A fifth of the time goes into collections otherwise."""


def main() -> int:
    chosen = options(__doc__, count=("1300",), seed=0, number=-1)
    # What a broken watcher raises is logged, ten thousand times.
    logging.disable(logging.CRITICAL)
    gc.disable()
    numbers = range(int(chosen.count[0])) if chosen.number < 0 else [chosen.number]
    outcomes: Counter[str] = Counter()
    failures, started = 0, time.process_time()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        root = Path(folder).resolve()
        make_ground(root)
        for number in numbers:
            if number % COLLECT_EVERY == 0:
                gc.collect()
            schedule, found = _played(root, chosen.seed, number, outcomes)
            failures += bool(found)
            if found or chosen.number >= 0:
                print(f"seed {chosen.seed} number {number}: {schedule.kind.name}", *found, sep="\n  ")
                print(*schedule.steps, list(schedule.tape), sep="\n  ", flush=True)
    spent = time.process_time() - started
    print(f"{len(numbers)} schedules, seed {chosen.seed}: {failures} failures; {spent:.0f} s of processor time")
    print(", ".join(f"{count} {word}" for word, count in outcomes.most_common()))
    return 1 if failures else 0


def _played(root: Path, seed: int, number: int, outcomes: Counter[str]) -> tuple[Schedule, list[str]]:
    schedule = numbered(seed, number)
    world = play(schedule, str(root))
    outcomes.update(map(_word, world.checked))
    return schedule, wrong(world)


def _word(checked: Checked) -> str:
    if checked.outcome.diagnostics is None:
        return "without a verdict"
    return "fresh" if checked.outcome.is_fresh else "assumed"


if __name__ == "__main__":
    sys.exit(main())
