"""The texts that the host handed over with a check: each stands until its file on disk changes, or another text comes.

A host that edits in memory asks about all files right after it has asked about one: the disk would answer about the
text before the edit.
"""

import os
from collections.abc import Mapping

from pilotfish.model import AbsPath
from pilotfish.service.recent import Recent
from pilotfish.system.real_path import real_path

MAX_TEXTS = 100

DiskState = tuple[int, ...] | None


class GivenTexts:
    def __init__(self, cwd: AbsPath) -> None:
        self._cwd = cwd
        self._texts: Recent[AbsPath, tuple[str, DiskState]] = Recent(MAX_TEXTS)

    def put(self, path: str, text: str | None) -> None:
        """The text of a file from now on; None: what is on disk."""
        real = AbsPath(real_path(os.path.join(self._cwd, path)))
        if text is None:
            self._texts.drop(lambda known: known == real)
        else:
            self._texts.put(real, (text, _disk_state(real)))

    def in_force(self) -> Mapping[AbsPath, str]:
        """By path; a text whose file has changed since is dropped."""
        self._texts.drop(self._is_over)
        kept = ((path, self._texts.get(path)) for path in self._texts)
        return {path: one[0] for path, one in kept if one is not None}

    def _is_over(self, path: AbsPath) -> bool:
        known = self._texts.get(path)
        return known is not None and known[1] != _disk_state(path)


def _disk_state(path: AbsPath) -> DiskState:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
