"""The doctor's look at hosts: which coding agents are here, and whether their files call us.

Files are read, and nothing is started; `pilotfish setup --status` sends a real event through each of them.
"""

import os
import shutil
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pilotfish.config.places import user_places
from pilotfish.errors import Failure
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared.changes import read_state
from pilotfish.hosts.shared.host_spec import WAYS, HostSpec, Where
from pilotfish.hosts.shared.programs import installed_programs
from pilotfish.hosts.shared.receipts import Receipts
from pilotfish.surfaces.doctor.report import SetupFinding


def wiring(root: str, environment: Mapping[str, str]) -> Iterator[SetupFinding]:
    """One finding for each host that is on this machine, or wired."""
    places = user_places(environment)
    where = Where("global", places.home, places.config, root, environment, installed_programs(environment))
    receipts = Receipts(os.path.join(places.state, "setup"))
    found = [finding for row in load_hosts().values() if (finding := _host(row, where, receipts)) is not None]
    yield from found
    if not found:
        yield SetupFinding("hosts", "note", "no coding agent was found on this machine")


def _host(row: HostSpec, where: Where, receipts: Receipts) -> SetupFinding | None:
    step = f"pilotfish setup {row.name}"
    try:
        states = {scope: _states(row, replace(where, scope=scope), receipts) for scope in row.scopes}
    except Failure as failure:
        return SetupFinding(row.title, "note", failure.message) if _is_here(row, where) else None
    wired = [scope for scope, found in states.items() if "wired" in found]
    outdated = [scope for scope, found in states.items() if "outdated" in found]
    if outdated:
        again = f"{step} --project" if outdated == ["project"] else step
        return SetupFinding(row.title, "todo", "wired by another installation or version", (again,))
    if any("missing" in states[scope] for scope in wired):
        return SetupFinding(row.title, "todo", "only some of its files are wired", (step,))
    if wired:
        return SetupFinding(row.title, "ok", f"wired ({', '.join(wired)})")
    if not _is_here(row, where):
        return None
    return SetupFinding(row.title, "note", "is here, and does not call pilotfish", (step,))


def _states(row: HostSpec, where: Where, receipts: Receipts) -> list[str]:
    """The state of each file; of the ways in which the host may call us, the one that is in use."""
    said = [[read_state(file, receipts) for file in row.files(replace(where, way=way))] for way in WAYS]
    return list(max(said, key=lambda states: states.count("wired")))


def _is_here(row: HostSpec, where: Where) -> bool:
    path = where.environment.get("PATH", "")
    if any(shutil.which(name, path=path) for name in row.programs):
        return True
    return any(os.path.exists(os.path.join(where.home, folder)) for folder in row.folders)
