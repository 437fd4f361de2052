"""Does what a new user does: `python3 tools/newcomer.py` follows the guide, `… httpx express mixed` walks projects,
and `… first` takes the first steps in ten kinds of projects.

The guide: a fresh clone of what is committed and changed here, a home in which only Claude Code was used, and nothing
on the `PATH` but the system's folders and `~/.local/bin`. Every block of `docs/guide/install.md` is run, those that
install included, and what is shown must be printed.
The projects: an empty home, into which Pilotfish is installed as the README says; `tools/walk.py` has the steps.
The first steps: in each of the projects of `tests/use/test_first_answers.py`, with a home of its own, `pilotfish` and
whatever it proposes, until it proposes to check. A step that is wrong, fails, or is proposed again is a dead end.
It needs PyPI and npm. Exits with 1 when something is not as it should be.
Runs on the bare interpreter: standard library only.
"""

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from walk import FIRST_ANSWER, HINTS, PROJECTS, Shell, prepare, walk  # noqa: E402 -- beside this file

from support import first_projects  # noqa: E402 -- the folder of tests is no package of ours
from support.pages import Reader, blocks  # noqa: E402 -- the folder of tests is no package of ours

GUIDE = "docs/guide/install.md"
FIRST = "first"

OF_OTHERS = ("apt", "brew", "install", "rustup")
"""Begin steps that a person takes, outside of what can be tried here."""

MOST_STEPS = 6

WAY_OUT = re.compile(r"\b(?:npx|pilotfish) \w")

SECONDS = 900
"""For one block: some of them install from the network."""
KEPT = (
    "PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
)  # fmt: skip
"""How this machine reaches PyPI and npm; a new user has the like in place."""


def main(names: list[str]) -> int:
    if names != [FIRST] and (unknown := set(names) - set(PROJECTS)):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}. Projects: {', '.join(PROJECTS)}; or {FIRST}.")
    with tempfile.TemporaryDirectory(prefix="pilotfish-newcomer-") as base:
        clone, home = Path(base).resolve() / "pilotfish", Path(base).resolve() / "home"
        home.mkdir()
        copy_clone(clone)
        if names == [FIRST]:
            return first_steps(clone, home)
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


def first_steps(clone: Path, home: Path) -> int:
    """One installation, and for every project a home in which nothing else is."""
    offer_uv(home)
    subprocess.run(["bash", "-ec", install_commands(clone)], cwd=clone, env=environment_of(home), check=True)
    dead_ends: list[str] = []
    for name, project in first_projects.PROJECTS.items():
        own, folder = home / "users" / name, home / "projects" / name
        folder.mkdir(parents=True)
        project.make(folder, own)
        environment = environment_of(own)
        environment["PATH"] = f"{own}/bin:{home}/.local/bin:{environment['PATH']}"
        shell = Shell(own, environment, foreign=None)
        print(f"\n=== {name} ===")
        try:
            take_steps(project, folder, shell)
        finally:
            subprocess.run(["pilotfish", "daemon", "stop"], env=environment, check=False, capture_output=True)
        dead_ends += [f"{name}: {fault}" for fault in shell.faults]
    print("\n" + "\n".join([f"{len(first_projects.PROJECTS)} projects, {len(dead_ends)} dead ends", *dead_ends]))
    return 1 if dead_ends else 0


def take_steps(project: first_projects.Project, folder: Path, shell: Shell) -> None:
    """Until Pilotfish proposes to check, or what is none of its own business."""
    taken: list[str] = []
    for _ in range(MOST_STEPS):
        shown = shell.run(folder, "pilotfish")
        step = next((found["command"] for found in HINTS[0].finditer(shown.text)), "nothing")
        if not taken:
            shell.expect(holds=step in {project.step, project.then}, otherwise=f"begins with {step}")
        if step in taken:
            shell.fault(f"proposes again: {step}")
        taken.append(step)
        if step in taken[:-1] or step.startswith(OF_OTHERS) or step == "nothing":
            break
        if step == "pilotfish check":
            checked = shell.run(folder, *step.split(), codes=(0, 1, 2))
            # What is not checked is no dead end where something is named that does it.
            shell.expect(holds=checked.code != 2 or bool(WAY_OUT.search(checked.text)), otherwise=checked.text.strip())
            break
        take(step, folder, shell)
        if step == project.step == "pilotfish demo":
            break
    shell.expect(holds=not project.then or project.then in taken, otherwise=f"never proposes {project.then}")
    print(f"  steps: {'; '.join(taken)}")


def take(step: str, folder: Path, shell: Shell) -> None:
    """What is asked on the way, is answered with yes."""
    if not step.startswith("pilotfish trust"):
        shell.run(folder, "bash", "-c", step)
        return
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", step], {**shell.environment, "TERM": "dumb"})
    os.write(terminal, b"y\n")
    with contextlib.suppress(OSError):  # Its program has ended.
        while os.read(terminal, 65536):
            pass
    shell.expect(holds=os.waitpid(process, 0)[1] == 0, otherwise=f"{step} fails")
    os.close(terminal)


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
