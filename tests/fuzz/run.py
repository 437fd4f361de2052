"""`./fuzz TARGET… [--seconds N] [--runs N] [--keep]`: each target in a process of its own, guided by coverage.

Coverage comes from atheris (`pip install --editable '.[fuzz]'`; without a wheel for the machine that needs clang).
Where it is not installed, inputs are made by chance alone, and the last line says so.
An input that fails is printed as a Python literal: put it into the target's corpus, and the gate has it from then on.
`--keep` writes the inputs that reach new code into the corpus, smallest first.
"""

import argparse
import ast
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.known import NAMES, Target, target
from fuzz.mutate import MAX_SIZE, mutations

MAX_KEPT = 60
"""Inputs in a corpus file: enough to reach what is worth reaching, and few enough to read."""

MAX_KEPT_SIZE = 300
"""Bytes of one of them."""

RSS_LIMIT_MIB = 512
HANG_SECONDS = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all, or some of: {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="at most, for each target")
    parser.add_argument("--keep", action="store_true", help="write what was found into the corpus")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = NAMES if options.targets == ["all"] else options.targets
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no target is called {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    if options.inside:
        return by_coverage(names[0], options.seconds, options.runs)
    if not names:
        print("\n".join(NAMES))
    return max((fuzzed(name, options) for name in names), default=0)


def fuzzed(name: str, options: argparse.Namespace) -> int:
    """Run one target; print what came of it."""
    if importlib.util.find_spec("atheris") is None:
        return by_chance(target(name), options.seconds, options.runs)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "corpus").mkdir()
        for number, data in enumerate(target(name).inputs()):
            (here / "corpus" / f"known{number}").write_bytes(data)
        argv = [
            sys.executable,
            __file__,
            name,
            "--inside",
            "--seconds",
            str(options.seconds),
            "--runs",
            str(options.runs),
        ]
        done = subprocess.run(argv, cwd=here, capture_output=True, text=True, errors="replace", check=False)
        print(f"{name}: {_figures(done.stderr)}{'' if done.returncode == 0 else ' FAILED'}", flush=True)
        for crash in sorted(here.glob("*-*")):
            print(f"{crash.name.partition('-')[0]}: {crash.read_bytes()!r}\n{_traceback(done.stdout, done.stderr)}")
        if options.keep:
            keep(target(name), [file.read_bytes() for file in (here / "corpus").iterdir()])
    return done.returncode


def by_coverage(name: str, seconds: int, runs: int) -> int:
    """Inside the process of one target: the fuzzer of libFuzzer, with our own code instrumented."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["pilotfish"]):
        fuzzed_target = target(name)
    words = Path("words")
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in fuzzed_target.words))
    flags = [
        f"-max_total_time={seconds}",
        f"-runs={runs}",
        f"-max_len={MAX_SIZE}",
        f"-dict={words}",
        "-print_final_stats=1",
    ]
    limits = [f"-rss_limit_mb={RSS_LIMIT_MIB}", f"-timeout={HANG_SECONDS}", "-verbosity=1"]
    atheris.Setup([sys.argv[0], *flags, *limits, "corpus"], fuzzed_target.run)
    atheris.Fuzz()
    return 0


def by_chance(fuzzed_target: Target, seconds: int, runs: int) -> int:
    began, done = time.monotonic(), 0
    for data in mutations(fuzzed_target.inputs(), fuzzed_target.words, number=os.getpid()):
        if done == runs or time.monotonic() - began > seconds:
            break
        try:
            fuzzed_target.run(data)
        except Exception:
            print(f"{fuzzed_target.name} FAILED for {data!r}")
            raise
        done += 1
    print(f"{fuzzed_target.name}: {done} executions by chance alone (atheris is not installed)", flush=True)
    return 0


def keep(fuzzed_target: Target, found: list[bytes]) -> None:
    """Add what was found to the corpus file, smallest first, without what is there."""
    before = fuzzed_target.corpus()
    small = sorted({data for data in found if len(data) <= MAX_KEPT_SIZE} - {*before, *fuzzed_target.seeds}, key=len)
    lines = [repr(data) for data in [*before, *small][:MAX_KEPT]]
    assert all(ast.literal_eval(line) is not None for line in lines)
    fuzzed_target.corpus_file.write_text("".join(f"{line}\n" for line in lines))


def _escaped(word: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word)


def _figures(log: str) -> str:
    stats = dict(line[len("stat::") :].split(":") for line in log.splitlines() if line.startswith("stat::"))
    figures = {name.strip(): value.strip() for name, value in stats.items()}
    return (
        f"{figures.get('number_of_executed_units', '?')} executions, "
        f"{figures.get('average_exec_per_sec', '?')} per second, {figures.get('peak_rss_mb', '?')} MiB at most"
    )


def _traceback(*logs: str) -> str:
    return "\n".join(log[-3000:] for log in logs if "Traceback" in log or "ERROR" in log)


if __name__ == "__main__":
    sys.exit(main())
