"""Sets up what a command needs, once: `python3 tools/setup.py demo|check`.

PyPI packages go into `.venv`, npm packages into `.tools/npm`; a stamp of what was asked for makes the second run quick.
Runs on the bare interpreter: standard library only.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
NPM = ROOT / ".tools" / "npm"
NPM_PACKAGES = ROOT / "tools" / "npm-packages.json"
EXTRAS = {"demo": "python", "check": "dev,servers"}
OLDEST_PYTHON = (3, 11)


def main() -> None:
    goal = sys.argv[1]
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(f"pilotfish needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    python_packages(goal)
    if goal == "check":
        npm_packages()


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
    if read(stamp) == digest(wanted):
        return
    if shutil.which("npm") is None:
        say("npm is not here: tests with npm servers are skipped locally and fail in CI")
        return
    say("installing language servers from npm (once, about a minute)")
    NPM.mkdir(parents=True, exist_ok=True)
    (NPM / "package.json").write_text(json.dumps({"private": True}))
    packages = [f"{name}@{version}" for name, version in json.loads(wanted).items()]
    run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *packages], cwd=NPM)
    stamp.write_text(digest(wanted))


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
