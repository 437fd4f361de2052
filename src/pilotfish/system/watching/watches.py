"""Which folder each watch of the system belongs to, and which folders have none.

A watch belongs to a folder and not to its name: when the folder is moved, the watch goes along. Asking for a watch at
the new name then gives the old number, and the folder that had it has lost it.
"""

from typing import Protocol

from pilotfish.model import AbsPath


class Sentry(Protocol):
    """Has the system tell of changes in single folders."""

    def watch(self, folder: AbsPath, *, follow: bool) -> int | None:
        """The number of the watch, the same as before for the same folder; None when it cannot be watched now.

        `follow` says that it may be a link to a folder.
        """

    def unwatch(self, watch: int) -> None:
        """End a watch; harmless when it has ended."""


class Watches:
    def __init__(self, sentry: Sentry) -> None:
        self._sentry = sentry
        self._numbers: dict[AbsPath, int] = {}
        self._folders: dict[int, AbsPath] = {}
        self.without: dict[AbsPath, None] = {}
        """The folders that cannot be watched, the one that was tried longest ago first."""
        self.lost: list[AbsPath] = []
        """Folders that have lost their watch."""

    def __len__(self) -> int:
        return len(self._folders)

    def __contains__(self, folder: AbsPath) -> bool:
        return folder in self._numbers

    def folder_of(self, watch: int) -> AbsPath | None:
        return self._folders.get(watch)

    def watch(self, folder: AbsPath, *, follow: bool) -> None:
        """Watch what has that name now, whatever had it before."""
        before, number = self._numbers.get(folder), self._sentry.watch(folder, follow=follow)
        self.without.pop(folder, None)
        if number is None:
            self.without[folder] = None
        if number == before:
            return
        if before is not None:
            self._release(folder)
        if number is not None:
            owner = self._folders.get(number)
            if owner is not None:
                del self._numbers[owner]
                self.lost.append(owner)
            self._numbers[folder], self._folders[number] = number, folder

    def unwatch(self, folder: AbsPath) -> None:
        self.without.pop(folder, None)
        if folder in self._numbers:
            self._release(folder)

    def ended(self, watch: int) -> None:
        """The system has ended a watch: its folder is gone, or its changes are not reported any more."""
        folder = self._folders.pop(watch, None)
        if folder is not None:
            del self._numbers[folder]
            self.lost.append(folder)

    def take_lost(self) -> tuple[AbsPath, ...]:
        """The folders that lost their watch since the last call, and have none yet."""
        lost, self.lost = self.lost, []
        return tuple(folder for folder in lost if folder not in self._numbers)

    def _release(self, folder: AbsPath) -> None:
        number = self._numbers.pop(folder)
        del self._folders[number]
        self._sentry.unwatch(number)
