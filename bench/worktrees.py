"""Ten worktrees of one repository at once: what sharing servers costs, and what it saves.

    $ python bench/worktrees.py                                  # ten worktrees of 900 Python files, ty
    $ python bench/worktrees.py --server typescript --files 300
    $ python bench/worktrees.py --worktrees 20 --rounds 100 --pause 0 --only shared  # the daemon after 2,000 edits

In every worktree, which has differences of its own, an agent makes a function return another type, which breaks one
other file, and undoes it; between two edits it thinks for `--pause` seconds. What it is told after each edit must name
that file, or nothing, and never a file of another agent; what comes late must be told within 30 s. All
begin within ten seconds, through a new daemon each time: `alone` is one worktree; `own` gives each a server of its own,
without any limit; `shared` lets them share; `storm` is twice as many, under a ceiling of 2.5 servers. Memory is the
proportional one of all servers with what they started; CPU is of servers and daemon, for each edit after the second.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from harness import corpus, processes
from harness.pages import options
from harness.setting import Setting, hook, verb, watching

BEGIN_SECONDS = 10.0
DEADLINE_MS = 110_000
LATE_SECONDS = 30
CALL_SECONDS = 3
"""An agent that waits calls a tool as often as this: each call is a program that starts, too."""

FUNCTIONS = 25
ROW = 25
"""Modules that depend on each other. Each agent works in a row of its own."""
EDITED, OWN = 10, 20
STORM_HOLDS = 2.5
TARGET = 2.0
DAEMON_MB = 80.0


@dataclass(frozen=True)
class Language:
    suffix: str
    settings: Mapping[str, str]
    head: str
    function: str
    use: str
    types: tuple[str, ...]
    values: tuple[str, ...]
    """What a function gives, and what it gives where it is broken in one way or the other."""


PYTHON = Language(
    ".py",
    {"pyproject.toml": '[project]\nname = "made"\nversion = "1"\n', "source/__init__.py": ""},
    "from source.m{before} import f{before}_0\n\n\n",
    'def f{number}_{one}(value: int, other: str = "") -> {type}:\n    """{words}"""\n    return {value}\n\n\n',
    "used: int = {call}\n",
    ("int", "str", "float"),
    ("value + len(other)", "str(value) + other", "value / 2 + len(other)"),
)
TYPESCRIPT = Language(
    ".ts",
    {
        "package.json": '{"name": "made", "version": "1.0.0"}\n',
        "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["source"]}\n',
    },
    "import {{ f{before}_0 }} from './m{before}';\n\n",
    "/** {words} */\nexport function f{number}_{one}(value: number, other = ''): {type} {{\n  return {value};\n}}\n\n",
    "export const used: number = {call};\n",
    ("number", "string", "boolean"),
    ("value + other.length", "`${value}${other}`", "value > other.length"),
)


def module(language: Language, number: int, broken: int = 0) -> str:
    """It calls one function of the module before it in its row; if broken, its own first one gives another type."""
    follows = number % ROW > 0
    head = language.head.format(before=number - 1) if follows else ""
    words = " ".join(f"word{number}_{one}" for one in range(8))
    functions = (
        language.function.format(
            number=number, one=one, words=words, type=language.types[bad], value=language.values[bad]
        )
        for one in range(FUNCTIONS)
        for bad in [0 if one else broken]
    )
    return head + "".join(functions) + language.use.format(call=f"f{number - 1}_0(1) + 1" if follows else "1")


def numbers(told: str) -> set[int]:
    return {int(one) for one in re.findall(r"\bm(\d+)\.", told)}


@dataclass
class Found:
    """What came of one phase."""

    took: list[float] = field(default_factory=list[float])
    """Seconds of every edit but the first two of an agent."""
    first: list[float] = field(default_factory=list[float])
    wrong: int = 0
    late: int = 0
    """Told with a later event."""
    lost: int = 0
    cpu: float = 0.0
    """Seconds that servers and daemon used."""
    memory: float = 0.0
    daemon: float = 0.0

    @property
    def edit(self) -> float:
        return statistics.median(self.took)

    def said(self, name: str, count: int) -> str:
        late = sorted(self.took)[int(len(self.took) * 0.95)]
        return (
            f"{name:6} {count:2} worktrees · edits {len(self.took)} · wrong {self.wrong} · lost {self.lost} · "
            f"late {self.late} · "
            f"first {statistics.median(self.first):.2f} s · p50 {self.edit:.2f} s · p95 {late:.2f} s · "
            f"servers {self.memory:.0f} MB · "
            f"daemon {self.daemon:.0f} MB · CPU {self.cpu / len(self.took):.2f} s for each"
        )


@dataclass(frozen=True)
class Agent:
    language: Language
    rounds: int
    pause: float

    def work(self, setting: Setting, found: Found, number: int, tree: Path, start: float) -> None:
        time.sleep(start)
        hook(setting, "plain", {"event": "began", "session": tree.name, "cwd": str(tree)}, DEADLINE_MS)
        for edit in range(self.rounds):
            is_broken = edit % 2 == 0
            edited = number * ROW + EDITED
            path = tree / "source" / f"m{edited}{self.language.suffix}"
            # Another kind of error than the last one: of that, the agent may not have heard that it is gone.
            path.write_text(module(self.language, edited, edit // 2 % 2 + 1 if is_broken else 0))
            event = {"files": [str(path)], "kind": "edit", "session": tree.name, "cwd": str(tree)}
            told, took, error = hook(setting, "plain", event, DEADLINE_MS)
            expected = {edited + 1} if is_broken else set[int]()
            named = numbers(told) - {edited}
            is_late = not expected <= named
            for _ in range(LATE_SECONDS // CALL_SECONDS if is_late and not error else 0):
                time.sleep(CALL_SECONDS)
                told, _, error = hook(setting, "plain", {**event, "event": "called", "files": []}, DEADLINE_MS)
                if error or expected <= (named := numbers(told) - {edited}):
                    break
            if error or not expected <= named:
                found.lost += 1
                rows = json.loads(verb(setting, "status", "--json", cwd=tree))["conversations"]
                print(f"{tree.name}: edit {edit} of m{edited}: {error or told!r} {rows}", file=sys.stderr)
            elif named != expected:
                found.wrong += 1
                print(f"{tree.name}: edit {edit} of m{edited}: {told!r}", file=sys.stderr)
            else:
                found.late += is_late
            (found.first if edit < 2 else found.took).append(took / 1000)
            time.sleep(self.pause)


@dataclass(frozen=True)
class Bench:
    folder: Path
    language: Language
    server: str
    agent: Agent

    def phase(self, name: str, count: int, pool: dict[str, Any]) -> Found:
        base = self.folder / name
        trees = [*self._trees(base, count)]
        # All worktrees are below this folder: whatever works there is counted.
        setting = Setting(base, base / "scratch", self.server, config={"pool": pool}).prepare()
        found = Found()
        starts = [number * BEGIN_SECONDS / count for number in range(count)]
        try:
            with watching(partial(_measure, setting, found), 0.5), ThreadPoolExecutor(count) as agents:
                list(agents.map(partial(self.agent.work, setting, found), range(count), trees, starts))
        finally:
            verb(setting, "daemon", "stop")
        print(found.said(name, count), flush=True)
        return found

    def _trees(self, base: Path, count: int) -> Iterator[Path]:
        """The last one first: agents begin in the repository itself."""
        subprocess.run(["git", "clone", "-q", str(self.folder / "made"), str(base / "tree0")], check=True)
        for number in range(count):
            tree = base / f"tree{number}"
            if number:
                subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree)], cwd=base / "tree0", check=True)
            own = number * ROW + OWN
            with (tree / "source" / f"m{own}{self.language.suffix}").open("a") as file:
                file.write(module(self.language, own).replace(f"f{own}_", f"own{own}_").partition("\n\n")[2])
            yield tree


def main() -> None:
    asked = options(__doc__, worktrees=10, files=900, rounds=8, server="ty", pause=5.0, only="")
    language = TYPESCRIPT if asked.server.startswith(("typescript", "vtsls")) else PYTHON
    with tempfile.TemporaryDirectory(prefix="worktrees-") as given:
        folder = Path(os.path.realpath(given))
        _write(folder / "made", language, max(asked.files, 2 * ROW * asked.worktrees if not asked.only else 0))
        bench = Bench(folder, language, asked.server, Agent(language, asked.rounds, asked.pause))
        if asked.only:
            bench.phase(asked.only, asked.worktrees, {"shareWorktrees": asked.only == "shared", "memoryMiB": None})
            return
        alone = bench.phase("alone", 1, {"shareWorktrees": True, "memoryMiB": None})
        own = bench.phase("own", asked.worktrees, {"shareWorktrees": False, "memoryMiB": None})
        shared = bench.phase("shared", asked.worktrees, {"shareWorktrees": True, "memoryMiB": None})
        ceiling = round(alone.memory * STORM_HOLDS / 1.048576)
        storm = bench.phase("storm", 2 * asked.worktrees, {"shareWorktrees": True, "memoryMiB": ceiling})
    raise SystemExit(_judged(alone, own, shared, storm, ceiling * 1.048576))


def _judged(alone: Found, own: Found, shared: Found, storm: Found, ceiling: float) -> int:
    ratios = {
        "wrong and lost, shared and storm": (shared.wrong + shared.lost + storm.wrong + storm.lost, 0.0),
        "memory of shared / one": (shared.memory / alone.memory, TARGET),
        "edit p50 of shared / one": (shared.edit / alone.edit, TARGET),
        "memory of storm / its ceiling": (storm.memory / ceiling, 1.0),
        "daemon after the storm, MB": (storm.daemon, DAEMON_MB),
    }
    for name, (value, most) in ratios.items():
        print(f"{name}: {value:.2f} (at most {most:g}) {'held' if value <= most else 'NOT HELD'}")
    print(f"for comparison, own / one: memory {own.memory / alone.memory:.2f}, edit p50 {own.edit / alone.edit:.2f}")
    return int(any(value > most for value, most in ratios.values()))


def _write(root: Path, language: Language, files: int) -> None:
    (root / "source").mkdir(parents=True)
    for name, text in language.settings.items():
        (root / name).write_text(text)
    for number in range(files):
        (root / "source" / f"m{number}{language.suffix}").write_text(module(language, number))
    corpus.make_repository(root)


def _measure(setting: Setting, found: Found) -> None:
    """The most so far, of the servers and of the daemon: without our other programs."""
    servers = daemon = 0.0
    known = processes.of(setting)
    found.cpu = max(found.cpu, processes.cpu_seconds(known))
    for process in known:
        line = processes.words(process)
        if "pilotfish.daemon" in " ".join(line):
            daemon += _proportional(process)
        elif line and not {"-S", "git", "pilotfish"}.intersection(line):
            servers += _proportional(process)
    found.memory, found.daemon = max(found.memory, servers), max(found.daemon, daemon)


def _proportional(process: psutil.Process) -> float:
    """Megabytes, each shared page in parts."""
    try:
        said = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(re.findall(r"^Pss:\s+(\d+)", said, re.MULTILINE)[0]) * 1024 / 1e6 if "Pss:" in said else 0.0


if __name__ == "__main__":
    main()
