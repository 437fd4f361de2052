"""The programs that the end-to-end tests run, as `hosts.json` names them, each in a folder of its own.

Coding agents, and an editor whose LSP client no agent has: that one comes from Debian.
A host that cannot be installed stops the set-up: a skipped test would look like a passed one. One that its makers do
not release for this processor (`cpus`) is left out, and both the set-up and the end of the tests say so.
Dependencies of npm packages are resolved as of a day soon after their release (`before`): today's versions break the
set-up whenever one half of a family of packages is released and the other is not yet.
Install scripts are not run. What one would fetch comes from a package of its own (`node-linux-…`).
"""

import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[list[str], Path], None]

CPUS = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}
"""What npm's packages call the processors."""

MANIFEST = Path(__file__).with_name("hosts.json")


def manifest() -> dict[str, Any]:
    """Host → its packages (`npm`, with a day, `pypi` or `debian`), its `program`, whether the plain gate runs it."""
    return json.loads(MANIFEST.read_text().replace("{cpu}", cpu()))


def cpu() -> str:
    return CPUS.get(platform.machine(), platform.machine())


def is_released(host: dict[str, Any]) -> bool:
    """Whether there is a package for this processor."""
    return cpu() in host.get("cpus", [cpu()])


def install(folder: Path, host: dict[str, Any], run: Run) -> None:
    """Install one host into its folder, and see that its program is there."""
    folder.mkdir(parents=True, exist_ok=True)
    if "npm" in host:
        (folder / "package.json").write_text('{"private": true}')
        options = ["--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", f"--before={host['before']}"]
        run(["npm", "install", *options, *pins(host["npm"], "@")], folder)
    if "pypi" in host:
        run([sys.executable, "-m", "venv", "."], folder)
        run(["bin/python", "-m", "pip", "install", "--quiet", *pins(host["pypi"], "==")], folder)
    if not (folder / host["program"]).exists():
        raise SystemExit(f"{folder.name} was installed, but has no {host['program']}: its packages have changed")


def pins(packages: dict[str, str], sign: str) -> list[str]:
    return [f"{name}{sign}{version}" for name, version in packages.items()]
