"""How long a person waits for Pilotfish itself: a daemon that starts, and a warm question of the command line.

`PYTHONPATH=bench .venv/bin/python bench/speed.py [--runs 20]`, on a machine that does nothing else.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from parity.fixtures import make
from parity.subjects import environment

from pilotfish.ipc.client import Terms, open_link

WAIT_SECONDS = 60.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=20)
    runs = arguments.parse_args().runs
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        measured(Path(folder).resolve(), runs)


def measured(folder: Path, runs: int) -> None:
    fixture, variables = make("typescript", folder / "w", seed=1, modules=20, functions=4), environment(folder / "s")
    place = fixture.places[0]
    where = f"{place.file}:{place.line + 1}:{place.character + 1}"

    def pilotfish(*words: str) -> str:
        argv = [sys.executable, "-m", "pilotfish", *words]
        done = subprocess.run(argv, cwd=fixture.root, env=variables, capture_output=True, text=True, check=True)
        return done.stdout

    def welcomed() -> None:
        with open_link(None, Terms(variables, start=True, seconds=WAIT_SECONDS)):
            pass

    shown("an interpreter that does nothing", runs, lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    try:
        shown("a daemon, to its welcome", runs, welcomed, lambda: pilotfish("daemon", "stop"))
        assert place.target in pilotfish("definition", where)
        for words in (
            ["definition", place.name],
            ["definition", where],
            ["references", where],
            ["symbols", place.file],
        ):
            shown(f"pilotfish {words[0]}, warm", runs, lambda words=words: pilotfish(*words))
    finally:
        pilotfish("daemon", "stop")


def shown(what: str, runs: int, asked: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
    times = list[float]()
    for _ in range(runs):
        before()
        began = time.perf_counter()
        asked()
        times.append((time.perf_counter() - began) * 1000)
    print(f"{what}: least {min(times):.0f}, median {statistics.median(times):.0f}, most {max(times):.0f} ms (n {runs})")


if __name__ == "__main__":
    main()
