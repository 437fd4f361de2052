"""What `check` is about: the files that were named, and those below the folders that were.

Of a named file a verdict is owed. Of a folder, it is owed for every file that some server is for; where that server is
not there, its files are counted, and without them the verdict on the folder is not whole.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import anyio.to_thread
from msgspec import Struct, field

from pilotfish.api.answers import Error
from pilotfish.model import AbsPath
from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.surfaces.source_files import files_below


class Gathered(Struct, frozen=True):
    """The files to check, each once."""

    named: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """Found in a folder."""
    unserved: Mapping[Error, int] = field(default_factory=dict[Error, int])
    """Why files of folders cannot be checked, and how many."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.named, *self.listed)


async def gathered(workspace: OpenWorkspace, paths: Sequence[str]) -> Gathered:
    named, below = await anyio.to_thread.run_sync(_files, paths)
    unserved = await workspace.unserved(below)
    listed = tuple(file for file in below if file not in unserved)
    return Gathered(named, listed, Counter(why for why in unserved.values() if why is not None))


def shortfalls(found: Gathered) -> tuple[Error, ...]:
    """What is missing for a verdict on the whole of the folders."""
    return tuple(Error(why.server_id, _told(why, count), why.code) for why, count in found.unserved.items())


def _files(paths: Sequence[str]) -> tuple[tuple[str, ...], list[AbsPath]]:
    """The files that were named, and all below the folders that were."""
    folders = [path for path in paths if os.path.isdir(path)]
    named = dict.fromkeys(path for path in paths if path not in folders)
    below = (file for folder in folders for file in files_below(AbsPath(os.path.realpath(folder))))
    return tuple(named), [*dict.fromkeys(below)]


def _told(why: Error, count: int) -> str:
    files = "1 file was" if count == 1 else f"{count} files were"
    return f"{files} not checked: {why.message}"
