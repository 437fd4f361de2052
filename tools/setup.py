"""Sets up what a command needs, once: `python3 tools/setup.py demo|quick|check|hosts|ray`.

PyPI packages go into `.venv`, npm packages into `.tools/npm`, coding agents into `.tools/hosts`;
`demo` and `quick` need PyPI only. A stamp of what was asked for makes the second run quick.
Runs on the bare interpreter: standard library only.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hosts

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
NPM = ROOT / ".tools" / "npm"
NPM_PACKAGES = ROOT / "tools" / "npm-packages.json"
NPM_DAY = "2026-11-10"
"""What these packages ask for is taken as it was on this day: else a release of somebody else breaks the set-up."""
DEBIAN_PACKAGES = ROOT / "tools" / "debian-packages.txt"
APT_LOCK_SECONDS = 600
"""An update of the system, or the set-up of another clone, may hold the lock for minutes."""
HOSTS = ROOT / ".tools" / "hosts"
EXTRAS = {"demo": "python", "check": "dev,servers", "ray": "ray"}
OLDEST_PYTHON = (3, 11)
GOALS = ("demo", "quick", "check", "hosts", "ray")


def main() -> None:
    goal = "".join(sys.argv[1:])
    if goal not in GOALS:
        raise SystemExit(__doc__)
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(f"pilotfish needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    python_packages("demo" if goal == "demo" else "check")
    if goal == "ray":
        python_packages("ray")
    if goal not in {"demo", "quick"}:
        npm_packages()
        debian_packages(DEBIAN_PACKAGES.read_text().split())
        coding_agents(everyone=goal == "hosts")


def python_packages(goal: str) -> None:
    project = (ROOT / "pyproject.toml").read_bytes()
    stamp = VENV / f".{goal}-stamp"
    wanted = digest(project, sys.version.encode())
    if read(stamp) == wanted:
        return
    if not (VENV / "bin" / "python").exists():
        say("making .venv")
        run([sys.executable, "-m", "venv", str(VENV)])
    say(f"installing Python packages for {goal} (once, about a minute)")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--editable", f"{ROOT}[{EXTRAS[goal]}]"])
    stamp.write_text(wanted)


def npm_packages() -> None:
    """Language servers that npm carries. Install scripts are not run: none of these needs one."""
    wanted = NPM_PACKAGES.read_bytes()
    stamp = NPM / ".stamp"
    if read(stamp) == digest(wanted, NPM_DAY.encode()):
        return
    if shutil.which("npm") is None:
        say("npm is not here: tests with npm servers are skipped locally and fail in CI")
        return
    say("installing language servers from npm (once, about a minute)")
    NPM.mkdir(parents=True, exist_ok=True)
    (NPM / "package.json").write_text(json.dumps({"private": True}))
    packages = [f"{name}@{version}" for name, version in json.loads(wanted).items()]
    options = ["--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", f"--before={NPM_DAY}"]
    run(["npm", "install", *options, *packages], cwd=NPM)
    stamp.write_text(digest(wanted, NPM_DAY.encode()))


def debian_packages(wanted: list[str]) -> None:
    """What only Debian carries: a browser, an editor, and language servers that are in no other registry."""
    missing = [name for name in wanted if not is_installed(name)]
    if not missing:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        say(f"missing, and only root can install it: apt-get install {' '.join(missing)}")
        return
    say(f"installing from Debian: {' '.join(missing)} (once, about a minute)")
    run(["apt-get", "update", "--quiet"])
    wait = ["-o", f"DPkg::Lock::Timeout={APT_LOCK_SECONDS}"]
    run(["apt-get", "install", *wait, "--yes", "--quiet", "--no-install-recommends", *missing])


def is_installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "installed"


def coding_agents(*, everyone: bool) -> None:
    """The hosts of the end-to-end tests; the plain gate runs some of them only."""
    if shutil.which("npm") is None:
        say("npm is not here: the tests of coding agents fail")
        return
    for name, host in hosts.manifest().items():
        if not (everyone or host.get("gate")):
            continue
        if not hosts.is_released(host):
            say(f"{name} has no package for {hosts.cpu()}: its tests are not run here")
            continue
        debian_packages(host.get("debian", []))
        stamp, wanted = HOSTS / name / ".stamp", digest(json.dumps(host).encode(), sys.version.encode())
        if read(stamp) != wanted:
            say(f"installing {name} for the end-to-end tests (once, up to two minutes)")
            hosts.install(HOSTS / name, host, run)
            stamp.write_text(wanted)


def digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def read(stamp: Path) -> str | None:
    return stamp.read_text() if stamp.exists() else None


def run(argv: list[str], cwd: Path = ROOT) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv[:4])} … failed:\n{done.stdout}\n{done.stderr}")


def say(line: str) -> None:
    print(f"set-up: {line}", flush=True)


if __name__ == "__main__":
    main()
