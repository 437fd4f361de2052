"""What a server is told of changes on disk without having asked: its own kind of files, and what marks its root. Pure.

Servers that register nothing either watch files themselves, and are told twice, or expect a client that just tells, as
clients did before there was registration. Either way what they said before may not hold any more.
"""

from functools import lru_cache

from pilotfish.protocol.watching import WatchRegistration, watch_registrations
from pilotfish.servers.spec import ServerSpec


def own_files(spec: ServerSpec) -> tuple[WatchRegistration, ...]:
    """The files that a server serves, and those by which its root is found."""
    rule = spec.files
    return _registrations((*(f"*{extension}" for extension in rule.extensions), *rule.names, *spec.root.markers))


@lru_cache(maxsize=256)  # One for each server that runs, asked for at each start.
def _registrations(names: tuple[str, ...]) -> tuple[WatchRegistration, ...]:
    return tuple(watch_registrations({"watchers": [{"globPattern": f"**/{name}"} for name in names]}))
