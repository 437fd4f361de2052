"""What `check` is about: the files that were named, and those below the folders that were.

Of a named file a verdict is owed. Of a folder, it is owed for every file that some server is for; where that server is
not there, its files are counted, and without them the verdict on the folder is not whole.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pilotfish.api import Error, error
from pilotfish.library.workspace import Workspace
from pilotfish.model import AbsPath
from pilotfish.surfaces.folders import files_below


@dataclass(frozen=True, slots=True)
class Gathered:
    """The files to check, each once."""

    named: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """Found in a folder."""
    unserved: Mapping[Error, int] = field(default_factory=dict[Error, int])
    """Why files of folders cannot be checked, and how many."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.named, *self.listed)


def gathered(workspace: Workspace, paths: Sequence[str]) -> Gathered:
    """Reads folders: run it in a worker thread."""
    folders = [path for path in paths if os.path.isdir(path)]
    named = dict.fromkeys(path for path in paths if path not in folders)
    listed: dict[str, None] = {}
    unserved = Counter[Error]()
    for folder in folders:
        for file in files_below(AbsPath(os.path.realpath(folder))):
            if not workspace.serves(file) or file in listed:
                continue
            missing = workspace.missing(file)
            if missing is None:
                listed[file] = None
            else:
                unserved[error(missing)] += 1
    return Gathered(tuple(named), tuple(listed), unserved)


def shortfalls(found: Gathered) -> tuple[Error, ...]:
    """What is missing for a verdict on the whole of the folders."""
    return tuple(Error(why.server_id, _told(why, count), why.code) for why, count in found.unserved.items())


def _told(why: Error, count: int) -> str:
    files = "1 file was" if count == 1 else f"{count} files were"
    return f"{files} not checked: {why.message}"
