"""`pilotfish batch` beside the checker's own command line: patches per minute, cost per patch, and whether they agree.

    $ python bench/batch.py                      # 200 patches of Flask and of rxjs; writes bench/batch.md
    $ python bench/batch.py --patches 20 --no-ray
    $ python bench/batch.py --timed 20           # the command line is timed for 20 of them, and the rest is estimated
    $ python bench/batch.py --truth-only         # only the command line, whose findings are kept

Every patch is one random edit of the published project (`told/edits.py`), and the truth is the command line of the
same checker on the project before and after it, from the start: by file and line, which errors are new. What it says
of a state is kept in the cache of `told`; how long it takes and what it costs is measured anew in every run.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import corpus, processes
from harness.pages import head, line, options
from harness.servers import SERVERS
from harness.setting import Setting, pilotfish, watching
from told import truth
from told.edits import Edit, Texts, apply, plan

KINDS = ("harmless", "own", "others")
SUBJECTS = (("flask+venv", "basedpyright"), ("rxjs", "typescript"))
FIRST_SEED = 2600
SETTLE = """
import sys, time
import ray
ray.init(address=sys.argv[1])
work = ray.remote(num_cpus=1)(lambda: time.sleep(5))
ray.get([work.remote() for _ in range(int(sys.argv[2]))])
"""
"""Work for every processor of a cluster, after which all of it runs."""


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_seconds: float


def patches_of(texts: Texts, language: str, count: int) -> list[Edit]:
    """So many patches of the same base, each by a seed of its own: a shorter run has the first of a longer one."""
    return [plan(texts, language, 1, FIRST_SEED + number, KINDS)[0] for number in range(count)]


def timed_truth(asker: truth.Asker, state: Texts) -> Cost:
    """What asking the command line costs from the start: what it kept of the last time is gone."""
    for kept in asker.folder.glob("*.tsbuildinfo"):
        kept.unlink()
    began, before = time.perf_counter(), _children_cpu()
    asker.ask(state)
    return Cost(time.perf_counter() - began, _children_cpu() - before)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- The truth by line ----------------------------------------------------------------------------------------------

Errors = Counter[tuple[str, int]]
"""By file and line."""


def introduced(before: truth.Findings, after: truth.Findings, edit: Edit) -> Errors:
    """The errors that are there after the patch and were not before, where lines that stayed are the same lines."""
    changed = {change.path: change for change in edit.changes}
    found = Errors()
    for file, problems in after.items():
        new = [one for one in problems if one.severity == "error"]
        old = [one for one in before.get(file, ()) if one.severity == "error"]
        change = changed.get(file)
        moved = truth.kept_lines(change) if change else None
        places = Counter((one.key, one.line if moved is None else moved.get(one.line, -1)) for one in old)
        unpaired = list[truth.Problem]()
        for one in new:
            if places[one.key, one.line]:
                places[one.key, one.line] -= 1
            else:
                unpaired.append(one)
        left = Counter[tuple[str, str]]()
        for (key, _), count in places.items():
            left[key] += count
        for one in unpaired:
            if left[one.key]:
                left[one.key] -= 1
            else:
                found[file, one.line] += 1
    return found


# --- Pilotfish ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchRun:
    name: str
    judgements: Mapping[int, Mapping[str, Any]]
    cost: Cost

    def agrees(self, number: int, expected: Errors) -> bool:
        one = self.judgements.get(number)
        return one is not None and one["state"] == "fresh" and self.errors(number) == expected

    def errors(self, number: int) -> Errors:
        said = self.judgements[number]["introduced"]
        return Counter((one["file"], one["line"]) for one in said)


def run_batch(name: str, setting: Setting, lines: Path, options: Sequence[str]) -> BatchRun:
    """`pilotfish batch` as a user runs it; its cost is the processor time of all of its processes."""
    argv = [*pilotfish(), "batch", str(lines), *options]
    began = time.perf_counter()
    with subprocess.Popen(argv, cwd=setting.root, env=setting.environment(), stdout=subprocess.PIPE) as process:
        # Sampled: what ends between two looks lacks up to a third of a second.
        used = dict[tuple[int, float], float]()
        with watching(lambda: _look(setting, used), 0.3):
            output, _ = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode not in (0, 2):
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}")
    said = [json.loads(line) for line in output.splitlines()]
    judgements = {one["id"]: one for one in said}
    if len(judgements) != len(said):
        raise SystemExit(f"{name}: a patch was judged twice")
    return BatchRun(name, judgements, Cost(seconds, sum(used.values())))


@contextmanager
def ray_cluster(setting: Setting, workers: int) -> Generator[Sequence[str]]:
    """A cluster of this machine that is there before the batch, as clusters are; and how `pilotfish batch` finds it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    ray = str(Path(sys.executable).with_name("ray"))
    argv = [ray, "start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", address.partition(":")[2]]
    argv += ["--num-cpus", str(workers), "--include-dashboard", "false"]
    environment, silent = setting.environment(), subprocess.DEVNULL
    with subprocess.Popen(argv, env=environment, stdout=silent, stderr=silent) as cluster:
        try:
            asking = [ray, "status", "--address", address]
            while subprocess.run(asking, env=environment, stdout=silent, stderr=silent, check=False).returncode:
                if cluster.poll() is not None:
                    raise SystemExit(f"{' '.join(argv)} ended with {cluster.returncode}")
            # Its own processes take seconds to start after that.
            settling = [sys.executable, "-c", SETTLE, address, str(workers)]
            subprocess.run(settling, env=environment, stdout=silent, stderr=silent, check=True)
            yield "--address", address
        finally:
            cluster.terminate()


def _look(setting: Setting, used: dict[tuple[int, float], float]) -> None:
    """Note the processor time of all that run, by what never changes of a process."""
    for process in processes.of(setting):
        used[process.pid, process.create_time()] = processes.cpu_seconds([process])


# --- The table ------------------------------------------------------------------------------------------------------


def measure(name: str, server: str, asked: Any, ways: Mapping[str, Sequence[str]]) -> list[str]:
    count: int = asked.patches
    project = corpus.projects()[name]
    with tempfile.TemporaryDirectory(prefix="batch-") as given:
        folder = Path(os.path.realpath(given))
        root = corpus.copy(project, folder)
        texts = corpus.texts(root, project.language)
        truth.prepare(SERVERS[server], root)
        edits = patches_of(texts, project.language, count)
        expected, costs = truths_of(project, server, texts, edits, min(asked.timed, count))
        share = count / len(costs)
        by_line = Cost(share * sum(one.seconds for one in costs), share * sum(one.cpu_seconds for one in costs))
        by = "command line" if len(costs) == count else f"command line, timed {len(costs)}"
        rows = [_row(name, server, by, count, by_line, by_line, "")]
        print(rows[0], flush=True)
        if asked.truth_only:
            return rows
        lines = folder / "patches.jsonl"
        lines.write_text("".join(json.dumps(_line(number, edit)) + "\n" for number, edit in enumerate(edits)))
        for way, options in ways.items():
            setting = Setting(root, folder / f"scratch-{way}", server, trusted=True).prepare()
            with ray_cluster(setting, asked.jobs) if way == "ray" else nullcontext(()) as where:
                run = run_batch(way, setting, lines, [*options, *where])
            wrong = [number for number in range(count) if not run.agrees(number, expected[number])]
            for number in wrong:
                _explain(run, number, edits[number], expected[number])
            rows.append(_row(name, server, way, count, run.cost, by_line, f"{count - len(wrong)} of {count}"))
            print(rows[-1], flush=True)
        return rows


def truths_of(
    project: corpus.Project, server: str, texts: Texts, edits: Sequence[Edit], timed: int
) -> tuple[list[Errors], list[Cost]]:
    """What each patch introduces; what asking for the first ones cost."""
    found, costs = list[Errors](), list[Cost]()
    with truth.Asker(project, server).open() as asker:
        base = asker.findings(texts)
        for number, edit in enumerate(edits):
            state = dict(texts)
            apply(state, edit)
            if number < timed:
                costs.append(timed_truth(asker, state))
            found.append(introduced(base, asker.findings(state), edit))
            print(f"{project.name}: truth {number + 1}/{len(edits)}", file=sys.stderr, flush=True)
    return found, costs


def _explain(run: BatchRun, number: int, edit: Edit, expected: Errors) -> None:
    if number not in run.judgements:
        print(f"{run.name}: patch {number} was lost", file=sys.stderr)
        return
    said, got = run.judgements[number], run.errors(number)
    print(f"{run.name}: patch {number} ({edit.kind}: {edit.note}) {said['state']} {said.get('reason') or ''}\n"
          f"  missing {dict(expected - got)}\n  too much {dict(got - expected)}", file=sys.stderr)  # fmt: skip


def _line(number: int, edit: Edit) -> dict[str, Any]:
    return {"id": number, "files": {change.path: change.after for change in edit.changes}}


def _row(name: str, server: str, way: str, count: int, cost: Cost, beside: Cost, equal: str) -> str:
    pace, times = 60 * count / cost.seconds, beside.seconds / cost.seconds
    cells = [name, server, way, str(count), f"{cost.seconds:.0f}", f"{pace:.1f}", f"{times:.1f}"]
    cells += [f"{cost.cpu_seconds / count:.2f}", f"{beside.cpu_seconds / cost.cpu_seconds:.1f}", equal]
    return line(cells)


HEAD = (*("project", "server", "by", "patches", "seconds", "patches per minute", "×", "CPU s per patch", "×", "equal"),)


def main() -> None:
    asked = options(__doc__, patches=200, project="", jobs=2, no_ray=False, timed=10_000, truth_only=False, out="")
    jobs = ["--jobs", str(asked.jobs)]
    ways = {one: [*jobs, "--engine", one] for one in ("local", "ray")[: 1 if asked.no_ray else 2]}
    rows = [head(HEAD)]
    for name, server in SUBJECTS:
        if name in (asked.project or name).split(","):
            rows += measure(name, server, asked, ways)
    table = "\n".join(rows)
    print(table)
    if asked.out:
        Path(asked.out).write_text(f"# Many patches\n\nWhat `python bench/batch.py` printed.\n\n{table}\n")


if __name__ == "__main__":
    main()
