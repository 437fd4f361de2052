"""From nothing to the first squiggle, on a Debian with Python and nothing else: no pip, no Node, no git, no network.

As root, `python bench/root.py --archive dist/pilotfish.pyz --wheels FOLDER`: FOLDER has the wheels of basedpyright, as
`pip download` brings them, and stands for the index. Every round has a home of its own, so everything is unpacked,
installed and started in it. `--base FOLDER` keeps the Debian for another run. Prints a report.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from harness.pages import circumstances, listed, options, table

MADE_BY = ["debootstrap", "--variant=minbase", "--include=python3", "bookworm"]
ALONE = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
"""Processes and a network of its own, which is none; what a round leaves running ends with it."""

COMMANDS = (["--yes"], ["check"])
FILES = {
    "greeting.py": 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n',
    "main.py": "from greeting import greet\n\nprint(greet(7))\n",
}
SQUIGGLE = "reportArgumentType"
WANTED_SECONDS = 60


def main() -> int:
    chosen = options(__doc__, archive="dist/pilotfish.pyz", wheels="", base="", rounds=5)
    archive, wheels = Path(chosen.archive).resolve(), Path(chosen.wheels).resolve()
    with ExitStack() as stack:
        base = Path(chosen.base or stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-root-")))
        if not (base / "bin").exists():
            subprocess.run([*MADE_BY, base], check=True, stdout=subprocess.DEVNULL)
        loads = [os.getloadavg()[0]]
        rounds = [played(base, archive, wheels) for _ in range(chosen.rounds)]
    told = [(number, commands, f"{seconds:.1f}") for number, (commands, seconds) in enumerate(rounds, 1)]
    print(listed(circumstances("python bench/root.py", [*loads, os.getloadavg()[0]])))
    print(f"- archive: {archive.stat().st_size / 1e6:.1f} MB\n")
    print(table(("round", "commands", "seconds to the first squiggle"), told))
    slowest = max(seconds for _, seconds in rounds)
    print(f"\nmedian {median(seconds for _, seconds in rounds):.1f} s, slowest {slowest:.1f} s, n = {len(rounds)}")
    return 0 if slowest <= WANTED_SECONDS and all(commands <= len(COMMANDS) for commands, _ in rounds) else 1


def played(base: Path, archive: Path, wheels: Path) -> tuple[int, float]:
    """How many commands it took, and how many seconds; a round without a squiggle ends the run."""
    home = base / "home" / "somebody"
    shutil.rmtree(home, ignore_errors=True)
    project = home / "project"
    project.mkdir(parents=True)
    shutil.copy(archive, home / "pilotfish.pyz")
    shutil.copytree(wheels, home / "wheels")
    for name, text in FILES.items():
        (project / name).write_text(text)
    environment = [
        "HOME=/home/somebody",
        "PATH=/usr/bin:/bin",
        "PIP_NO_INDEX=1",
        "PIP_FIND_LINKS=/home/somebody/wheels",
    ]
    began, said = time.monotonic(), ""
    for number, words in enumerate(COMMANDS, 1):
        typed = f"cd ~/project && python3 ~/pilotfish.pyz {' '.join(words)}"
        argv = [*ALONE, "chroot", base, "env", "-i", *environment, "sh", "-c", typed]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        said += f"$ {typed}\n{done.stdout}{done.stderr}"
        if SQUIGGLE in done.stdout:
            return number, time.monotonic() - began
    raise SystemExit(f"no squiggle:\n{said}")


if __name__ == "__main__":
    sys.exit(main())
