"""Installs what a server of a row needs, below `.tools/servers`: PyPI, npm, and any suite of Debian.

- A server that `pilotfish install` knows is installed by that, with its pins.
- What a row needs besides comes from PyPI or npm, into a folder of its own.
- Debian's packages are resolved, fetched and verified by apt with a state of its own, and unpacked into a folder; the
  system is not touched. A program from there runs in a mount namespace of its own, in which that folder is `/usr`: so
  it has its own loader, libraries and interpreters.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.install import ToolsFolder, bundles
from pilotfish.surfaces.install import install_bundle
from support.proving.rows import Debian, Programs
from support.servers.real import REPOSITORY

FOLDER = REPOSITORY / ".tools" / "servers"

SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

ESSENTIAL = ("dash", "coreutils", "bash", "sed", "grep")
"""Packages that others need without saying so."""

ENTER = """#!/bin/sh
[ "$WITHIN" = {root} ] && exec {program} "$@"
export WITHIN={root}
exec unshare {flags}--mount /bin/sh -c 'mount --bind "$0" /usr && exec "$@"' {root}/usr {program} "$@"
"""
"""A program that another one of the same folder starts is in that namespace already."""


ENTRANCES, OWN = "entrances", ".own"
"""The folder of such programs, and the list of what the first package holds: the server itself."""


class Installed(Struct, frozen=True):
    """What is there for a server."""

    path: tuple[str, ...]
    """Folders of programs."""
    modules: str | None = None
    """A folder `node_modules`."""
    version: str = ""
    """As the package says it, where nobody else can tell."""


def installed(server: str, programs: Programs) -> Installed:
    """Install what is not there yet; raises `SystemExit` or what `pilotfish install` raises."""
    path: list[str] = []
    modules, version = None, ""
    if programs.debian is not None:
        folder, version = _from_debian(server, programs.debian)
        path.append(folder)
    if programs.pip:
        path.append(_from_pypi(programs.pip, programs.links))
    if programs.npm:
        modules = _from_npm(programs.npm, scripts=programs.scripts)
        path.append(f"{modules}/.bin")
    if bundle := bundles().get(server) if programs.debian is None or not programs.debian.program else None:
        tools = ToolsFolder(AbsPath(str(FOLDER)))
        if not tools.is_installed(bundle):
            install_bundle(bundle, tools, os.environ, lambda _share: None)
        path.append(tools.programs(bundle))
        modules = modules or f"{tools.folder(bundle)}/node_modules"
    return Installed((*path, *SYSTEM), modules, version)


def _from_pypi(packages: Sequence[str], links: Mapping[str, str]) -> str:
    folder = FOLDER / f"pip-{_digest(packages)}"
    if not (folder / "whole").exists():
        venv.create(folder, with_pip=False, clear=True)
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
        _run([*pip, *packages])
        for name, glob in links.items():
            (program,) = folder.glob(glob)
            program.chmod(0o755)
            (folder / "bin" / name).symlink_to(program)
        (folder / "whole").touch()
    return str(folder / "bin")


def _from_npm(packages: Sequence[str], *, scripts: bool) -> str:
    folder = FOLDER / f"npm-{_digest(packages)}"
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        options = ["--loglevel=error", "--no-audit", "--no-fund", f"--ignore-scripts={not scripts}".lower()]
        _run(["npm", "install", *options, *packages], cwd=folder)
        (folder / "whole").touch()
    return str(folder / "node_modules")


# --- Debian ----------------------------------------------------------------------------------------------------------


def _from_debian(server: str, wanted: Debian) -> tuple[str, str]:
    """The folder with the programs, and the version of the first package."""
    root = FOLDER / f"{wanted.suite}-{_digest(wanted.packages)}"
    if not (root / "whole").exists():
        shutil.rmtree(root, ignore_errors=True)
        for archive in _archives(wanted.suite, (*wanted.packages, *ESSENTIAL), root / "archives"):
            _run(["dpkg-deb", "--extract", str(archive), str(root)])
        (root / "whole").touch()
    programs = root / ENTRANCES
    programs.mkdir(exist_ok=True)
    (programs / OWN).write_text("\n".join(map(str, _files_of(root, wanted.packages[0]))))
    own = {load()[server].command[0]: wanted.program} if wanted.program else {}
    for name, program in {**own, **{os.path.basename(path): path for path in wanted.also}}.items():
        flags = "" if os.geteuid() == 0 else "--map-root-user "
        (programs / name).write_text(ENTER.format(flags=flags, root=root, program=program))
        (programs / name).chmod(0o755)
    return str(programs), _debian_version(_archive(root, wanted.packages[0]))


def _archive(root: Path, package: str) -> Path:
    (found,) = (root / "archives").glob(f"{package}_*.deb")
    return found


def _files_of(root: Path, package: str) -> list[Path]:
    """Where the files of a package are; some are links into another package."""
    argv = ["dpkg-deb", "--fsys-tarfile", str(_archive(root, package))]
    tar = subprocess.run(argv, capture_output=True, check=True).stdout
    names = subprocess.run(["tar", "--list"], input=tar, capture_output=True, check=True).stdout.decode().split("\n")
    return [file for name in names if name and (file := root / name).is_file()]


def _debian_version(found: Path) -> str:
    version = found.name.split("_")[1].replace("%3a", ":")
    return re.sub(r"^\d+:|-[^-]*$", "", version)


def _archives(suite: str, packages: Sequence[str], into: Path) -> list[Path]:
    """The packages with all that they depend on, whatever this system has."""
    environment = _apt(suite)
    into.mkdir(parents=True)
    (into / "partial").mkdir()
    fetch = ["apt-get", "--yes", "--quiet", "--download-only", "--no-install-recommends"]
    _run([*fetch, "-o", f"Dir::Cache::archives={into}", "install", *packages], environment=environment)
    return sorted(into.glob("*.deb"))


def _apt(suite: str) -> Mapping[str, str]:
    """The environment in which apt knows this suite and nothing that is installed."""
    state = FOLDER / f"apt-{suite}"
    settings = state / "apt.conf"
    environment = {**os.environ, "APT_CONFIG": str(settings)}
    if (state / "whole").exists():
        return environment
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={KEYRING}] {_mirror()} {suite} main\n")
    settings.write_text(
        f'Dir::State "{state}/state";\nDir::State::status "{state}/status";\nDir::Cache "{state}/cache";\n'
        f'Dir::Etc::sourcelist "{state}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
        'Dir::Etc::preferencesparts "/dev/null";\nAPT::Sandbox::User "";\nAcquire::Languages "none";\n'
    )
    _run(["apt-get", "--quiet", "update"], environment=environment)
    (state / "whole").touch()
    return environment


def _mirror() -> str:
    """The one that this system gets its own packages from."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE)"]
    sites = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    return next(site for site in sites if site.rstrip("/").endswith("/debian"))


# ---------------------------------------------------------------------------------------------------------------------


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def _run(argv: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv[:6])} … failed: {(done.stdout + done.stderr)[-600:]}")
