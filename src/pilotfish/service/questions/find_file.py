"""The file that a caller means by a path where nothing is: the one that ends so, or the nearest ones to choose from."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.questions import Question
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.real_path import real_path
from pilotfish.system.source_files import files_below

MAX_FILES = 20_000
"""Files that are looked at, which takes about a second on a cold disk; beyond it nothing is known to be unique."""

MAX_NEAREST = 5
SIMILAR = 0.6
"""How much of a name must agree, as `difflib` measures it."""


class Candidates(Struct, frozen=True):
    """Files that a path may mean, relative to the workspace."""

    ending: tuple[str, ...]
    """Those whose last segments are the path."""
    similar: tuple[str, ...] = ()


def candidates(named: str, files: Iterable[str]) -> Candidates:
    """Pure: the files among `files` that `named` may mean."""
    known = list(files)
    wanted = os.path.normpath(named).lstrip("/")
    ending = tuple(path for path in known if path == wanted or path.endswith(f"/{wanted}"))
    if ending:
        return Candidates(ending)
    name = os.path.basename(wanted)
    by_name: dict[str, list[str]] = {}
    for path in known:
        by_name.setdefault(os.path.basename(path), []).append(path)
    near = get_close_matches(name, by_name, MAX_NEAREST, SIMILAR)
    paths = [path for one in near for path in by_name[one]]
    return Candidates((), tuple(paths[:MAX_NEAREST]))


async def with_existing_file(question: Question, client: ClientSession) -> Question:
    """The question about a file that exists; raises `Refused` with the nearest paths where it is not certain which."""
    named = question.file_path
    if named is None or question.text is not None or _exists(named, client):
        return question
    path = await anyio.to_thread.run_sync(_found, named, client.root)
    return replace(question, file_path=path)


def _found(named: str, root: AbsPath) -> str:
    """The file that is meant; reads folders, so run it in a worker thread."""
    real = AbsPath(real_path(root))
    files = list(islice(files_below(real), MAX_FILES))
    found = candidates(named.removeprefix("@"), (os.path.relpath(path, real) for path in files))
    if len(found.ending) == 1 and len(files) < MAX_FILES and not os.path.isabs(named):
        return os.path.join(real, found.ending[0])
    nearest = (found.ending or found.similar)[:MAX_NEAREST]
    hint = f"Nearest: {', '.join(nearest)}." if nearest else None
    raise Refused(Code.FILE_MISSING, f"{named} does not exist.", hint=hint)


def _exists(named: str, client: ClientSession) -> bool:
    path = os.path.normpath(os.path.join(client.cwd, named.removeprefix("@")))
    # What cannot be a path, or lies outside, is for the boundary to refuse.
    return "\0" in path or os.path.lexists(path) or not is_inside(path, client.root)
