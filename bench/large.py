"""What a project of 50,000 files costs, beside one of 50: above all, how much longer the feedback after an edit takes.

    $ python bench/large.py                               # 50,000 files in 20 nested roots, basedpyright
    $ python bench/large.py --files 10000 --roots 4 --server ty --edits 11

Both projects have the same file with the same importers, and get the same edits, in turns: a function returns another
type, and its one caller in another file is broken by that; then it is as it was. Every feedback must tell of it.
Printed are also how long a new daemon takes to start and to its first answer, the folders that are watched, the memory
of the daemon and of its server, how long `check --changed` takes, and the roots and megabytes of each project.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from harness import corpus, processes
from harness.pages import options
from harness.setting import Setting, hook, verb

FUNCTIONS = 25
ROW = 50
"""Modules that depend on each other: what depends on an edited file is as much in either project."""
EDITED, CALLER = 10, 11
DEADLINE_MS = 110_000
PATIENT = {"timing": {"diagnosticsWaitTimeoutMs": 60_000, "firstTouchTimeoutMs": DEADLINE_MS}}
ENOUGH = 1.2


def main() -> None:
    asked = options(__doc__, files=50_000, roots=20, small=50, edits=15, server="basedpyright")
    with tempfile.TemporaryDirectory(prefix="large-") as given:
        folder = Path(os.path.realpath(given))
        small = Bench(folder / "small", asked.small, 1, asked.server)
        large = Bench(folder / "large", asked.files, asked.roots, asked.server)
        try:
            for one in (small, large):
                one.begin()
            for _ in range(asked.edits):
                for one in (small, large):
                    one.edit()
            for one in (small, large):
                one.report()
        finally:
            for one in (small, large):
                one.end()
    ratio = statistics.median(large.times) / statistics.median(small.times)
    sizes = f"{large.files} files / {small.files} files"
    print(f"{asked.server}: feedback of an edit, {sizes}: {ratio:.2f} (at most {ENOUGH})")
    raise SystemExit(0 if ratio <= ENOUGH else 1)


class Bench:
    """One project, with a user and a daemon of its own."""

    def __init__(self, folder: Path, files: int, roots: int, server: str) -> None:
        self.files = files
        self.times = list[float]()
        self._start = 0.0
        self._first = 0.0
        self._root = folder / "work"
        self._package = self._root / ("part0" if roots > 1 else "") / "package"
        self._setting = Setting(self._root, folder / "scratch", server, trusted=True, config=PATIENT)
        megabytes = _write(self._root, files, roots)
        print(f"{files} files in {roots} roots, {megabytes:.0f} MB", flush=True)

    def begin(self) -> None:
        self._setting.prepare()
        began = time.perf_counter()
        hook(self._setting, "plain", {"event": "began", "session": "large"}, DEADLINE_MS)
        self._start = time.perf_counter() - began
        self._edited(EDITED, "str", expected=True)
        self._first = time.perf_counter() - began
        self._edited(EDITED, "int", expected=False)

    def edit(self) -> None:
        """Both ways are timed: the error comes, and goes."""
        self.times.append(self._edited(EDITED, "str", expected=True))
        self._edited(EDITED, "int", expected=False)

    def report(self) -> None:
        found = processes.of(self._setting)
        daemon = [one for one in found if "pilotfish.daemon" in " ".join(processes.words(one)) or _is_daemon(one)]
        servers = [one for one in found if one not in daemon]
        began = time.perf_counter()
        verb(self._setting, "check", "--changed", "--json")
        changed = time.perf_counter() - began
        edits = f"p50 {1000 * statistics.median(self.times):.0f} ms, most {1000 * max(self.times):.0f} ms"
        print(
            f"{self.files:6} files: start {self._start:.1f} s · first answer {self._first:.1f} s · edit {edits} · "
            f"watched folders {sum(map(_watches, daemon))} · daemon {processes.memory(daemon):.0f} MB · "
            f"servers {processes.memory(servers):.0f} MB · check --changed {changed:.1f} s",
            flush=True,
        )

    def end(self) -> None:
        verb(self._setting, "daemon", "stop")

    def _edited(self, number: int, returned: str, *, expected: bool) -> float:
        path = self._package / f"m{number}.py"
        path.write_text(_module("part0", number, returned))
        event = {"files": [str(path)], "kind": "edit", "session": "large"}
        told, took, _ = hook(self._setting, "plain", event, DEADLINE_MS)
        if (f"m{CALLER}.py" in told) != expected:
            raise SystemExit(f"{self.files} files: the edit to {returned} was answered with {told!r}")
        return took / 1000


def _write(root: Path, files: int, roots: int) -> float:
    written = 0
    for part in range(roots):
        folder = root / f"part{part}" if roots > 1 else root
        (folder / "package").mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "part{part}"\nversion = "1"\n')
        (folder / "package" / "__init__.py").write_text("")
        for number in range(files // roots):
            text = _module(f"part{part}", number, "int")
            (folder / "package" / f"m{number}.py").write_text(text)
            written += len(text)
    corpus.make_repository(root)
    return written / 1e6


def _module(part: str, number: int, returned: str) -> str:
    """It calls one function of the module before it, in rows of `ROW`; its first function returns this."""
    follows = number % ROW > 0
    head = f"from package.m{number - 1} import {part}_{number - 1}_0\n\n\n" if follows else ""
    call = f"{part}_{number - 1}_0(1) + 1" if follows else "1"
    value = "value" if returned == "int" else "str(value)"
    first = f"def {part}_{number}_0(value: int) -> {returned}:\n    return {value}\n\n\n"
    words = " ".join(f"word{number}_{one}" for one in range(8))
    others = [
        f'def {part}_{number}_{one}(value: int, other: str = "") -> int:\n'
        f'    """{words}"""\n    return value + len(other)\n\n\n'
        for one in range(1, FUNCTIONS)
    ]
    return f"{head}{first}{''.join(others)}used: int = {call}\n"


def _is_daemon(process: psutil.Process) -> bool:
    return _watches(process) > 0 and "python" in " ".join(processes.words(process))


def _watches(process: psutil.Process) -> int:
    try:
        return sum(one.read_text().count("inotify wd:") for one in Path(f"/proc/{process.pid}/fdinfo").iterdir())
    except OSError:
        return 0


if __name__ == "__main__":
    main()
