"""How soon the first edit of a new session is answered, with and without servers that were started when it began.

    PYTHONPATH=bench python bench/warming.py [--runs N] [--pause SECONDS] [PROJECT:SERVER:FILE …]

Each run has a new daemon. Both sides have the same pause before the first edit, which is what a model thinks and reads;
on one side the host has told that the session began. The edit adds an error: an answer without it does not count.
"""

import os
import statistics
import time
from pathlib import Path

from harness import corpus
from harness.pages import head, line, options
from harness.setting import Setting, hook, verb, workplace

PROJECTS = (
    "httpx:basedpyright:httpx/_utils.py",
    "httpx:ty:httpx/_utils.py",
    "rxjs:typescript:src/internal/util/noop.ts",
    "cobra:gopls:args.go",
)
DEADLINE_MS = 60_000
PATIENT = {"timing": {"firstTouchTimeoutMs": DEADLINE_MS}}
"""So that the first answer has the error, however long a cold server takes."""


def main() -> None:
    given = options(__doc__, runs=5, pause=5.0, projects=PROJECTS)
    print(f"Milliseconds to the first fresh feedback of a session, median of {given.runs} (least – most);")
    print(f"{given.pause:g} s pass between its beginning and its first edit.")
    print(f"Load of the machine at the beginning: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.\n")
    print(head(("project", "server", "without warming", "with warming", "×")))
    for one in given.projects:
        print(row(*one.split(":"), runs=given.runs, pause=given.pause), flush=True)


def row(name: str, server: str, file: str, *, runs: int, pause: float) -> str:
    took: dict[bool, list[float]] = {False: [], True: []}
    with workplace(corpus.projects()[name], server, trusted=True, config=PATIENT) as setting:
        for number in range(2 * runs):
            warm = bool(number % 2)
            took[warm].append(first_edit(setting, setting.root / file, pause, warm=warm))
    medians = [statistics.median(took[warm]) for warm in (False, True)]
    shown = (f"{statistics.median(ms):.0f} ({min(ms):.0f} – {max(ms):.0f})" for ms in took.values())
    return line([name, server, *shown, f"{medians[0] / medians[1]:.1f}"])


def first_edit(setting: Setting, file: Path, pause: float, *, warm: bool) -> float:
    """Milliseconds from the edit to its feedback, in a new session of a new daemon."""
    before = file.read_text()
    try:
        verb(setting, "daemon", "status")
        hook(setting, "plain", {"event": "began" if warm else "called", "session": "warming"}, DEADLINE_MS)
        time.sleep(pause)
        file.write_text(before + corpus.MISTAKES[file.suffix])
        event = {"files": [str(file)], "kind": "edit", "session": "warming"}
        text, took, _ = hook(setting, "plain", event, DEADLINE_MS)
        if "no_such_name" not in text:
            raise SystemExit(f"{file} with {setting.server}: no fresh feedback, but {text!r}")
        return took
    finally:
        file.write_text(before)
        verb(setting, "daemon", "stop")


if __name__ == "__main__":
    main()
