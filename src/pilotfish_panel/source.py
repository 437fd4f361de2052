"""Reads what the panel shows, and restarts and stops servers. Blocking: called in threads."""

import msgspec
from msgspec import Struct

from pilotfish.api.status import Activity, InstanceDetails, Restarted, Snapshot
from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.client import Terms
from pilotfish.surfaces.cli.project import only_project
from pilotfish.surfaces.cli.running_daemon import NOT_RUNNING, running_daemon, snapshot
from pilotfish.surfaces.cli.terminal.table import latency


class DaemonSource(Struct, frozen=True):
    """Each call opens its own connection: an open panel keeps no session at the daemon."""

    root: str | None = None
    terms: Terms | None = None
    used: frozenset[str] | None = None
    """The servers of this project's languages; None for every server of the catalogue."""

    def snapshot(self) -> tuple[Snapshot, bool]:
        """The servers, and whether a daemon runs. Raises `Failure`."""
        found, daemon = snapshot(self.root, self.terms)
        return (found if self.used is None else only_project(found, self.used)), daemon

    def details(self, server: str) -> tuple[InstanceDetails, ...]:
        """Empty without a daemon."""
        link = running_daemon(self.root, self.terms)
        if link is None:
            return ()
        with link:
            return msgspec.convert(link.request("details", {"server": server}), tuple[InstanceDetails, ...])

    def activity(self) -> Activity:
        """Empty without a daemon."""
        link = running_daemon(self.root, self.terms)
        if link is None:
            return Activity()
        with link:
            return msgspec.convert(link.request("activity", {}), Activity)

    def log(self, server: str) -> tuple[str, ...]:
        """Its standard error, then its log messages, for each root."""
        return tuple(line for one in self.details(server) for line in (*one.stderr, *one.messages))

    def restart(self, server: str) -> str:
        """Restart a server, and return a line about the outcome."""
        outcomes = msgspec.convert(self._request("restart", server), tuple[Restarted, ...])
        failed = next((one.error for one in outcomes if one.error), None)
        took = max((one.duration_ms for one in outcomes), default=0)
        return f"{server}: {failed}" if failed else f"{server} restarted in {latency(took)}"

    def stop(self, server: str) -> str:
        stopped = self._request("halt", server)
        return f"{server} stopped; it starts again when needed" if stopped else f"{server} was not running"

    def _request(self, method: str, server: str) -> object:
        link = running_daemon(self.root, self.terms)
        if link is None:
            raise Unavailable(Code.NOT_FOUND, NOT_RUNNING)
        with link:
            return link.request(method, {"server": server})
