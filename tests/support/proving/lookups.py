"""Shows which files a server looks up beside its sources, and that the catalogue names each of them (F95).

The server plays its row once more below `strace` (of Debian's package of that name): files of the workspace, of the
folders above it and of the home that it opens, or only asks for. Configuration that is looked for in vain counts too:
it may come. What the catalogue does not name, and the row does not call harmless, is not proven. `looked_up.json` has
what was found, and the matrix of docs/RELIABILITY.md says of which servers.
"""

import fnmatch
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import inputs_of
from pilotfish.servers.roots import fits
from pilotfish.servers.spec import Environment, ServerSpec
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.ports import Launch, Process, Spawner
from pilotfish.system.process import spawn
from support.proving.play import MAX_TRIES, NotProven, Stage
from support.proving.rows import ProofRow
from support.servers.real import User

TRACER = ("-f", "-y", "-qq", "--seccomp-bpf", "-s", "4096", "-e", "trace=%file")

FILE = Path(__file__).with_name("looked_up.json")

ABOVE, HOME = "../", "~/"
"""What a path begins with that is in some folder above the root, or in the home."""

NAMED = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>, \"((?:[^\"\\]|\\.)*)\"|\w+\(\"((?:[^\"\\]|\\.)*)\"")
"""Paths of a line of the trace: behind a folder, or alone."""

HARMLESS: Mapping[str, str] = {
    ".git": "whether it is a repository",
    ".git/*": "the same",
    "*/.git": "the same",
    "*/.git/*": "the same",
    ".jj": "the same",
    "*/.jj": "the same",
    "../.gitignore": "what git ignores is read up to the repository, which the workspace is",
    "../.ignore": "the same",
    "~/.gitconfig": "where git has its ignored files",
    "~/.config/git/*": "the same",
    "*.so": "libraries of its program; what runs of a project is for the traps",
    "*.so.*": "the same",
    "~/.node_libraries": "where node looks for modules of the program",
    "~/.node_modules": "the same",
    "~/.local/lib*": "where Python looks for modules of the program",
    "~/.local/share/gem*": "where Ruby looks for modules of the program",
    "~/.gem*": "the same",
    "~/.cache/*": "what it keeps for itself",
    "~/.local/state/*": "the same",
    "~/pilotfish/*": "ours",
}
"""Of every server, and why."""


def look_ups(row: ProofRow, found: Iterable[str]) -> tuple[str, ...]:
    """What it looked up and the catalogue names; raises `NotProven` with what it does not name."""
    known, harmless = tuple(named(load()[row.server])), (*HARMLESS, *row.harmless)
    unknown = [one for one in sorted(found) if not _fits(one, (*known, *harmless))]
    if unknown:
        raise NotProven(f"it looks up what the catalogue does not name: {', '.join(unknown)}")
    return tuple(pattern for pattern in known if any(_fits(one, [pattern]) for one in found))


class LookedUp(Struct, frozen=True):
    """What a version of a server looked up beside its sources, by patterns of the catalogue, which name all of it."""

    version: str
    date: str
    patterns: tuple[str, ...]


def looked_up() -> Mapping[str, LookedUp]:
    """By server."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, LookedUp])


def record(server: str, version: str, patterns: tuple[str, ...]) -> None:
    date = time.strftime("%Y-%m-%d", time.gmtime())
    known = {**looked_up(), server: LookedUp(version, date, patterns)}
    text = json.dumps(msgspec.to_builtins(dict(sorted(known.items()))), indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n")


def _fits(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def projects(row: ProofRow) -> tuple[Mapping[str, str], ...]:
    """What the project holds besides the file: as its row says; and sources alone, where it looks further."""
    spec = load()[row.server]
    return (row.files, {name: text for name, text in row.files.items() if _is_source(name, spec)})


def named(spec: ServerSpec) -> Iterator[str]:
    """Patterns of the paths that the catalogue names as inputs of a server."""
    inputs = inputs_of(spec)
    for name in (*inputs.steering, *inputs.reloads, *inputs.presence, *inputs.also_told, *inputs.folders):
        file = name.partition("#")[0]
        yield file
        if "/" not in file:
            yield f"[!.~]*/{file}"
    for name in inputs.above:
        yield ABOVE + name.partition("#")[0]
    for name in inputs.home:
        yield f"{HOME}{name}"
    match inputs.environment:
        case Environment.NODE:
            yield from ("node_modules", "node_modules/*", "*/node_modules", "*/node_modules/*")
        case Environment.PYTHON:
            yield from (f"{name}{rest}" for name in (".venv", "venv", "env", ".env") for rest in ("", "/*"))
        case _:
            pass


async def traced(row: ProofRow, files: Mapping[str, str], user: User) -> set[str]:
    """What it looked up beside its sources: by its path from the root, `../` for folders above, `~/` for the home."""
    for name, text in {**files, row.file: row.fine}.items():
        place = user.workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    traces, temporary = user.workspace.parent / "traces", user.workspace.parent / "temporary"
    for folder in (traces, temporary):
        folder.mkdir()
    root = AbsPath(str(user.workspace))
    environment = {**user.environment, "TMPDIR": str(temporary)}
    system = replace(computer(environment), spawn=_tracing(traces, row.server))
    async with Service(system).running() as service:
        stage = Stage(row, service, ClientSession("look-ups", root, root), user.workspace)
        for text in (row.fine, row.broken, row.fine):
            stage.write(text)
            for _ in range(MAX_TRIES):
                answer = await service.check(stage.client, (row.file,))
                if answer.meta.state == "fresh":
                    break
    lines = (line for trace in traces.iterdir() for line in trace.read_text(errors="replace").splitlines())
    return set(_short(_paths(lines), user, load()[row.server]))


def _tracing(folder: Path, server: str) -> Spawner:
    tracer, number = shutil.which("strace"), count()
    if tracer is None:
        raise SystemExit("strace is not installed (apt install strace)")

    def traced(launch: Launch) -> AbstractAsyncContextManager[Process]:
        if launch.name != server:
            return spawn(launch)
        return spawn(replace(launch, argv=(tracer, *TRACER, "-o", str(folder / str(next(number))), *launch.argv)))

    return traced


def _paths(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        for found in NAMED.finditer(line):
            yield os.path.normpath(os.path.join(found[1] or "", found[2] or found[3] or ""))


def _short(paths: Iterable[str], user: User, spec: ServerSpec) -> Iterator[str]:
    """Without folders that are there, and without sources. Who searches the folders above begins with the nearest."""
    root, home = str(user.workspace), user.environment["HOME"]
    for path in set(paths):
        if os.path.isdir(path) and not os.path.islink(path):
            continue
        if is_inside(path, root):
            if not _is_source(path, spec):
                yield os.path.relpath(path, root)
        elif is_inside(path, home):
            yield HOME + os.path.relpath(path, home)
        elif os.path.dirname(path) == os.path.dirname(root):
            yield ABOVE + os.path.basename(path)


def _is_source(path: str, spec: ServerSpec) -> bool:
    names = spec.files.names
    return path.endswith((*spec.extensions, *spec.reads)) or any(fits(name, f"/{path}") for name in names)
