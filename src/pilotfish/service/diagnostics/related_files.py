"""The files that a change may break elsewhere: those open at its servers, and those that mention it.

A file that imports another names it, in every language that we know: by its stem, or by its folder where the stem only
stands for the folder (`__init__`, `index`, `mod`). Searching for that name needs no server. It finds too many files
rather than too few, so the search is bounded, nearest files first, and each file is then checked.
"""

import os
import re
from collections.abc import Iterator, Sequence

import anyio
import anyio.to_thread
from msgspec import Struct

from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_dependency
from pilotfish.pool.pool import Pool
from pilotfish.service.diagnostics.runner import CheckRunner, FileVerdict, Patience
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time

MAX_OPENED = 8
"""Closed files that are opened for one change because they mention the changed file."""

MAX_CHECKED = 24
"""Other files that are checked for one change; more than are shown, so that the worst can be chosen."""


STANDS_FOR_FOLDER = frozenset({"__init__", "index", "mod"})

MAX_LISTED = 5_000
"""Files listed by name; in a larger project the nearest files must do."""

MAX_READ = 600
"""Files that are searched: some 50 ms of reading."""

MAX_READ_BYTES = 64 * 1024
"""Imports stand near the top of a file."""


class RelatedFiles:
    def __init__(self, pool: Pool, runner: CheckRunner) -> None:
        self._pool = pool
        self._runner = runner

    async def run(
        self, client: ClientSession, workspace: Workspace, edited: Sequence[FileVerdict], deadline: float
    ) -> tuple[FileVerdict, ...]:
        """Fresh verdicts, and files that cannot be read (`refused`); empty when the time is over."""
        left = deadline - current_time()
        if left <= 0 or not any(verdict.answered for verdict in edited):
            return ()
        paths = await self._paths(workspace, edited)
        verdicts: tuple[FileVerdict, ...] = ()
        with anyio.move_on_after(left):
            verdicts = await self._runner.run(client, workspace, paths, patience=Patience(left, left))
        return tuple(verdict for verdict in verdicts if verdict.is_fresh or verdict.refused)

    async def _paths(self, workspace: Workspace, edited: Sequence[FileVerdict]) -> list[AbsPath]:
        own = {verdict.path for verdict in edited}
        servers = {
            outcome.server for verdict in edited for outcome in verdict.outcomes if outcome.diagnostics is not None
        }
        known = [path for path in self._open_at(servers, workspace) if path not in own]
        for verdict in edited:
            extension = os.path.splitext(verdict.path)[1]
            changed = _Changed(verdict.path, frozenset({extension}))
            mentioning = await anyio.to_thread.run_sync(_mentioning, changed, workspace.root, MAX_OPENED)
            known += [path for path in mentioning if path not in own]
        return [path for path in dict.fromkeys(known) if self._is_served(workspace, path)][:MAX_CHECKED]

    def _open_at(self, servers: set[str], workspace: Workspace) -> list[AbsPath]:
        """Documents open at these servers, the last used first."""
        paths: dict[AbsPath, None] = {}
        for key, entry in self._pool.entries().items():
            if entry.session is not None and key.server in servers and workspace.holds(key.root):
                paths.update(dict.fromkeys(reversed(entry.session.documents.paths)))
        return list(paths)

    @staticmethod
    def _is_served(workspace: Workspace, path: AbsPath) -> bool:
        try:
            return os.path.isfile(path) and workspace.serves(path)
        except Refused:
            return False


class _Changed(Struct, frozen=True):
    """The changed file, and the extensions of files that may import it."""

    path: AbsPath
    extensions: frozenset[str]


def _mentioning(changed: _Changed, workspace: AbsPath, most: int) -> tuple[AbsPath, ...]:
    """At most `most` files that mention the changed one, nearest first. Reads files: run it in a worker thread."""
    word = _name(changed.path)
    if len(word) < 2:
        return ()
    mention = re.compile(rb"\b" + re.escape(os.fsencode(word)) + rb"\b")
    near = sorted(_files(changed, workspace), key=lambda path: (_distance(path, changed.path), path))
    found: list[AbsPath] = []
    for path in near[:MAX_READ]:
        if _mentions(path, mention):
            found.append(path)
            if len(found) == most:
                break
    return tuple(found)


def _name(path: AbsPath) -> str:
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem in STANDS_FOR_FOLDER else stem


def _files(changed: _Changed, workspace: AbsPath) -> Iterator[AbsPath]:
    """Files of the same kind, folder by folder from the changed file's own outwards."""
    listed = 0
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if not name.startswith(".") and not is_dependency((name,))]
        for name in names:
            path = AbsPath(os.path.join(folder, name))
            if os.path.splitext(name)[1] in changed.extensions and path != changed.path:
                yield path
        listed += len(names)
        if listed > MAX_LISTED:
            return


def _distance(path: AbsPath, other: AbsPath) -> int:
    """Steps between the folders of two files."""
    return len(os.path.relpath(os.path.dirname(path), os.path.dirname(other)).split(os.sep))


def _mentions(path: AbsPath, mention: re.Pattern[bytes]) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return mention.search(os.read(descriptor, MAX_READ_BYTES)) is not None
    except OSError:
        return False
    finally:
        os.close(descriptor)
