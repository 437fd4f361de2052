"""The user's settings for the daemon as a whole, and the watch on files that give or revoke trust."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Struct

from pilotfish.config.host_trust import deciding_files
from pilotfish.config.places import Places
from pilotfish.config.problems import validated
from pilotfish.config.schema import PoolSettings
from pilotfish.config.sheets import read_user_sheet
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Limits
from pilotfish.servers.catalogue import canonical_id
from pilotfish.system.ownership import make_private_folders
from pilotfish.system.ports import Interest, OpenWatcher
from pilotfish.system.vitals import machine_memory_mib

IDLE_VARIABLE = "PILOTFISH_IDLE_SECONDS"
"""Overrides how long the daemon stays without client sessions; `pool.idleMinutes` says it otherwise."""

SHORTEST_IDLE = 1.0
"""Seconds: the client that started the daemon is about to call it."""


class Settings(Struct, frozen=True):
    limits: Limits
    idle_seconds: float


def settings_of(places: Places, environment: Mapping[str, str]) -> Settings:
    """Read once, when the daemon starts. No error in a file keeps it from starting."""
    # `pool` counts in this file alone, so no workspace is opened: the home would be taken for one that holds the file.
    sheet = read_user_sheet(places, None, canonical_id)
    pool = PoolSettings() if sheet is None else validated(sheet.value).pool
    idle_seconds = pool.idle_minutes * 60.0
    limits = Limits(
        idle_seconds=idle_seconds,
        unused_seconds=idle_seconds,
        memory_mib_per_server=pool.memory_mib_per_server,
        memory_mib=machine_memory_mib() / 2 if pool.memory_mib == "half" else pool.memory_mib,
    )
    with suppress(ValueError):
        idle_seconds = max(SHORTEST_IDLE, float(environment.get(IDLE_VARIABLE, "")))
    return Settings(limits, idle_seconds)


async def watch_trust(watch: OpenWatcher, places: Places, reload: Callable[[], None]) -> None:
    """Call `reload` when the user's configuration or a record of trust, ours or a host's, may have changed, for ever.

    Servers of a project that is no longer trusted are then stopped at once, not at the next request (F81).
    """
    # The folder of the records is ours to make. That of the configuration is not: until it exists, watch its parent.
    make_private_folders(places.pins)
    async with watch() as watcher:
        while True:
            deciding = (places.global_file, *filter(os.path.exists, deciding_files(places)))
            await watcher.cover(Interest((), folders=frozenset({places.pins, *map(_there, deciding)})))
            await watcher.drain()
            reload()
            await watcher.wait_for_changes()


def _there(file: AbsPath) -> AbsPath:
    """The folder that a file is in, or the nearest one above it that exists."""
    folder = os.path.dirname(file)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return AbsPath(folder)
