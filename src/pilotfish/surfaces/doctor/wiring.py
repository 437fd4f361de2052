"""What the doctor says about hosts: which are installed, and whether their files are wired.

It reads files and starts nothing; `pilotfish setup --status` sends a real event through each host's hook.
"""

import os
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pilotfish.config.places import user_places
from pilotfish.errors import Failure
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared.changes import read_state
from pilotfish.hosts.shared.host_spec import HostSpec, Where
from pilotfish.hosts.shared.installed import is_installed
from pilotfish.hosts.shared.programs import installed_programs
from pilotfish.hosts.shared.receipts import Receipts
from pilotfish.surfaces.doctor.report import SetupFinding


def wiring(root: str, environment: Mapping[str, str]) -> Iterator[SetupFinding]:
    """One finding for each host that is on this machine, or wired."""
    places = user_places(environment)
    where = Where("global", places.home, places.config, root, environment, installed_programs(environment))
    receipts = Receipts(os.path.join(places.state, "setup"))
    found = [finding for host in load_hosts().values() if (finding := _host(host, where, receipts)) is not None]
    yield from found
    if not found:
        yield SetupFinding("hosts", "note", "no coding agent was found on this machine")


def _host(host: HostSpec, where: Where, receipts: Receipts) -> SetupFinding | None:
    step = f"pilotfish setup {host.name}"
    try:
        states = {scope: _states(host, replace(where, scope=scope), receipts) for scope in host.scopes}
    except Failure as failure:
        return SetupFinding(host.title, "note", failure.message) if is_installed(host, where, receipts) else None
    wired = [scope for scope, found in states.items() if "wired" in found]
    outdated = [scope for scope, found in states.items() if "outdated" in found]
    if outdated:
        again = f"{step} --project" if outdated == ["project"] else step
        return SetupFinding(host.title, "todo", "wired by another installation or version", (again,))
    if any("missing" in states[scope] for scope in wired):
        return SetupFinding(host.title, "todo", "only some of its files are wired", (step,))
    if wired and not is_installed(host, where, receipts):
        return SetupFinding(host.title, "note", "wired, and not installed")
    if wired:
        return SetupFinding(host.title, "ok", f"wired ({', '.join(wired)})")
    if not is_installed(host, where, receipts):
        return None
    return SetupFinding(host.title, "note", "installed and not wired", (step,))


def _states(host: HostSpec, where: Where, receipts: Receipts) -> list[str]:
    """The state of each file; of the ways in which the host may call us, the one that is in use."""
    said = [[read_state(file, receipts) for file in host.files(replace(where, way=way))] for way in host.ways]
    return list(max(said, key=lambda states: states.count("wired")))
