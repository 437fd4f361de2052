"""Follows the guide word by word as a new user would: `python3 tools/newcomer.py`.

A fresh clone of what is committed and changed here, a home in which only Claude Code was used, and nothing on the
`PATH` but the system's folders and `~/.local/bin`. Every block of `docs/guide/install.md` is run, those that install
included, and what is shown must be printed. It needs PyPI. Exits with 1 when guide and program differ.
Runs on the bare interpreter: standard library only.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.pages import Reader  # noqa: E402 -- the folder of tests is no package of ours

GUIDE = "docs/guide/install.md"
SECONDS = 900
"""For one block: some of them install from the network."""
KEPT = ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""How this machine reaches PyPI; a new user has the like in place."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="pilotfish-newcomer-") as base:
        clone, home = Path(base).resolve() / "pilotfish", Path(base).resolve() / "home"
        # The guide connects a host that is installed.
        (home / ".claude").mkdir(parents=True)
        cloned(clone)
        environment = {
            **{name: os.environ[name] for name in KEPT if name in os.environ},
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": f"{home}/.local/bin:{Path(sys.executable).parent}:/usr/bin:/bin",
        }
        began = time.monotonic()
        reader = Reader(clone, environment, newcomer=True, seconds=SECONDS)
        try:
            reader.follow((clone / GUIDE).read_text())
        finally:
            if (program := home / ".local/bin/pilotfish").exists():
                subprocess.run([program, "daemon", "stop"], env=environment, check=False)
        for fault in reader.told:
            print(fault)
        print(f"{GUIDE} followed in {time.monotonic() - began:.0f} s: {len(reader.told)} faults")
        return 1 if reader.told else 0


def cloned(clone: Path) -> None:
    """What git knows of here, as it is now."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)


if __name__ == "__main__":
    sys.exit(main())
