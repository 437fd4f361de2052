"""Where the panel gets what it shows, and carries out what it was told. Blocking: called in threads."""

import msgspec
from msgspec import Struct

from pilotfish.api.status import InstanceDetails, Restarted, Snapshot
from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.client import Terms
from pilotfish.surfaces.cli.running_daemon import NO_DAEMON, running_daemon, snapshot
from pilotfish.surfaces.cli.terminal.quantities import latency


class DaemonSource(Struct, frozen=True):
    """Each call is a connection of its own: a panel that is left open keeps no session at the daemon."""

    root: str | None = None
    terms: Terms | None = None

    def snapshot(self) -> tuple[Snapshot, bool]:
        """All servers, and whether a daemon runs. Raises `Failure`."""
        return snapshot(self.root, self.terms)

    def details(self, server: str) -> tuple[InstanceDetails, ...]:
        """None without a daemon: then nothing runs that one could look at."""
        link = running_daemon(self.root, self.terms)
        if link is None:
            return ()
        with link:
            return msgspec.convert(link.request("details", {"server": server}), tuple[InstanceDetails, ...])

    def restart(self, server: str) -> str:
        """What became of it."""
        outcomes = msgspec.convert(self._asked("restart", server), tuple[Restarted, ...])
        failed = next((one.error for one in outcomes if one.error), None)
        took = max((one.duration_ms for one in outcomes), default=0)
        return f"{server}: {failed}" if failed else f"{server} restarted in {latency(took)}"

    def stop(self, server: str) -> str:
        stopped = self._asked("halt", server)
        return f"{server} stopped; it comes back on use" if stopped else f"{server} was not running"

    def _asked(self, method: str, server: str) -> object:
        link = running_daemon(self.root, self.terms)
        if link is None:
            raise Unavailable(Code.NOT_FOUND, NO_DAEMON)
        with link:
            return link.request(method, {"server": server})
