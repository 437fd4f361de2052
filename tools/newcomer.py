"""Does what a new user does: `python3 tools/newcomer.py` follows the guide, `… httpx express mixed` walks projects.

The guide: a fresh clone of what is committed and changed here, a home in which only Claude Code was used, and nothing
on the `PATH` but the system's folders and `~/.local/bin`. Every block of `docs/guide/install.md` is run, those that
install included, and what is shown must be printed.
The projects: an empty home, into which Pilotfish is installed as the README says; `tools/walk.py` has the steps.
It needs PyPI and npm. Exits with 1 when something is not as it should be.
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
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from walk import FIRST_ANSWER, PROJECTS, Shell, prepare, walk  # noqa: E402 -- beside this file

from support.pages import Reader, blocks  # noqa: E402 -- the folder of tests is no package of ours

GUIDE = "docs/guide/install.md"
SECONDS = 900
"""For one block: some of them install from the network."""
KEPT = (
    "PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
)  # fmt: skip
"""How this machine reaches PyPI and npm; a new user has the like in place."""


def main(names: list[str]) -> int:
    if unknown := set(names) - set(PROJECTS):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}. Projects: {', '.join(PROJECTS)}.")
    with tempfile.TemporaryDirectory(prefix="pilotfish-newcomer-") as base:
        clone, home = Path(base).resolve() / "pilotfish", Path(base).resolve() / "home"
        home.mkdir()
        copy_clone(clone)
        return walk_projects(names, clone, home) if names else follow_guide(clone, home)


def follow_guide(clone: Path, home: Path) -> int:
    # The guide connects a host that is installed.
    (home / ".claude").mkdir()
    environment = environment_of(home)
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


def walk_projects(names: list[str], clone: Path, home: Path) -> int:
    """Every project in a home of its own, in which nothing is but a new installation."""
    lines: list[str] = []
    faults = 0
    for name in names:
        own = home / name
        own.mkdir()
        shell = Shell(own, environment_of(own))
        prepare(PROJECTS[name], shell)
        offer_uv(own)
        print(f"\n=== {name} ===")
        installed = shell.run(clone, "bash", "-ec", install_commands(clone)).seconds
        try:
            walk(PROJECTS[name], shell)
        finally:
            subprocess.run(["pilotfish", "daemon", "stop"], env=shell.environment, check=False, capture_output=True)
        if shell.answered is None or shell.answered > FIRST_ANSWER:
            shell.fault(f"{name}: no useful answer within {FIRST_ANSWER:.0f} s")
        answered = "never" if shell.answered is None else f"{shell.answered:.0f} s"
        lines.append(
            f"{name}: installed in {installed:.0f} s, first useful answer {answered} after the first command, "
            f"{len(shell.printed)} commands, {len(shell.faults)} faults"
        )
        lines += [f"  {fault}" for fault in shell.faults]
        faults += len(shell.faults)
    print("\n" + "\n".join(lines))
    return 1 if faults else 0


def offer_uv(home: Path) -> None:
    """What the README takes for granted."""
    subprocess.run([sys.executable, "-m", "venv", home / "uv"], check=True)
    environment = environment_of(home)
    subprocess.run([home / "uv/bin/pip", "install", "--quiet", "uv"], env=environment, check=True, capture_output=True)


def install_commands(clone: Path) -> str:
    """The commands of the README under Install that a person types first."""
    page = (clone / "README.md").read_text()
    block = next(block for block in blocks(page) if block.what == "newcomer")
    return "\n".join(line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ "))


def environment_of(home: Path) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{home}/.local/bin:{home}/uv/bin:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
    }


def copy_clone(clone: Path) -> None:
    """What git knows of here, as it is now."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
