"""What a project asks for and this machine lacks, where that explains errors that no edit made.

Packages that are not installed, a toolchain that is too old, a compile database that nobody has written. All of it is
read from files: nothing of the project is run to find out.
"""

import mmap
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from glob import glob

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import member
from pilotfish.servers.manifests import json_value, toml_table
from pilotfish.servers.spec import ServerSpec
from pilotfish.servers.tree import DiskTree, ProjectTree
from pilotfish.system.real_path import real_path

MAX_BYTES = 256 * 1024  # Of one manifest that is read here

_PIP = "python3 -m venv .venv && .venv/bin/pip install"
PYTHON_STEPS: Mapping[str, str] = {
    "uv.lock": "uv sync",
    "poetry.lock": "poetry install",
    "pdm.lock": "pdm install",
    "Pipfile": "pipenv install --dev",
    "pyproject.toml": f"{_PIP} -e .",
    "setup.py": f"{_PIP} -e .",
    "requirements.txt": f"{_PIP} -r requirements.txt",
}
"""How the packages of a project are installed, by the file that says so; the first that is there counts, or the first
whose program is installed.
"""

NODE_STEPS: Mapping[str, str] = {
    "pnpm-lock.yaml": "pnpm install",
    "yarn.lock": "yarn install",
    "bun.lock": "bun install",
    "bun.lockb": "bun install",
    "package.json": "npm install",
}
COMPILE_STEPS: Mapping[str, str] = {
    "CMakeLists.txt": "cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    "meson.build": "meson setup build",
    "Makefile": "bear -- make",
}
COMPILE_DATABASES = ("compile_commands.json", "build/compile_commands.json", "compile_flags.txt", ".clangd")
"""Where clangd looks in every folder above a file."""

_GO_VERSION = re.compile(r"(?:^|\s)go\s*(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")

BUILT_BY_GO = re.compile(rb"\xff Go buildinf:.\x02.{16}.(go\d{1,6}\.\d{1,6}(?:\.\d{1,6})?)", re.DOTALL)
"""What Go writes into each program since 1.18: by which Go it was built."""

STRICT_GO = (1, 21, 0)
"""From this version on, Go does nothing in a module that asks for a newer one, unless it may download that."""


class Shortfall(Struct, frozen=True):
    what: str  # A sentence
    step: str | None = None  # The command that gets it, where the project says how
    hides_uses: bool = False  # Whether files of the project do not see each other without it
    of_packages: bool = False  # Whether it explains imports alone, which are told as one line
    blocks: bool = False  # Whether nothing can be checked without it
    comes_first: bool = False
    """Whether it brings servers, or says by its versions which ones fit: these are chosen after it."""

    def __str__(self) -> str:
        return f"{self.what} Next: {self.step}" if self.step else self.what


def no_python_packages(
    folders: Sequence[str], tree: ProjectTree, is_installed: Callable[[str], bool] = lambda _: True
) -> Shortfall:
    """For a project without an environment; `folders` lead from a file up to the workspace."""
    usable = {
        name: step for name, step in PYTHON_STEPS.items() if step.startswith(_PIP) or is_installed(step.split()[0])
    }
    step = _step(folders, tree, usable) or _step(folders, tree, PYTHON_STEPS)
    what = "No Python environment was found, so imports of installed packages cannot be resolved."
    return Shortfall(what, step, of_packages=True)


def no_node_packages(folders: Sequence[str], tree: ProjectTree) -> Shortfall | None:
    if any(tree.exists(os.path.join(folder, "node_modules")) for folder in folders):
        return None
    step = _step(folders, tree, NODE_STEPS)
    what = "There is no node_modules folder, so imports of packages cannot be resolved."
    return Shortfall(what, step, of_packages=True, comes_first=True)


def no_compile_database(folders: Sequence[str], tree: ProjectTree) -> Shortfall | None:
    if any(tree.exists(os.path.join(folder, name)) for folder in folders for name in COMPILE_DATABASES):
        return None
    files = "compile_commands.json and no compile_flags.txt"
    what = f"There is no {files}, so the folders of headers and the compiler's flags are unknown."
    return Shortfall(what, _step(folders, tree, COMPILE_STEPS, is_outermost=True), hides_uses=True)


def old_go(
    folders: Sequence[str], tree: ProjectTree, program: AbsPath | None, *, downloads: bool = False
) -> Shortfall | None:
    """Whether `go.mod` asks for a newer Go than the one that `program` belongs to, and may not download."""
    texts = (tree.read(os.path.join(folder, "go.mod"), MAX_BYTES) for folder in folders)
    asked = next((_go_version(text) for text in texts if text is not None), None)
    if asked is None or program is None:
        return None
    home = os.path.dirname(os.path.dirname(real_path(program)))
    installed = _go_version(tree.read(os.path.join(home, "VERSION"), MAX_BYTES) or "")
    if installed is None or installed >= asked:
        return None
    blocks = installed >= STRICT_GO
    if blocks and downloads and "GOTOOLCHAIN=local" not in (tree.read(os.path.join(home, "go.env"), MAX_BYTES) or ""):
        return None
    shown = 2 if asked[:2] != installed[:2] else 3
    wanted, here = (".".join(map(str, version[:shown])) for version in (asked, installed))
    result = "checks nothing of it" if blocks else "reports what is newer as errors"
    what = f"go.mod asks for Go {wanted}, and Go {here} is installed, which {result}."
    return Shortfall(what, f"install Go {wanted} or newer from https://go.dev/dl/", blocks=blocks)


def old_go_server(server: AbsPath | None, go: AbsPath | None) -> Shortfall | None:
    """Whether a server was built by an older Go than the installed one, whose packages it may not be able to read."""
    if server is None or go is None:
        return None
    home, path = os.path.dirname(os.path.dirname(real_path(go))), real_path(server)
    installed = _go_version(DiskTree().read(os.path.join(home, "VERSION"), MAX_BYTES) or "")
    with suppress(OSError, ValueError):
        built = _built_by(path, os.stat(path).st_mtime_ns)
        if installed is not None and built is not None and built[:2] < installed[:2]:
            name, was, now = os.path.basename(server), *(f"{major}.{minor}" for major, minor, _ in (built, installed))
            what = f"{name} was built by Go {was}, and Go {now} is installed: it may report what is newer as errors."
            return Shortfall(what, f"go install golang.org/x/tools/{name}@latest")
    return None


@lru_cache(maxsize=8)
def _built_by(path: str, _modified: int) -> tuple[int, int, int] | None:
    """The Go that built a program. Its 30 MB are looked through once."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = BUILT_BY_GO.search(data)
        return _go_version(found[1].decode()) if found else None


def is_hollow(spec: ServerSpec, path: AbsPath, environment: Mapping[str, str]) -> bool:
    """Whether the program of a server is there, and the server itself is not.

    Whoever names the command in the configuration knows where it is.
    """
    prefix = os.path.dirname(os.path.dirname(real_path(path)))
    places = (one.replace("~", environment.get("HOME", ""), 1) if one[0] == "~" else one for one in spec.modules)
    is_absent = bool(spec.modules) and not any(glob(os.path.join(prefix, place)) for place in places)
    return is_empty_proxy(path, environment) or (is_absent and not spec.rank.named)


def is_empty_proxy(path: AbsPath, environment: Mapping[str, str]) -> bool:
    """Whether a program is a proxy of rustup, and the component that it would run is not installed.

    Which toolchain a project asks for is not looked at: the default one is what a new project uses.
    """
    if os.path.basename(real_path(path)) != "rustup" or os.path.basename(path) == "rustup":
        return False
    if _lacks_toolchain(environment):
        return True
    home = _rustup_home(environment)
    settings = toml_table(DiskTree().read(os.path.join(home, "settings.toml"), MAX_BYTES) or "") or {}
    toolchain = environment.get("RUSTUP_TOOLCHAIN") or settings.get("default_toolchain")
    folder = os.path.join(home, "toolchains", str(toolchain), "bin")
    return os.path.isdir(folder) and not os.path.exists(os.path.join(folder, os.path.basename(path)))


def with_toolchain(command: str | None, environment: Mapping[str, str]) -> str | None:
    """A command that installs a server; where it adds to a toolchain of rustup and there is none, this comes first.

    Whoever has to install rustup gets a toolchain with it.
    """
    adds = command is not None and command.startswith("rustup ") and "(needs rustup" not in command
    if not adds or not _lacks_toolchain(environment):
        return command
    return f"rustup default stable && {command}"


def _lacks_toolchain(environment: Mapping[str, str]) -> bool:
    return not DiskTree().names(os.path.join(_rustup_home(environment), "toolchains"))


def _rustup_home(environment: Mapping[str, str]) -> str:
    return environment.get("RUSTUP_HOME") or os.path.join(environment.get("HOME", ""), ".rustup")


def _step(
    folders: Sequence[str], tree: ProjectTree, steps: Mapping[str, str], *, is_outermost: bool = False
) -> str | None:
    """The command of the nearest folder that has one of the files, or of the outermost: the folders of a C project each
    have a CMakeLists.txt, and only the first of them can be configured."""
    for folder in reversed(folders) if is_outermost else folders:
        for name, command in steps.items():
            path = os.path.join(folder, name)
            if tree.exists(path) and _names_packages(name, tree.read(path, MAX_BYTES) or ""):
                where = os.path.relpath(folder, folders[-1])
                return command if where == os.curdir else f"cd {shlex.quote(where)} && {command}"
    return None


def _names_packages(name: str, text: str) -> bool:
    """False for a manifest without any: there is nothing to install, and installing would change nothing.

    Nor does a Makefile say how to build a project if CMake has made it from the project's own file.
    """
    match name:
        case "package.json":
            kinds = ("dependencies", "devDependencies", "peerDependencies")
            return any(member(json_value(text), kind) for kind in kinds)
        case "pyproject.toml":
            table = toml_table(text) or {}
            places = (("project", "dependencies"), ("project", "optional-dependencies"), ("dependency-groups",))
            return any(member(table, *keys) for keys in (*places, ("tool", "poetry", "dependencies")))
        case "Makefile":
            return not text.startswith("# CMAKE generated file")
        case _:
            return True


def _go_version(text: str) -> tuple[int, int, int] | None:
    found = _GO_VERSION.search(text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None
