"""Ten worktrees of one repository at once, under a budget of memory that holds four of their servers.

    $ python bench/worktrees.py                     # ten worktrees of Flask, ty
    $ python bench/worktrees.py --server basedpyright --rounds 2

Every worktree has an agent that edits one file again and again and reads what it is told: in one round an error, in the
next none. All of them begin at the same time, through one new daemon, which does not know how large a server gets.
Printed are the answers that were wrong or lost, and the most memory that all servers had together, process trees
included, against the budget.
"""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from harness import corpus, processes
from harness.pages import options
from harness.setting import Setting, verb, watching, workplace

FILE = "src/flask/helpers.py"
BROKEN = '\n\nbroken: int = "text"\n'
WAIT = {"timing": {"diagnosticsWaitTimeoutMs": 110_000, "firstTouchTimeoutMs": 110_000}}
"""An agent that waits for its answer: what is measured here is whether it is right, and not how soon it comes."""


def main() -> None:
    asked = options(__doc__, worktrees=10, holds=4, rounds=4, server="ty")
    project = corpus.projects()["flask+venv"]
    with workplace(project, asked.server, config=WAIT) as alone:
        root, folder = alone.root, alone.scratch.parent
        _work(alone, 2, root)
        one = _servers(alone)
        verb(alone, "daemon", "stop")
        trees = [_worktree(root, folder / f"tree{number}") for number in range(asked.worktrees)]
        budget = round(one * (asked.holds + 0.5))
        config = {**WAIT, "pool": {"memoryMiB": budget}}
        # All worktrees are below this folder: whatever works there is counted.
        setting = Setting(folder, folder / "scratch-many", asked.server, config=config).prepare()
        used, began = [0.0], time.monotonic()
        try:
            looking = watching(lambda: used.append(_servers(setting)), 0.5)
            with looking, ThreadPoolExecutor(len(trees)) as agents:
                told = [*agents.map(partial(_work, setting, asked.rounds), trees)]
        finally:
            verb(setting, "daemon", "stop")
        most, seconds = max(used), time.monotonic() - began
    answers = [one for each in told for one in each]
    wrong, lost = answers.count("wrong"), answers.count("lost")
    print(f"{asked.server}: worktrees {len(trees)} · answers {len(answers)} · wrong {wrong} · lost {lost}")
    print(
        f"one server {one:.0f} MiB · budget {budget} MiB, for {asked.holds} · most in use {most:.0f} MiB, "
        f"{100 * most / budget:.0f} % of the budget · {seconds:.0f} s"
    )
    if set(answers) != {"right"} or most > budget * 1.1:
        raise SystemExit(1)


def _worktree(root: Path, target: Path) -> Path:
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(target)], cwd=root, check=True)
    (target / ".venv").symlink_to(root / ".venv")
    return target


def _work(setting: Setting, rounds: int, tree: Path) -> list[str]:
    good = (tree / FILE).read_text()
    return [_edit(setting, tree, good, is_broken=number % 2 == 0) for number in range(rounds)]


def _edit(setting: Setting, tree: Path, good: str, *, is_broken: bool) -> str:
    (tree / FILE).write_text(good + BROKEN if is_broken else good)
    try:
        answer = json.loads(verb(setting, "check", "--json", "--severity", "error", FILE, cwd=tree))
    except ValueError:
        return "lost"
    if answer["meta"]["state"] != "fresh":
        print(f"{tree.name}: {answer['meta'].get('reason')}", file=sys.stderr)
        return "lost"
    lines = {one["line"] for found in answer["data"].values() for one in found}
    is_told = len(good.splitlines()) + 3 in lines
    return "right" if is_told == is_broken else "wrong"


def _servers(setting: Setting) -> float:
    """MiB of the servers alone, with all that is below them: the daemon and the command lines are not in the budget."""
    found = [one for one in processes.of(setting) if _is_server(processes.words(one))]
    return processes.memory(found) * 1e6 / 2**20


def _is_server(words: list[str]) -> bool:
    return any("langserver" in word for word in words) or (words[1:2] == ["server"] and words[0].endswith("ty"))


if __name__ == "__main__":
    main()
