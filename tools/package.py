"""Builds all that is published into `dist/`: `.venv/bin/python tools/package.py --repository ADDRESS`.

Without an address, the wheel, the source archive and `pilotfish.pyz` for this system alone: nothing else can be used
from a clone.

A wheel and a source archive for PyPI, whose README has absolute links and pictures; `pilotfish.pyz` and `pilotfish.exe`
(`tools/bundle.py`); npm packages of the program and of the plugins of Pi and OpenCode; the extension of Gemini CLI; the
recipes of package managers, hashes and provenance (`tools/recipes.py`). It sends nothing anywhere. The address of the
repository is that of who publishes it: the release workflow knows its own, and this project names none. The plugins of
Claude Code and Codex are read from the repository itself (`.claude-plugin`, `.agents`).
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    import bundle
    import recipes

    from pilotfish.hosts.shared.hook_settings import read_plugin
    from pilotfish.version import VERSION
except ModuleNotFoundError as missing:
    how = "run `python3 tools/setup.py quick`, and then this with `.venv/bin/python`"
    raise SystemExit(f"{sys.executable} has no module {missing.name}: {how}") from None

CLONE = Path(__file__).resolve().parent.parent
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}-{sys.platform}-{platform.machine().replace('arm64', 'aarch64')}"
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#][^)]*)\)")
PLUGINS = {
    "pi": ("Pi", {"keywords": ["pi-package"], "pi": {"extensions": ["./pilotfish.ts"]}}),
    "opencode": ("OpenCode", {"keywords": ["opencode-plugin"], "exports": {".": "./pilotfish.ts"}}),
}
"""What tells a host that a package is for it."""
EXTENSION = CLONE / "src" / "pilotfish" / "hosts" / "plugins" / "gemini"
SYSTEMS = ("darwin", "linux", "win32")
"""Those of the extension's archives, by Gemini CLI's names: it takes the one of its own system from a release."""
BY_UV = "pilotfish[mcp]' "
"""What is before the words of our own, where a shell may have to ask uv for the program."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--repository", metavar="ADDRESS", help="such as https://example.org/you/pilotfish")
    parser.add_argument("--out", type=Path, default=CLONE / "dist", metavar="DIR")
    parser.add_argument("--for", dest="targets", metavar="PYTHON-SYSTEM", help="only this in pilotfish.pyz")
    asked = parser.parse_args(arguments)
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    repository: str | None = asked.repository and asked.repository.rstrip("/")
    only: str | None = asked.targets or (None if repository else HERE)
    with tempfile.TemporaryDirectory(prefix="pilotfish-package-") as folder:
        build_python(Path(folder) / "clone", repository, out)
        bundle.build(next(out.glob("*.whl")), *targets(only), out, Path(folder) / "wheels")
        if repository:
            bundle.build_windows(out)
            build_launcher(Path(folder) / "npm", repository, out)
            for host in PLUGINS:
                build_npm(host, Path(folder) / host, repository, out)
            for system in SYSTEMS:
                build_extension(system, Path(folder) / system, out)
            recipes.write(out, repository, VERSION)
            recipes.seal(out, repository, VERSION)
    for made in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{made.stat().st_size:>10} {made.relative_to(out)}")


def targets(only: str | None) -> tuple[dict[str, list[str]], list[str]]:
    """The systems and the Pythons of the archive: all that we name, or one of each, such as `3.11-linux-x86_64`."""
    platforms: dict[str, list[str]] = recipes.CHANNELS["platforms"]
    if only is not None:
        python, _, platform = only.partition("-")
        return {platform: platforms[platform]}, [python]
    named = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in recipes.PROJECT["classifiers"])
    return platforms, [found[1] for found in named if found]


def build_python(clone: Path, repository: str | None, out: Path) -> None:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=CLONE, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CLONE / name, clone / name)
    if repository:
        owned = f"\n<!-- mcp-name: {recipes.mcp_name(repository)} -->\n"  # the registry of MCP servers looks for it
        (clone / "README.md").write_text(absolute((CLONE / "README.md").read_text(), repository) + owned)
        project = (CLONE / "pyproject.toml").read_text()
        (clone / "pyproject.toml").write_text(
            project.replace("[project.scripts]", f"{urls(repository)}\n[project.scripts]", 1)
        )
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(clone)]
    when = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=CLONE, capture_output=True, text=True, check=True)
    # The same commit makes the same bytes.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when.stdout.strip()}
    subprocess.run(argv, check=True, capture_output=True, env=environment)


def absolute(page: str, repository: str) -> str:
    """The page with links that work outside of the repository, whose address it names."""

    def replaced(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target:
            return found[0]
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({repository}/{kind}/v{VERSION}/{target})"

    return LINK.sub(replaced, page).replace("git clone ADDRESS", f"git clone {repository}")


def urls(repository: str) -> str:
    pages = {"Source": "", "Issues": "/issues", "Changelog": f"/blob/v{VERSION}/docs/CHANGELOG.md"}
    return "[project.urls]\n" + "".join(f'{name} = "{repository}{path}"\n' for name, path in pages.items())


def build_launcher(folder: Path, repository: str, out: Path) -> None:
    """`npx pilotfish`: the archive, and the few lines of JavaScript that find a Python for it."""
    shutil.copytree(CLONE / "npm" / "pilotfish", folder)
    manifest = json.loads((folder / "package.json").read_text())
    manifest["repository"] = {"type": "git", "url": f"git+{repository}.git"}
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    shutil.copy(out / "pilotfish.pyz", folder)
    pack(folder, out)


def build_npm(host: str, folder: Path, repository: str, out: Path) -> None:
    """A plugin that finds `pilotfish` on the `PATH`."""
    title, own = PLUGINS[host]
    folder.mkdir()
    manifest = {
        "name": f"pilotfish-{host}",
        "version": VERSION,
        "description": f"Pilotfish in {title}: after every edit, the errors it caused. Needs pilotfish or uv.",
        "license": "MIT",
        "type": "module",
        "files": ["pilotfish.ts"],
        "repository": {"type": "git", "url": f"git+{repository}.git"},
        **own,
    }
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (folder / "pilotfish.ts").write_text(read_plugin(host))
    pack(folder, out)


def build_extension(system: str, folder: Path, out: Path) -> None:
    shutil.copytree(EXTENSION, folder)
    for file in folder.rglob("*.json") if system == "win32" else ():
        written = json.loads(file.read_text(), object_hook=without_shell)
        file.write_text(json.dumps(written, indent=2) + "\n")
    shutil.make_archive(str(out / f"{system}.pilotfish"), "zip", folder)


def without_shell(entry: dict[str, Any]) -> dict[str, Any]:
    """The same for a system that has no `sh`: what starts is the program on the `PATH`, and uv is not asked."""
    if entry.get("command") == "sh":
        program, *words = entry["args"][-1].rpartition(BY_UV)[2].split()
        return {**entry, "command": program, "args": words}
    return {**entry, "command": entry["command"].rpartition(BY_UV)[2]} if "command" in entry else entry


def pack(folder: Path, out: Path) -> None:
    shutil.copy(CLONE / "LICENSE", folder / "LICENSE")
    argv = ["npm", "pack", "--silent", "--pack-destination", str(out)]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1:])
