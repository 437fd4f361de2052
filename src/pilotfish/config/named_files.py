"""Which files of a workspace a server's entry names, wherever it names them: what a person approves is their content.

A name may stand in any text of the entry: a word of a command line, a part of an option (`--require=./x`), a shell
command (`sh -c './x && y'`), a module (`-m x`), a setting, a variable. A bare name may be a program or a package of the
project's own environment. So every text is taken apart, and every part that could be a file is looked for. What is not
there yet counts as soon as it is there. Folders do not count, only what would be run of them (`index.js`).
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import cast

from pilotfish.config.files import content_hash
from pilotfish.config.gate import FREE_FIELDS
from pilotfish.paths import PROGRAM_FOLDERS, ancestors, is_inside
from pilotfish.protocol.codec import fields
from pilotfish.protocol.wire import Json
from pilotfish.system.regular_files import read_regular

MAX_NAMES = 5_000
"""Names that are looked for in one entry. People's have some ten; an entry with more is not approved at all."""

MAX_HEAD = 65_536  # Bytes read of a file that names another: a first line with an interpreter, a `package.json`
MAX_STEPS = 4  # From a file to one that it names, to one that that one names …
MAX_VERSIONS = 4  # Of Python in one environment; there is one

COMMAND_FIELDS = ("command", "watch")

MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
PARTS = re.compile(r"""[\s"'`=:;,|&<>(){}\[\]$@!]+""")

SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".json")  # What interpreters add to a name that has none

ENTRY_FILES = ("package.json", "index.js", "index.mjs", "index.cjs", "index.ts", "__main__.py", "__init__.py")
"""What is run of a folder."""

IMPLIED: dict[str, tuple[str, ...]] = {
    "bun": ("package.json",),
    "bundle": ("Gemfile", "Gemfile.lock"),
    "cargo": ("Cargo.toml", ".cargo/config.toml", "build.rs"),
    "deno": ("deno.json", "deno.jsonc"),
    "direnv": (".envrc",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "hatch": ("pyproject.toml",),
    "just": ("justfile", "Justfile", ".justfile"),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "mise": ("mise.toml", ".mise.toml"),
    "mvn": ("pom.xml",),
    "nix": ("flake.nix", "default.nix"),
    "nix-shell": ("shell.nix", "default.nix"),
    "npm": ("package.json", ".npmrc"),
    "npx": ("package.json", ".npmrc"),
    "pdm": ("pyproject.toml",),
    "pnpm": ("package.json", ".npmrc"),
    "poetry": ("pyproject.toml",),
    "rake": ("Rakefile",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "uv": ("pyproject.toml", "uv.toml"),
    "yarn": ("package.json", ".yarnrc.yml"),
}
"""Files that say what a program runs, without being named."""


class TooManyNames(Exception):
    """The entry names more than can be looked for."""


def named_files(workspace: str, entry: Json, base: str | None = None) -> dict[str, str]:
    """The files of a workspace that an entry names, by their path from it, with what they hold.

    Names are read from `base`, the folder that the server runs in; without one from the workspace. Raises
    `TooManyNames`.
    """
    start = base or workspace
    found: dict[str, str] = {}
    names = _distinct(_names(entry, below=start != workspace))
    for _ in range(MAX_STEPS):
        places = {place for name in names for place in _places(name, start, workspace) if os.path.lexists(place)}
        fresh = {os.path.relpath(place, workspace): place for place in places}
        hashes = {name: content_hash(workspace, fresh[name]) for name in fresh.keys() - found.keys()}
        there = {name: said for name, said in hashes.items() if said is not None}
        found |= there
        names = _distinct(named for name in there for named in _named_by(fresh[name], start))
        if not names:
            break
    return found


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in names:
        found[name] = None
        if len(found) > MAX_NAMES:
            raise TooManyNames(f"it names more than {MAX_NAMES} things")
    return tuple(found)


def _names(entry: Json, *, below: bool) -> Iterator[str]:
    """Every part of the entry's texts that could name a file.

    In a folder below the workspace settings name files of that folder, which nobody was shown; what runs must have been
    approved even so.
    """
    if not isinstance(entry, dict):
        return
    for field in COMMAND_FIELDS:
        argv = entry.get(field)
        if isinstance(argv, list) and argv and isinstance(argv[0], str):
            yield from _of_program(argv[0])
            yield from _in_texts(argv[1:])
    for field in ("env",) if below else ("env", *FREE_FIELDS):
        yield from _in_texts(entry.get(field))


def _in_texts(value: Json) -> Iterator[str]:
    for text in _texts(value):
        yield text
        for part in PARTS.split(text):
            yield from _readings(part)


def _of_program(word: str) -> Iterator[str]:
    """A bare program is looked for in folders of programs, never in the folder that it runs in."""
    if "/" in word:
        yield word
        return
    yield from (f"{folder}/{word}" for folder in PROGRAM_FOLDERS)
    yield from IMPLIED.get(word, ())


def _readings(part: str) -> Iterator[str]:
    """A part as it is, without the letters of an option before it (`-I./x`), as a program and as a module."""
    if not part:
        return
    yield part
    if part.startswith("-"):
        place = min((part.find(mark) for mark in ("./", "/") if mark in part), default=-1)
        if place > 0:
            yield part[place:]
        return
    # The rest of `${workspaceFolder}/x`, which has been taken apart, or a path that a server takes from its root.
    yield from (part.lstrip("/"),) if part.startswith("/") else ()
    if "/" not in part:
        yield from _of_program(part)
    yield f"node_modules/{part}"
    if MODULE.fullmatch(part):
        yield part.replace(".", "/")
        yield f"src/{part.replace('.', '/')}"


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            # A key without a slash is the name of a setting.
            yield from (key,) if "/" in key else ()
            yield from _texts(item)


def _places(name: str, base: str, workspace: str) -> Iterator[str]:
    """Where a file of this name would be: as it is, with a suffix, or what is run of a folder; also in packages."""
    if "\0" in name or len(name) > 4_096:
        return
    shared = name.startswith((*PROGRAM_FOLDERS, "node_modules/"))
    bases = ancestors(base, workspace) if shared else (base,)
    for folder in (*bases, *(_packages(base) if MODULE.fullmatch(name.replace("/", ".")) else ())):
        place = os.path.normpath(os.path.join(folder, name))
        if not is_inside(place, workspace) or place == workspace:
            continue
        if os.path.isdir(place):
            yield from (os.path.join(place, entry) for entry in ENTRY_FILES)
        else:
            yield place
        yield from (place + suffix for suffix in SUFFIXES)


def _packages(base: str) -> Iterator[str]:
    """The folders with the packages of Python environments in a folder."""
    for name in (".venv", "venv"):
        library = os.path.join(base, name, "lib")
        names = os.listdir(library) if os.path.isdir(library) else ()
        for version in sorted(name for name in names if name.startswith("python"))[:MAX_VERSIONS]:
            yield os.path.join(library, version, "site-packages")


def _named_by(place: str, base: str) -> Iterator[str]:
    """What a file names itself: its interpreter, or what a package is made of."""
    head = read_regular(place, MAX_HEAD) or b""
    if os.path.basename(place) == "package.json":
        try:
            package = fields(cast("Json", json.loads(head)))
        except (ValueError, RecursionError):
            return
        folder = os.path.relpath(os.path.dirname(place), base)
        parts = ("main", "module", "bin", "exports")
        yield from (os.path.join(folder, name) for part in parts for name in _texts(cast("Json", package.get(part))))
    elif head.startswith(b"#!"):
        for part in PARTS.split(os.fsdecode(head[2:].partition(b"\n")[0])):
            yield from _readings(part)
