"""What is wired of one host in one place, and whether it works."""

from dataclasses import dataclass, replace

from pilotfish.errors import Failure
from pilotfish.hosts.shared.changes import state_of
from pilotfish.hosts.shared.host_row import HostRow, Scope, Way, Where, Wiring
from pilotfish.hosts.shared.probe import daemon_trouble, hook_trouble, lint_trouble, mcp_trouble
from pilotfish.hosts.shared.receipts import Receipts
from pilotfish.protocol.wire import Json

WORDS = {
    "wired": "wired",
    "outdated": "wired by another installation or version: run setup again",
    "missing": "not wired",
    "unused": "not wired: another file of that name is there",
}


@dataclass(frozen=True, slots=True)
class HostStatus:
    name: str
    title: str
    scope: Scope
    files: dict[str, str]
    """By path: its state in words, or why that cannot be told."""
    trouble: tuple[str, ...]
    unseen: str = ""

    def lines(self) -> list[str]:
        works = "works" if not self.trouble else "does not work"
        lines = [f"{self.title} ({self.scope}): {works}"]
        lines += [f"  {path}: {state}" for path, state in self.files.items()]
        lines += [f"  {trouble}" for trouble in self.trouble]
        return [*lines, *([f"  {self.unseen}"] if self.unseen else [])]

    def as_json(self) -> Json:
        return {
            "host": self.name,
            "scope": self.scope,
            "works": not self.trouble,
            "files": dict(self.files),
            "trouble": list(self.trouble),
        }


def host_status(row: HostRow, where: Where, receipts: Receipts) -> HostStatus | None:
    """None when nothing of it is wired there."""
    files = _files(row, where, receipts)
    if not any(said in {WORDS["wired"], WORDS["outdated"]} for said in files.values()):
        return None
    trouble = [f"{path}: {said}" for path, said in files.items() if said not in {WORDS["wired"], WORDS["unused"]}]
    return HostStatus(row.name, row.title, where.scope, files, (*trouble, *_probed(row, where)), row.unseen)


def _files(row: HostRow, where: Where, receipts: Receipts) -> dict[str, str]:
    """The state of each file; of the ways in which the host may call us, the one that is in use."""
    ways: tuple[Way, ...] = ("command", "mcp")
    said = [{wiring.path: _said(wiring, receipts) for wiring in row.wirings(replace(where, way=way))} for way in ways]
    return max(said, key=lambda files: list(files.values()).count(WORDS["wired"]))


def _said(wiring: Wiring, receipts: Receipts) -> str:
    try:
        return WORDS[state_of(wiring, receipts)]
    except Failure as failure:
        return failure.message


def _probed(row: HostRow, where: Where) -> list[str]:
    """What does not work of what the host would start."""
    troubles: dict[str, str | None] = {}
    for probe in row.probes:
        match probe:
            case "hook":
                troubles["hook"] = hook_trouble(row.name, where.programs)
            case "lint":
                troubles["linter"] = lint_trouble(where.programs)
            case "mcp":
                troubles["MCP server"] = mcp_trouble(where.programs)
            case "daemon":
                troubles["daemon"] = daemon_trouble(where.programs)
    return [f"the {what} fails: {why}" for what, why in troubles.items() if why]
