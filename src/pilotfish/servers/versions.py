"""Which version of a server is installed, from what its package manager wrote down (T46).

A program of the user's own places is asked itself only where no package says it and the catalogue knows how; the
answer is kept as long as the program is the same. Nothing of any project is read or run.
"""

import os
import re
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.protocol.codec import member
from pilotfish.servers.manifests import MAX_JSON_CHARACTERS, json_value
from pilotfish.servers.spec import ServerSpec
from pilotfish.servers.tree import DiskTree
from pilotfish.system.real_path import real_path

if TYPE_CHECKING:
    from pilotfish.servers.locate import ProgramFound

VERSION = re.compile(r"\d+(?:\.\d+)+")

ASKING_SECONDS = 5.0  # For a program to print its version; one that needs longer has none

DPKG = "/var/lib/dpkg"


def is_between(version: str, first: str, last: str) -> bool:
    """Whether a version lies in a range, both ends included; one that is no number does not."""
    found = _numbers(version)
    return bool(found) and _padded(_numbers(first)) <= _padded(found) <= _padded(_numbers(last))


def installed_version(spec: ServerSpec, program: "ProgramFound") -> str:
    identity = program.identity
    known = (identity.device, identity.inode, identity.mtime_ns, identity.size)
    wheels = (re.split(r"[\[=]", package)[0] for package in spec.install.get("pip", ()))
    modules = (package.rpartition("@")[0] for package in spec.install.get("npm", ()))
    packages = frozenset(map(_normalised, wheels)), frozenset(modules), frozenset(spec.install.get("apt", ()))
    return _version(program.path, known, packages, spec.version_args)


@lru_cache(maxsize=256)
def _version(
    program: AbsPath, _identity: tuple[int, ...], packages: tuple[frozenset[str], ...], version_args: tuple[str, ...]
) -> str:
    wheels, modules, debs = packages
    found = _of_npm(program, modules) or _of_wheel(program, wheels) or _of_deb(program, debs)
    return found or (_asked(program, version_args) if version_args else "")


def _of_npm(program: AbsPath, modules: frozenset[str]) -> str:
    """From the nearest `package.json` above the program, if it is one of these packages."""
    for folder in ancestors(os.path.dirname(real_path(program))):
        package = json_value(DiskTree().read(os.path.join(folder, "package.json"), MAX_JSON_CHARACTERS) or "")
        version = member(package, "version")
        if version is not None:  # a folder may say what kind of modules it has, and no more
            return str(version) if str(member(package, "name")) in modules else ""
    return ""


def _of_wheel(program: AbsPath, wheels: frozenset[str]) -> str:
    """From the names of the packages that are installed beside a program of a Python environment."""
    library = os.path.join(os.path.dirname(os.path.dirname(real_path(program))), "lib")
    pythons = [name for name in DiskTree().names(library) if name.startswith("python")]
    # Debian's own Python has what pip installs for the whole system in the second one.
    folders = [os.path.join(library, name, kind) for name in pythons for kind in ("site-packages", "dist-packages")]
    names = [name for folder in folders for name in DiskTree().names(folder) if name.endswith(".dist-info")]
    parts = [name.removesuffix(".dist-info").partition("-") for name in names]
    found = {version for distribution, _, version in parts if _normalised(distribution) in wheels}
    return found.pop() if len(found) == 1 else ""


def _of_deb(program: AbsPath, debs: frozenset[str]) -> str:
    """From Debian's records, if one of these packages has the program among its files."""
    for deb in debs:
        try:
            with open(os.path.join(DPKG, "info", f"{deb}.list"), encoding="utf-8") as files:
                if not {f"{program}\n", f"{real_path(program)}\n"} & set(files):
                    continue
            with open(os.path.join(DPKG, "status"), encoding="utf-8") as status:
                record = status.read().partition(f"\nPackage: {deb}\n")[2].partition("\n\n")[0]
        except (OSError, UnicodeDecodeError):
            continue
        version = re.search(r"^Version: (?:\d+:)?(\S+)", record, re.MULTILINE)
        if version:
            return version[1]
    return ""


def _asked(program: AbsPath, version_args: tuple[str, ...]) -> str:
    """What it prints, away from every project and with nothing that leads into one."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.path.expanduser("~")}
    try:
        done = subprocess.run(
            [program, *version_args],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ASKING_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = VERSION.search(done.stdout.decode(errors="replace"))
    return found[0] if found else ""


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (*numbers, *(0 for _ in range(6 - len(numbers))))
