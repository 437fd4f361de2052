"""Ten worktrees of one repository at once, under a budget of memory that holds four of their servers.

    $ python bench/worktrees.py                     # ten worktrees of Flask, ty
    $ python bench/worktrees.py --server basedpyright --rounds 2
    $ python bench/worktrees.py --server typescript --worktrees 20 --pause 3

Every worktree has an agent that edits one file again and again and reads what it is told: in one round an error, in the
next none; between two edits it thinks for `--pause` seconds. All of them begin within ten seconds, through one new
daemon, which does not know how large a server gets. Printed are the answers that were wrong or lost, the most memory
that all servers had together, process trees included, against one server and against the budget, and how long an edit
took after the first of its worktree, against one agent alone.
"""

import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import corpus, processes
from harness.pages import options
from harness.setting import Setting, verb, watching, workplace

PROJECTS = {
    "typescript": ("rxjs", "src/internal/util/isFunction.ts", "\n\nexport const broken: number = 'text';\n"),
    None: ("flask+venv", "src/flask/helpers.py", '\n\nbroken: int = "text"\n'),
}
"""By server: a project, the file that is edited, and what is wrong then."""

BEGIN_SECONDS = 10.0
WAIT = {"timing": {"diagnosticsWaitTimeoutMs": 110_000, "firstTouchTimeoutMs": 110_000}}
"""An agent that waits for its answer: what is measured here is whether it is right, and not how soon it comes."""


def main() -> None:
    asked = options(__doc__, worktrees=10, holds=4, rounds=4, server="ty", pause=0.0)
    name, file, broken = PROJECTS.get(asked.server, PROJECTS[None])
    with workplace(corpus.projects()[name], asked.server, config=WAIT) as alone:
        root, folder = alone.root, alone.scratch.parent
        agent = _Agent(file, broken, asked.rounds, asked.pause)
        told_alone = agent.work(alone, root, 0.0)
        one = _servers(alone)
        verb(alone, "daemon", "stop")
        trees = [_worktree(root, folder / f"tree{number}") for number in range(asked.worktrees)]
        budget = round(one * (asked.holds + 0.5))
        config = {**WAIT, "pool": {"memoryMiB": budget, "shareWorktrees": True}}
        # All worktrees are below this folder: whatever works there is counted.
        setting = Setting(folder, folder / "scratch-many", asked.server, config=config).prepare()
        used, began = [0.0], time.monotonic()
        starts = [number * BEGIN_SECONDS / len(trees) for number in range(len(trees))]
        try:
            looking = watching(lambda: used.append(_servers(setting)), 0.5)
            with looking, ThreadPoolExecutor(len(trees)) as agents:
                told = [*agents.map(partial(agent.work, setting), trees, starts)]
        finally:
            verb(setting, "daemon", "stop")
        most, seconds = max(used), time.monotonic() - began
    answers = [said for each in told for said, _ in each]
    wrong, lost = answers.count("wrong"), answers.count("lost")
    print(f"{asked.server}: worktrees {len(trees)} · answers {len(answers)} · wrong {wrong} · lost {lost}")
    print(
        f"one server {one:.0f} MiB · budget {budget} MiB, for {asked.holds} · most in use {most:.0f} MiB, "
        f"{most / one:.1f} × one, {100 * most / budget:.0f} % of the budget · {seconds:.0f} s"
    )
    edit, edit_alone = (_median([took for each in told for _, took in each[1:]]) for told in (told, [told_alone]))
    print(f"an edit: median {edit:.2f} s, alone {edit_alone:.2f} s, {edit / edit_alone:.1f} ×")
    if set(answers) != {"right"} or most > budget * 1.1:
        raise SystemExit(1)


def _median(found: list[float]) -> float:
    return statistics.median(found)


def _worktree(root: Path, target: Path) -> Path:
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(target)], cwd=root, check=True)
    for name in (".venv", "node_modules"):
        if (root / name).exists() and not (target / name).exists():
            (target / name).symlink_to(root / name)
    return target


@dataclass(frozen=True)
class _Agent:
    file: str
    broken: str
    rounds: int
    pause: float

    def work(self, setting: Setting, tree: Path, start: float) -> list[tuple[str, float]]:
        """What came of each edit, and after how long."""
        time.sleep(start)
        good = (tree / self.file).read_text()
        found: list[tuple[str, float]] = []
        for number in range(self.rounds):
            began = time.monotonic()
            said = self._edit(setting, tree, good, is_broken=number % 2 == 0)
            found.append((said, time.monotonic() - began))
            time.sleep(self.pause)
        return found

    def _edit(self, setting: Setting, tree: Path, good: str, *, is_broken: bool) -> str:
        (tree / self.file).write_text(good + self.broken if is_broken else good)
        try:
            answer = json.loads(verb(setting, "check", "--json", "--severity", "error", self.file, cwd=tree))
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
    return any("langserver" in word or "tsserver" in word or "typescript-language" in word for word in words) or (
        words[1:2] == ["server"] and words[0].endswith("ty")
    )


if __name__ == "__main__":
    main()
