"""How soon the first edit of a new session is answered, with and without servers that were started when it began.

    PYTHONPATH=bench python bench/warming.py [--runs N] [--pause SECONDS] [PROJECT:SERVER:FILE …]

Each run has a new daemon. Both sides have the same pause before the first edit, which is what a model thinks and reads;
on one side the host has told that the session began. The edit adds an error: an answer without it does not count.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from told import corpus
from told.subjects.children import plain_hook, verb
from told.subjects.setting import Setting

PROJECTS = (
    "httpx:basedpyright:httpx/_utils.py",
    "httpx:ty:httpx/_utils.py",
    "rxjs:typescript:src/internal/util/noop.ts",
    "cobra:gopls:args.go",
)
MISTAKE = {".py": "\nno_such_name\n", ".ts": "\nno_such_name;\n", ".go": "\nvar mistake int = noSuchName\n"}
NAMED = ("no_such_name", "noSuchName")

DEADLINE_MS = 60_000
PATIENT = {"timing": {"firstTouchTimeoutMs": DEADLINE_MS}}
"""So that the first answer has the error, however long a cold server takes."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--pause", type=float, default=5.0)
    arguments.add_argument("project", nargs="*", default=PROJECTS)
    given = arguments.parse_args()
    print(f"Milliseconds to the first fresh feedback of a session, median of {given.runs} (least – most);")
    print(f"{given.pause:g} s pass between its beginning and its first edit.")
    print(f"Load of the machine at the beginning: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.\n")
    print("| project | server | without warming | with warming | × |")
    print("|---|---|---|---|---|")
    for one in given.project:
        print(row(*one.split(":"), runs=given.runs, pause=given.pause), flush=True)


def row(name: str, server: str, file: str, *, runs: int, pause: float) -> str:
    project = corpus.projects()[name]
    with tempfile.TemporaryDirectory(prefix="warming-") as given:
        folder = Path(os.path.realpath(given))
        root = corpus.copy(project, folder / "work")
        setting = Setting(root, folder / "scratch", server, trusted=True, config=PATIENT)
        setting.prepare()
        took: dict[bool, list[float]] = {False: [], True: []}
        for number in range(2 * runs):
            warm = bool(number % 2)
            took[warm].append(first_edit(setting, root / file, pause, warm=warm))
    cold, warmed = took[False], took[True]
    return f"| {name} | {server} | {told(cold)} | {told(warmed)} | {_median(cold) / _median(warmed):.1f} |"


def first_edit(setting: Setting, file: Path, pause: float, *, warm: bool) -> float:
    """Milliseconds from the edit to its feedback, in a new session of a new daemon."""
    session = {"session": "warming", "cwd": str(setting.root)}
    before = file.read_text()
    try:
        verb(setting, "daemon", "status")
        plain_hook(setting, {"event": "began" if warm else "called", **session}, DEADLINE_MS)
        time.sleep(pause)
        file.write_text(before + MISTAKE[file.suffix])
        text, took, _ = plain_hook(setting, {"files": [str(file)], "kind": "edit", **session}, DEADLINE_MS)
        if not any(name in text for name in NAMED):
            raise SystemExit(f"{file} with {setting.server}: no fresh feedback, but {text!r}")
        return took
    finally:
        file.write_text(before)
        verb(setting, "daemon", "stop")


def told(milliseconds: list[float]) -> str:
    return f"{_median(milliseconds):.0f} ({min(milliseconds):.0f} – {max(milliseconds):.0f})"


def _median(values: list[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    main()
