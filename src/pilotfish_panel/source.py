"""Reads what the panel shows, and restarts and stops servers. Blocking: called in threads."""

from typing import TypeVar

from pilotfish.api.status import Activity, InstanceDetails, Restarted, Snapshot
from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.client import Terms
from pilotfish.surfaces.cli.project import only_project, snapshot
from pilotfish.surfaces.cli.terminal.table import latency
from pilotfish.surfaces.cli.workspace import NOT_RUNNING, ask_daemon

T = TypeVar("T")


class DaemonSource:
    """Each call opens its own connection: an open panel keeps no session at the daemon."""

    def __init__(self, root: str | None = None, terms: Terms | None = None, used: frozenset[str] | None = None) -> None:
        """`used`: the servers of this project's languages; None for every server of the catalogue."""
        self.root = root
        self.terms = terms
        self.used = used

    def snapshot(self) -> tuple[Snapshot, bool]:
        """The servers, and whether a daemon runs. Raises `Failure`."""
        found, daemon = snapshot(self.root, self.terms)
        return (found if self.used is None else only_project(found, self.used)), daemon

    def details(self, server: str) -> tuple[InstanceDetails, ...]:
        """Empty without a daemon."""
        return ask_daemon(self.root, "details", tuple[InstanceDetails, ...], self.terms, server=server) or ()

    def activity(self) -> Activity:
        """Empty without a daemon."""
        return ask_daemon(self.root, "activity", Activity, self.terms) or Activity()

    def log(self, server: str) -> tuple[str, ...]:
        """Its standard error, then its log messages, for each root."""
        return tuple(line for one in self.details(server) for line in (*one.stderr, *one.messages))

    def restart(self, server: str) -> str:
        """Restart a server, and return a line about the outcome."""
        outcomes = self._command("restart", tuple[Restarted, ...], server)
        failed = next((one.error for one in outcomes if one.error), None)
        took = max((one.duration_ms for one in outcomes), default=0)
        return f"{server}: {failed}" if failed else f"{server} restarted in {latency(took)}"

    def stop(self, server: str) -> str:
        stopped = self._command("halt", list[str], server)
        return f"{server} stopped; it starts again when needed" if stopped else f"{server} was not running"

    def _command(self, method: str, shape: type[T], server: str) -> T:
        answer = ask_daemon(self.root, method, shape, self.terms, server=server)
        if answer is None:
            raise Unavailable(Code.NOT_FOUND, NOT_RUNNING)
        return answer
