"""Trust that is taken back while servers run: they are stopped at once, and not when somebody asks next (F81).

What a person may change is in two folders: the user's own configuration, and the records of what was approved.
"""

import os
from collections.abc import Callable

from pilotfish.config.places import Places
from pilotfish.model import AbsPath
from pilotfish.system.ports import Interest, OpenWatcher


async def heed_revocations(watch: OpenWatcher, places: Places, look_again: Callable[[], None]) -> None:
    """Call `look_again` whenever one of the two folders may have changed, for ever."""
    # The records' own folder is ours to make. That of the configuration is not: its nearest parent must do until then.
    os.makedirs(places.pins, mode=0o700, exist_ok=True)
    async with watch() as watcher:
        while True:
            await watcher.cover(Interest((), folders=frozenset({places.pins, _there(places.global_file)})))
            await watcher.drain()
            look_again()
            await watcher.stirred()


def _there(file: AbsPath) -> AbsPath:
    """The folder that a file is in, or the nearest one above it that exists."""
    folder = os.path.dirname(file)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return AbsPath(folder)
