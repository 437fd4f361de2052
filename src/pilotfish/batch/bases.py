"""The copies of bases from which those of the judges are made: one for each base that patches have."""

import os

import anyio
import anyio.to_thread

from pilotfish.batch.copies import make_copy
from pilotfish.batch.judge import JudgeSettings
from pilotfish.model import AbsPath


class Bases:
    """In `folder`, which belongs to a batch."""

    def __init__(self, settings: JudgeSettings, folder: AbsPath) -> None:
        self._settings = settings
        self._folder = folder
        self._made: dict[str | None, AbsPath] = {}
        self._making = anyio.Lock()

    async def copy_of(self, base: str | None) -> AbsPath:
        """Raises `Refused` where there is no such base, `Unavailable` where there is no room."""
        async with self._making:
            if base not in self._made:
                copy = AbsPath(os.path.join(self._folder, str(len(self._made))))
                await anyio.to_thread.run_sync(self._make, copy, base)
                self._made[base] = copy
            return self._made[base]

    def _make(self, copy: AbsPath, base: str | None) -> None:
        os.makedirs(copy, exist_ok=True)
        make_copy(self._settings.root, copy, base, self._settings.git)
