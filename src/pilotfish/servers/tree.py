"""The file system as `servers.resolve` sees it: three questions, so that a test can count them, and their evidence."""

import os
import stat
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from pilotfish.system.regular_files import read_regular


class ProjectTree(Protocol):
    """Answers for one moment, and keeps nothing."""

    def exists(self, path: str) -> bool:
        """Whether anything is at `path`."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """The names in `folder`; none when it cannot be read."""
        ...

    def read(self, path: str, limit: int) -> str | None:
        """The first `limit` bytes of a regular file as text; None for anything else."""
        ...


class DiskTree:
    """The real one. It never blocks on what it meets."""

    def exists(self, path: str) -> bool:
        # Most answers are no, and `stat` makes an exception of each: this is four times as fast.
        try:
            return os.access(path, os.F_OK)
        except ValueError:
            return False  # a NUL in a name that a file of the project says

    def names(self, folder: str) -> Sequence[str]:
        try:
            return os.listdir(folder)
        except (OSError, ValueError):
            return ()

    def read(self, path: str, limit: int) -> str | None:
        content = read_regular(path, limit)
        return None if content is None else content.decode("utf-8", "replace")


# --- What an answer about the disk rests on --------------------------------------------------------------------------


DOUBT_NANOSECONDS = 100_000_000  # The clock of file systems ticks every 4 to 10 ms, that of networked ones more slowly
Sight = tuple[int, int, int, int, int] | None  # Device, inode, times of change and size; None when nothing is there


class Evidence(Struct, frozen=True):
    paths: tuple[str, ...]
    sights: tuple[Sight, ...]

    def holds(self, seen: dict[str, Sight] | None = None) -> bool:
        """Whether all looks as it did. `seen`: what was looked at a moment ago, for many answers at once."""
        if seen is None:
            return tuple(map(sight, self.paths)) == self.sights
        seen.update({path: sight(path) for path in self.paths if path not in seen})
        return all(seen[path] == known for path, known in zip(self.paths, self.sights, strict=True))


class Witness:
    """The tree that it is given, and what was asked of it: an answer holds while nothing of that has changed.

    Whether a name is in a folder is in the folder's own times, what a file says is in the times of the file, and both
    are taken before the answer is: a change in between makes the evidence void, never the answer stale. What changed so
    shortly before that the next change could bear the same time proves nothing, and is not kept.
    """

    def __init__(self, tree: ProjectTree) -> None:
        self._tree = tree
        self._seen: dict[str, Sight] = {}
        self._folders: set[str] = set()
        """Those that were noted for a name in them: a file of the project may name thousands in one."""

    def exists(self, path: str) -> bool:
        folder = os.path.dirname(path)
        if folder not in self._folders:
            self._folders.add(folder)
            if _is_file(folder):
                # There is nothing below a file, and that it gives way to a folder is in the times of the folder above.
                # So the many files of a project's folder are not looked at one by one.
                self._note(os.path.dirname(folder))
            if not _is_file(folder):
                self._note(folder)
        if _is_link(path):
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

    def _note(self, path: str) -> None:
        if path not in self._seen:
            self._seen[path] = sight(path)


def _is_link(path: str) -> bool:
    """Most paths that a project names are not there, and `lstat` makes an exception of each."""
    try:
        return os.access(path, os.F_OK, follow_symlinks=False) and os.path.islink(path)
    except (ValueError, NotImplementedError):
        return os.path.islink(path)  # Windows does not look at links in that way


def _is_file(path: str) -> bool:
    """Not where a link leads to one: what is there is not in the times of the folder that the link is in."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def looked_at(paths: Iterable[str]) -> Evidence:
    known = tuple(paths)
    return Evidence(known, tuple(map(sight, known)))


def sight(path: str) -> Sight:
    """How `path` looks now, links followed."""
    try:
        if not os.access(path, os.F_OK):
            # Of the files of a configuration most do not exist, and an exception for each takes three times as long.
            return None
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
