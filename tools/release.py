"""Builds a release: `./release --repository ADDRESS`. It changes nothing but `dist/`, and sends nothing anywhere.

It refuses changes that no commit has, a version that is not the same everywhere, a changelog that does not date it, and
a tag that is there already. Then it builds all that is published, and says how to tag it: the release workflow builds
the same from the tag, and publishes that.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import recipes

CLONE = Path(__file__).resolve().parent.parent
VERSION = Path("src", "pilotfish", "version.py")
MANIFESTS = (
    ("claude-code", ".claude-plugin", "plugin.json"),
    ("codex", ".codex-plugin", "plugin.json"),
    ("gemini", "gemini-extension.json"),
)
ALSO = (
    Path("npm", "llxprt", "package.json"),
    Path("npm", "pilotfish", "package.json"),
    Path("packaging", "devcontainer", "src", "pilotfish", "devcontainer-feature.json"),
    *(Path("src", "pilotfish", "hosts", "plugins", *name) for name in MANIFESTS),
)
"""Where the version stands as well."""
CLIENT = Path("npm", "llxprt")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./release", description=__doc__)
    parser.add_argument("--repository", required=True, metavar="ADDRESS", help="as for tools/package.py")
    asked = parser.parse_args(arguments)
    (version,) = re.findall(r'VERSION = "(.+)"', (CLONE / VERSION).read_text())
    if against := list(objections(version)):
        raise SystemExit("\n".join(["not released:", *(f"- {one}" for one in against)]))
    dist = CLONE / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    build = [str(CLONE / ".venv" / "bin" / "python"), str(CLONE / "tools" / "package.py")]
    subprocess.run([*build, "--repository", asked.repository, "--out", str(dist)], check=True)
    print(build_client(dist))
    recipes.seal(dist, asked.repository.rstrip("/"), version)
    print(f"\nTag it, and the release workflow publishes it:\n  git tag -a v{version} -m {version}")


def objections(version: str) -> list[str]:
    found = [f"{line[3:]} is not committed" for line in git("status", "--porcelain").splitlines()]
    found += [f"{path} has another version than {version}" for path in ALSO if f'"{version}"' not in _read(path)]
    dated = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(dated, _read(Path("docs", "CHANGELOG.md")), re.MULTILINE):
        found.append(f"docs/CHANGELOG.md has no section `## {version} (YEAR-MONTH-DAY)`")
    if git("tag", "--list", f"v{version}"):
        found.append(f"there is a tag v{version}")
    return found


def build_client(out: Path) -> str:
    """The client of LLxprt's service, compiled; returns the name of its archive."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-npm-") as folder:
        copy = Path(folder) / CLIENT.name
        shutil.copytree(CLONE / CLIENT, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
        shutil.copy(CLONE / "LICENSE", copy)
        for words in (["install", "--ignore-scripts"], ["run", "build"]):
            subprocess.run(["npm", *words, "--silent"], cwd=copy, check=True)
        pack = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(out)]
        return subprocess.run(pack, cwd=copy, capture_output=True, text=True, check=True).stdout.strip()


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=CLONE, capture_output=True, text=True, check=True).stdout


def _read(path: Path) -> str:
    return (CLONE / path).read_text()


if __name__ == "__main__":
    main(sys.argv[1:])
