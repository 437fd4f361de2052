"""The file system as `servers.resolve` sees it: three questions, so that a test can count them."""

import os
import stat
from collections.abc import Sequence
from typing import Protocol


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
    """The real one. It never blocks on what it meets: FIFOs and devices are not opened for reading (T43)."""

    def exists(self, path: str) -> bool:
        # Most answers are no, and `stat` makes an exception of each: this is four times as fast.
        return os.access(path, os.F_OK)

    def names(self, folder: str) -> Sequence[str]:
        try:
            return os.listdir(folder)
        except OSError:
            return ()

    def read(self, path: str, limit: int) -> str | None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return None
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            try:
                return stream.read(limit).decode("utf-8", "replace")
            except OSError:
                # Some files of `/proc` can be opened, and refuse to be read.
                return None
