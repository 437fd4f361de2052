"""Where a server's program is.

Looked for in this order: the project's own environment, when it is trusted; our own tools, which the user installed on
purpose; `PATH`; the environment that we are installed in. A program inside an untrusted workspace, by name or by where
its links lead, is what the project supplies: it is reported as `Gated`, and not run (TRUST-6, T9). Nothing is executed
to find out.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import PROGRAM_FOLDERS, ancestors
from pilotfish.servers.environment import lies_in
from pilotfish.system.ownership import is_foreign
from pilotfish.system.real_path import real_path
from pilotfish.system.windows import program_names

if TYPE_CHECKING:
    from pilotfish.system.ports import Identity
from collections.abc import Sequence

from pilotfish.system.windows import forwarded, forwarder

PLUGINS = AbsPath(os.path.join(os.path.dirname(__file__), "plugins"))
"""Plugins of ours for servers, in one folder for each kind of server."""


class Lookup(Struct, frozen=True):
    """Where to look. All folders are real paths."""

    territory: tuple[AbsPath, ...]  # What belongs to the project: the workspace, and its git worktree
    trusted: bool
    path: tuple[AbsPath, ...]  # What `environment.search_path` leaves of `PATH`
    tools: tuple[AbsPath, ...] = ()  # Folders of programs that we installed ourselves
    beside: tuple[AbsPath, ...] = ()  # What `environment.beside_us` finds
    foreign: tuple[AbsPath, ...] = ()
    """Folders of `PATH` that another user can write to: what is there is not run for an untrusted workspace (T48)."""
    suffixes: tuple[str, ...] = ()  # What `windows.program_suffixes` says


class ProgramFound(Struct, frozen=True):
    """The program. `identity` changes when it is replaced on disk, and so must whatever shares a running one (F20)."""

    path: AbsPath
    identity: "Identity"


class Gated(Struct, frozen=True):
    path: AbsPath
    reason: str


class ProgramMissing(Struct, frozen=True):
    """It is nowhere. `unusable` is one that was found and cannot be run."""

    program: str
    looked_in: tuple[AbsPath, ...]
    unusable: AbsPath | None = field(default=None)


ProgramLocation = ProgramFound | Gated | ProgramMissing


def tool_folders(state: AbsPath) -> tuple[AbsPath, ...]:
    """Where the programs are that we installed ourselves, below the folder of our state."""
    return (AbsPath(os.path.join(state, "tools", "bin")),)


def locate(program: str, root: AbsPath, lookup: Lookup) -> ProgramLocation:
    """Find the program that a command starts with, for a server that is to run in `root`."""
    if os.path.dirname(program):
        return _judged(AbsPath(os.path.normpath(os.path.join(root, program))), lookup)
    gated: Gated | None = None
    unusable: AbsPath | None = None
    looked_in: list[AbsPath] = []
    for folder in _folders(root, lookup):
        looked_in.append(folder)
        for name in program_names(program, lookup.suffixes):
            path = os.path.join(folder, name)
            if lookup.suffixes and folder in (*lookup.tools, *lookup.beside):
                path = linked_program(path, lookup.suffixes) or path  # its packages are beside where it leads
            match _judged(AbsPath(path), lookup):
                case ProgramFound() as found:
                    return found
                case Gated() as withheld:
                    gated = gated or withheld
                case ProgramMissing(unusable=broken):
                    unusable = unusable or broken
    return gated or ProgramMissing(program, tuple(looked_in), unusable)


def find_npm_file(name: str, root: AbsPath, lookup: Lookup, beside: AbsPath | None = None) -> AbsPath | None:
    """A file of an npm package (`typescript/lib`): the project's when it is trusted, ours, or one beside `beside`."""
    folders = [*_up(root, lookup.territory), *(above for tools in lookup.tools for above in ancestors(tools))]
    folders += ancestors(os.path.dirname(real_path(beside))) if beside is not None else ()
    paths = (AbsPath(os.path.join(folder, "node_modules", name)) for folder in folders)
    allowed = (path for path in paths if os.path.exists(path))
    return next((path for path in allowed if lookup.trusted or not lies_in(path, lookup.territory)), None)


def _folders(root: AbsPath, lookup: Lookup) -> Iterator[AbsPath]:
    """An untrusted project's own and other users' folders come last: only to say that the program is there."""
    own = [AbsPath(os.path.join(near, name)) for near in _up(root, lookup.territory) for name in PROGRAM_FOLDERS]
    others = (*lookup.tools, *lookup.path, *lookup.beside)
    yield from (*own, *others) if lookup.trusted else (*others, *own, *lookup.foreign)


def _up(root: AbsPath, territory: Iterable[AbsPath]) -> Iterator[str]:
    tops = sorted(territory, key=len)
    yield from next((found for top in tops if (found := ancestors(root, top))), (root,))


def _judged(path: AbsPath, lookup: Lookup) -> ProgramLocation:
    missing = ProgramMissing(os.path.basename(path), (AbsPath(os.path.dirname(path)),))
    # Most answers are no, and this one is the cheapest.
    if not os.access(path, os.F_OK):
        return missing
    try:
        status = os.stat(path)
    except OSError:
        return missing
    if not stat.S_ISREG(status.st_mode) or not os.access(path, os.X_OK):
        return replace(missing, unusable=path)
    if not lookup.trusted and lies_in(path, lookup.territory):
        return Gated(path, "the program lies inside the workspace, which is not trusted")
    if not lookup.trusted and (os.path.dirname(path) in lookup.foreign or is_foreign(status)):
        return Gated(path, "other users can change the program, and the workspace is not trusted")
    from pilotfish.system.ports import Identity  # Only what is found needs it, and `servers` finds little.

    return ProgramFound(path, Identity(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size))


def own_plugins(kind: str, lookup: Lookup) -> str:
    """The folder of our plugins for a kind of server; none below an untrusted workspace.

    Node looks for a plugin in `node_modules` of the folders above, too, and a project may name one that is there.
    """
    folder = AbsPath(os.path.join(PLUGINS, kind))
    return folder if lookup.trusted or not lies_in(folder, lookup.territory) else os.devnull


# --- What leads from our folder of programs to those that we installed ------------------------------------------------


def link_path(folder: str, name: str, suffixes: Sequence[str]) -> str:
    return os.path.join(folder, f"{name}.cmd" if suffixes else name)


def make_link(program: str, path: str, suffixes: Sequence[str]) -> None:
    """Have `path` lead to a program, in place of where it led before."""
    fresh = f"{path}.{os.getpid()}"
    if suffixes:
        with open(fresh, "w", encoding="utf-8", newline="") as file:
            file.write(forwarder(os.path.relpath(program, os.path.dirname(path))))
    else:
        os.symlink(program, fresh)
    os.replace(fresh, path)


def linked_program(path: str, suffixes: Sequence[str]) -> str:
    """Where it leads; empty for what is no link of ours."""
    try:
        if not suffixes:
            return os.readlink(path)
        with open(path, encoding="utf-8", newline="") as file:
            program = forwarded(file.read(MOST))
    except (OSError, ValueError):
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(path), program.replace("\\", "/"))) if program else ""


MOST = 4096  # Characters of a script: more than any path


def program_in(folder: str, name: str, suffixes: Sequence[str]) -> str | None:
    """The program of this name in a folder. `shutil.which` would look into the current one first, on Windows."""
    paths = (os.path.join(folder, file) for file in program_names(name, suffixes))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
