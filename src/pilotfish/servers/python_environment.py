"""The Python environment of a project, read as data: nothing of the project is run to find it (TRUST-8).

Checkers ask an interpreter for its version and search path. The interpreter of a project's environment is a program
of the project, and starting it runs whatever its `.pth` files say. So we read what it would answer from the files of
the environment, and hand the servers a stand-in: a program of our own that gives that answer (`stand_in`).

Environments are looked for where tools make them: the one that is activated, those in the project's folder (venv, uv,
PDM), those that Poetry, Pipenv, PDM and Hatch keep elsewhere under names made from the project's path, and conda's.
"""

import ast
import base64
import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import cast

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.protocol.codec import member
from pilotfish.servers.manifests import toml_table
from pilotfish.servers.tree import ProjectTree
from pilotfish.system.real_path import real_path

FOLDERS = (".venv", "venv", "env", ".env")  # What environments in a project's folder are called, the most usual first
MAX_BYTES = 256 * 1024  # Of one file that is read here: configuration files, `.pth` files, finders of editable installs

MAX_PTH_LINES = 500
"""Of all of them; an editable install writes one or two. Each may add a folder, which is looked at before every answer,
and when a server starts, which takes everybody 0.1 ms."""

MAX_FINDERS, MAX_MAPPINGS = 2 * 1024 * 1024, 32 * 1024
"""Characters of all finders of editable installs, of some 10 KB each, and of the tables in them, of some 100 bytes
each, which take 0.2 ms for 1 KB: everybody waits."""

MAX_TABLES = 64
"""That are kept: files that have just changed are looked at for every answer, several times, and say the same."""

MAX_PTH_FILES = 500  # Of one environment: one for each editable install, and a few of tools

_FINDER = re.compile(r"import (__editable___\w+_finder)")
_MAPPING = re.compile(r"^MAPPING(?:: [^=\n]+)? = (\{.*\})$", re.MULTILINE)


class PythonEnvironment(Struct, frozen=True):
    """What the interpreter of an environment would say about itself."""

    prefix: AbsPath
    version: tuple[int, int, int] | None
    library: tuple[AbsPath, ...]  # The standard library's folders, which lie outside of the environment
    packages: tuple[AbsPath, ...]  # `site-packages`, and the folders that its `.pth` files and editable installs add


class Project(Struct, frozen=True):
    """Whose environment is wanted: the root of a server, the workspace around it, and the variables of the client."""

    root: AbsPath
    workspace: AbsPath
    variables: Mapping[str, str]

    @property
    def home(self) -> str:
        return self.variables.get("HOME") or os.path.expanduser("~")

    @property
    def folders(self) -> Sequence[AbsPath]:
        """The root and the folders above it, up to the workspace."""
        return [AbsPath(folder) for folder in ancestors(self.root, self.workspace)] or [self.root]


def find_environment(project: Project, tree: ProjectTree) -> PythonEnvironment | None:
    """The first environment that is there and has packages; None without one."""
    prefixes = (AbsPath(os.path.normpath(prefix)) for prefix in _prefixes(project, tree))
    return next((found for prefix in prefixes if (found := _read(prefix, tree)) is not None), None)


def stand_in(environment: PythonEnvironment) -> str:
    """A shell script that answers what Pyright and Pyrefly ask an interpreter, and runs nothing.

    Pyright asks for `sys.version_info` or for `sys.path` and `sys.prefix`, Pyrefly for all of it in one object. Asked
    for anything else it fails, as an interpreter that does not work would.
    """
    version = environment.version or (sys.version_info.major, sys.version_info.minor, 0)
    pyright_paths = {"path": [*environment.library, *environment.packages], "prefix": environment.prefix}
    pyrefly = {
        "python_platform": sys.platform,
        "python_version": ".".join(map(str, version)),
        "site_package_path": list(environment.packages),
        "stdlib_paths": list(environment.library[:1]),
        "distribution_urls": [],
    }
    answers = {
        "*site_package_path*": pyrefly,
        "*prefix=sys.prefix*": pyright_paths,
        "*sys.version_info*": [*version, "final", 0],
    }
    cases = [f"{pattern}) printf '%s\\n' {shlex.quote(json.dumps(answer))} ;;" for pattern, answer in answers.items()]
    return "\n".join(["#!/bin/sh", 'case "$*" in', *cases, "*) exit 1 ;;", "esac", ""])


def _prefixes(project: Project, tree: ProjectTree) -> Iterator[str]:
    variables = project.variables
    yield from filter(None, (variables.get("VIRTUAL_ENV"), variables.get("UV_PROJECT_ENVIRONMENT")))
    for folder in project.folders:
        yield from _in_project(folder, tree)
        yield from _elsewhere(folder, project, tree)
    if conda := variables.get("CONDA_PREFIX"):
        yield conda


def _in_project(folder: AbsPath, tree: ProjectTree) -> Iterator[str]:
    for name in FOLDERS:
        place = os.path.join(folder, name)
        yield place
        # Pipenv and others take a file `.venv` that names the folder.
        if name == ".venv" and (said := tree.read(place, MAX_BYTES)):
            yield os.path.join(folder, said.strip())
    if interpreter := tree.read(os.path.join(folder, ".pdm-python"), MAX_BYTES):
        yield os.path.dirname(os.path.dirname(interpreter.strip()))
    for name in tree.names(folder):
        if tree.exists(os.path.join(folder, name, "pyvenv.cfg")):
            yield os.path.join(folder, name)


def _elsewhere(folder: AbsPath, project: Project, tree: ProjectTree) -> Iterator[str]:
    """Environments that tools keep outside of the project, under names made from its path."""
    variables, home = project.variables, project.home
    real = real_path(folder)
    cache = variables.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    data = variables.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    if tree.exists(os.path.join(folder, "Pipfile")):
        name = re.sub(r'[ &$`!*@"()\[\]\\\r\n\t]', "_", os.path.basename(folder))[:42]
        pipfile = os.path.join(folder, "Pipfile")
        hashed = _encoded(hashlib.sha256(os.fsencode(pipfile)).digest()[:6])
        shelf = variables.get("WORKON_HOME") or os.path.join(data, "virtualenvs")
        yield os.path.join(shelf, f"{name}-{hashed}")
    text = tree.read(os.path.join(folder, "pyproject.toml"), MAX_BYTES)
    if text is None:
        return
    table = toml_table(text) or {}
    names = (member(table, "project", "name"), member(table, "tool", "poetry", "name"))
    if name := next((name for name in names if isinstance(name, str)), None):
        stem = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name.lower())[:42]
        hashed = _encoded(hashlib.sha256(os.fsencode(os.path.normcase(real))).digest())
        shelf = variables.get("POETRY_VIRTUALENVS_PATH") or os.path.join(
            variables.get("POETRY_CACHE_DIR") or os.path.join(cache, "pypoetry"), "virtualenvs"
        )
        yield from _starting_with(shelf, f"{stem}-{hashed}-py", tree)
        normal = re.sub(r"[-_.]+", "-", name).lower()
        shelf = variables.get("HATCH_DATA_DIR") or os.path.join(data, "hatch")
        yield os.path.join(
            shelf, "env", "virtual", normal, _encoded(hashlib.sha256(os.fsencode(real)).digest()), normal
        )
    hashed = _encoded(hashlib.md5(os.fsencode(folder), usedforsecurity=False).digest())
    yield from _starting_with(os.path.join(data, "pdm", "venvs"), f"{os.path.basename(folder)}-{hashed}-", tree)


def _starting_with(shelf: str, stem: str, tree: ProjectTree) -> Iterator[str]:
    yield from (os.path.join(shelf, name) for name in sorted(tree.names(shelf), reverse=True) if name.startswith(stem))


def _encoded(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode()[:8]


def _read(prefix: AbsPath, tree: ProjectTree) -> PythonEnvironment | None:
    """None where `prefix` is no environment with packages."""
    settings = _settings(tree.read(os.path.join(prefix, "pyvenv.cfg"), MAX_BYTES))
    if settings is None and not tree.exists(os.path.join(prefix, "conda-meta")):
        return None
    home = (settings or {}).get("home")
    own = _library(prefix, tree)
    base = _library(os.path.dirname(home), tree) if home else own
    if own is None:
        return None
    sites = [own.packages]
    if (settings or {}).get("include-system-site-packages", "").lower() == "true" and base is not None:
        sites += [base.packages, os.path.join(base.folder, "dist-packages")]
    present = [site for site in sites if tree.exists(site)]
    if not present:
        return None
    packages = dict.fromkeys(AbsPath(path) for site in present for path in (site, *_added(site, tree)))
    library = () if base is None else (AbsPath(base.folder), AbsPath(os.path.join(base.folder, "lib-dynload")))
    version = _version((settings or {}).get("version") or (settings or {}).get("version_info")) or own.version
    return PythonEnvironment(prefix, version, library, tuple(packages))


class _Library(Struct, frozen=True):
    folder: str
    packages: str
    version: tuple[int, int, int] | None


def _library(prefix: str, tree: ProjectTree) -> _Library | None:
    """`lib/pythonX.Y` of an installation or environment, the newest where there are several; `Lib` on Windows."""
    lib = os.path.join(prefix, "lib")
    found = [(version, name) for name in tree.names(lib) if (version := _version(name.removeprefix("python")))]
    if found:
        version, name = max(found)
        folder = os.path.join(lib, name)
        return _Library(folder, os.path.join(folder, "site-packages"), version)
    windows = os.path.join(prefix, "Lib")
    packages = os.path.join(windows, "site-packages")
    return _Library(windows, packages, None) if tree.exists(packages) else None


def _settings(text: str | None) -> dict[str, str] | None:
    """`pyvenv.cfg`: one `key = value` a line."""
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, separator, value in pairs if separator}


def _version(text: str | None) -> tuple[int, int, int] | None:
    found = re.match(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?!\d)", text or "")
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def _added(site: str, tree: ProjectTree) -> Iterator[str]:
    """The folders that `.pth` files add. Lines that Python would run are not run; of editable installs by setuptools
    the table that the line would load is read."""
    names = sorted(name for name in tree.names(site) if name.endswith(".pth"))[:MAX_PTH_FILES]
    texts = (tree.read(os.path.join(site, name), MAX_BYTES) or "" for name in names)
    room, tables = MAX_FINDERS, MAX_MAPPINGS
    for line in islice((line.strip() for text in texts for line in text.splitlines()), MAX_PTH_LINES):
        if line.startswith(("import ", "import\t")):
            if room > 0 and tables >= 0 and (finder := _FINDER.match(line)):
                text = tree.read(os.path.join(site, f"{finder[1]}.py"), MAX_BYTES) or ""
                room -= len(text)
                said = _MAPPING.search(text)
                tables -= len(said[1]) if said else 0
                yield from _mapped(said[1]) if said and tables >= 0 else ()
        elif line and not line.startswith("#"):
            path = os.path.normpath(os.path.join(site, line))
            if tree.exists(path):
                yield path


@lru_cache(maxsize=MAX_TABLES)
def _mapped(table: str) -> tuple[str, ...]:
    """The folders that hold the packages of an editable install."""
    try:
        mapping: object = ast.literal_eval(table)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    entries = cast("dict[object, object]", mapping).items() if isinstance(mapping, dict) else ()
    return tuple(
        os.path.dirname(path.replace("\0", ""))
        for name, path in entries
        if isinstance(name, str) and isinstance(path, str) and os.path.basename(path).partition(".")[0] == name
    )
