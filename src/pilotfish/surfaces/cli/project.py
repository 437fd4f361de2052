"""The servers of this project: those for its languages, those that it configures, and those that run.

The catalogue has more than a hundred others, which a person who looks at one project does not ask about.
"""

import os
from collections.abc import Collection, Mapping
from itertools import chain

from msgspec.structs import replace

from pilotfish.api.status import ServerRow, Snapshot
from pilotfish.config.load import Loaded, load
from pilotfish.config.places import user_places
from pilotfish.ipc.client import Terms
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import boundary_of
from pilotfish.service.status.snapshot import PoolMoment, snapshot_of, state_of, totals_of
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Workspaces
from pilotfish.surfaces.cli.workspace import ask_daemon, asking_host, config_request, root_of
from pilotfish.surfaces.doctor.servers import count_languages, readiness, servers_of
from pilotfish.system.clock import WallClock

AT_REST = ("idle", "unavailable")
"""States of a server that nobody has used or configured."""


def workspace_of(root: str, environment: Mapping[str, str] = os.environ) -> tuple[Workspace, Loaded]:
    """The workspace as this program sees it, without a daemon. Raises `Refused` when the root is not a folder."""
    request = config_request(root, environment)
    loaded = load(request)
    return Workspace(loaded, boundary_of(root, root), request.places, environment), loaded


def snapshot(root: str | None, terms: Terms | None = None) -> tuple[Snapshot, bool]:
    """Every server of the workspace, and whether a daemon runs. Without one, what the configuration says."""
    if (found := ask_daemon(root, "status", Snapshot, terms)) is not None:
        return found, True
    top = AbsPath(os.path.abspath(root_of(root)))
    workspace = Workspaces(user_places(os.environ), os.environ).of(ClientSession("status", top, top, asking_host()))
    return snapshot_of(workspace, PoolMoment(WallClock().wall())), False


def servers_in_use(root: str) -> frozenset[str]:
    """The servers of the languages found here: all that are installed, and what is missing for code."""
    workspace, _ = workspace_of(root)
    choices = [workspace.servers_for(path) for path in count_languages(workspace).examples.values()]
    missing = (choice.missing for choice in choices if choice.missing is not None)
    return frozenset(one.spec.id for one in chain(missing, *((*one.servers, *one.withheld) for one in choices)))


def waiting_servers(root: str) -> tuple[str, ...]:
    """The servers of this project that are here and may not run before it is trusted, each with its program."""
    workspace, _ = workspace_of(root)
    examples = count_languages(workspace).examples.values()
    reports = (readiness(workspace, one) for path in examples for one in servers_of(workspace, path))
    found = (f"{one.id} ({one.path})" if one.path else one.id for one in reports if one.state == "withheld")
    return tuple(dict.fromkeys(found))


def only_project(snapshot: Snapshot, used: Collection[str]) -> Snapshot:
    """The rows of the servers in `used`, and of those that run, are in trouble, or are configured."""

    def is_shown(row: ServerRow) -> bool:
        return row.server_id in used or row.source != "builtin" or state_of(row) not in AT_REST

    rows = tuple(row for row in snapshot.rows if is_shown(row))
    return replace(snapshot, rows=rows, totals=totals_of(rows))
