"""Files that tell when somebody opens them, also somebody who may write nowhere."""

import os
import weakref
from pathlib import Path

from pilotfish.system.watching.inotify import Inotify

OPEN = 0x0020
"""Of inotify: the file was opened."""


class Canaries:
    """Watches files, or the files of a folder. A confined server may read outside of the home, so that its silence is
    not the kernel's doing."""

    def __init__(self, *paths: Path) -> None:
        self._inotify = Inotify()
        self.close = weakref.finalize(self, os.close, self._inotify.descriptor)
        self._watched = {self._inotify.add_watch(str(path), OPEN): path for path in paths}
        self._opened = set[Path]()

    def reset(self) -> None:
        """What was opened so far does not count: the test itself did it."""
        self.opened()
        self._opened.clear()

    def opened(self) -> set[Path]:
        """The files that somebody has opened since they are watched."""
        while events := self._inotify.read():
            for event in events:
                path = self._watched.get(event.watch)
                if path is not None and (event.name or path.is_file()):
                    self._opened.add(path / event.name)
        return set(self._opened)


class Canary:
    """One file. Its path is its text, for code that opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self._canaries = Canaries(path)
        self.close = self._canaries.close

    def __str__(self) -> str:
        return str(self.path)

    def was_read(self) -> bool:
        return bool(self._canaries.opened())


def canary(folder: Path) -> Canary:
    """A file in a folder of its own beside the workspace."""
    place = folder / "canary"
    place.mkdir(exist_ok=True)
    return Canary(place / "told")
