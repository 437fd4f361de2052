"""What an answer about the disk rests on: it holds for as long as nothing of that has changed.

A `Witness` is a tree that notes what it is asked. Whether a name is in a folder is in the folder's own times, what a
file says is in the times of the file, and both are taken before the answer is: a change in between makes the evidence
void, never the answer stale. What changed so shortly before that the next change could bear the same time proves
nothing, and is not kept.
"""

import os
import stat
import time
from collections.abc import Sequence

from msgspec import Struct

from pilotfish.servers.tree import ProjectTree

DOUBT_NANOSECONDS = 100_000_000
"""The clock of file systems ticks every 4 to 10 ms, that of networked ones more slowly."""

Sight = tuple[int, int, int, int, int] | None
"""Device, inode, times of change and size; None when nothing is there."""


class Evidence(Struct, frozen=True):
    """Paths and how each looked."""

    paths: tuple[str, ...]
    sights: tuple[Sight, ...]

    def holds(self, seen: dict[str, Sight] | None = None) -> bool:
        """Whether all looks as it did. `seen`: what was looked at a moment ago, for many answers at once."""
        if seen is None:
            return tuple(map(sight, self.paths)) == self.sights
        seen.update({path: sight(path) for path in self.paths if path not in seen})
        return all(seen[path] == known for path, known in zip(self.paths, self.sights, strict=True))


class Witness:
    """The `Tree` that it is given, and what was asked of it."""

    def __init__(self, tree: ProjectTree) -> None:
        self._tree = tree
        self._seen: dict[str, Sight] = {}

    def exists(self, path: str) -> bool:
        self._note_folder(os.path.dirname(path))
        if os.path.islink(path):
            # Whether a link leads somewhere is not in the times of the folder that it is in.
            self._note(path)
        return self._tree.exists(path)

    def names(self, folder: str) -> Sequence[str]:
        self._note(folder)
        return self._tree.names(folder)

    def read(self, path: str, limit: int) -> str | None:
        self._note(path)
        return self._tree.read(path, limit)

    def evidence(self) -> Evidence | None:
        """What all answers so far rest on; None when some of it is too young to prove anything."""
        latest = time.time_ns() - DOUBT_NANOSECONDS
        if any(seen is not None and max(seen[2], seen[3]) > latest for seen in self._seen.values()):
            return None
        return Evidence(tuple(self._seen), tuple(self._seen.values()))

    def _note_folder(self, folder: str) -> None:
        if _is_file(folder):
            # There is nothing below a file, and that it gives way to a folder is in the times of the folder above. So
            # the many files of a project's folder are not looked at one by one.
            self._note(os.path.dirname(folder))
        if not _is_file(folder):
            self._note(folder)

    def _note(self, path: str) -> None:
        if path not in self._seen:
            self._seen[path] = sight(path)


def _is_file(path: str) -> bool:
    """Not where a link leads to one: what is there is not in the times of the folder that the link is in."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def sight(path: str) -> Sight:
    """How `path` looks now, links followed."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
