"""Which files of a host are wired in one scope, and whether what they start works."""

from dataclasses import dataclass

from msgspec.structs import replace

from pilotfish.errors import Failure
from pilotfish.hosts.shared.changes import read_state
from pilotfish.hosts.shared.host_spec import HostSpec, SetupScope, Where, WiredFile
from pilotfish.hosts.shared.installed import is_installed
from pilotfish.hosts.shared.probe import try_daemon, try_hook, try_lint, try_lsp, try_mcp_server
from pilotfish.hosts.shared.receipts import Receipts
from pilotfish.protocol.wire import Json

WORDS = {
    "wired": "wired",
    "outdated": "wired by another installation or version: run setup again, or pilotfish setup --repair",
    "missing": "not wired",
    "unused": "not wired: a file of this name exists and is not ours",
}


@dataclass(frozen=True, slots=True)
class HostStatus:
    name: str
    title: str
    scope: SetupScope
    files: dict[str, str]
    """By path: its state in words, or why it cannot be read."""
    trouble: tuple[str, ...]
    installed: bool
    unseen: str = ""

    def lines(self) -> list[str]:
        lines = [f"{self.title} ({self.scope}): {self._verdict}"]
        lines += [f"  {path}: {state}" for path, state in self.files.items()]
        lines += [f"  {trouble}" for trouble in self.trouble]
        return [*lines, *([f"  {self.unseen}"] if self.unseen else [])]

    def as_json(self) -> Json:
        return {
            "host": self.name,
            "scope": self.scope,
            "works": self.installed and not self.trouble,
            "installed": self.installed,
            "files": dict(self.files),
            "trouble": list(self.trouble),
        }

    @property
    def _verdict(self) -> str:
        if not self.installed:
            return "not installed"
        return "does not work" if self.trouble else "works"


def check_host(host: HostSpec, where: Where, receipts: Receipts) -> HostStatus | None:
    """Its status; None when none of its files is wired."""
    where, files = _way_in_use(host, where, receipts)
    if not any(said in {WORDS["wired"], WORDS["outdated"]} for said in files.values()):
        return None
    trouble = [f"{path}: {said}" for path, said in files.items() if said not in {WORDS["wired"], WORDS["unused"]}]
    trouble += _try(host, where)
    installed = is_installed(host, where, receipts)
    return HostStatus(host.name, host.title, where.scope, files, tuple(trouble), installed, host.unseen)


def wired_otherwise(host: HostSpec, where: Where, receipts: Receipts) -> Where | None:
    """Where and how a host is wired by another installation or version; None when it is not."""
    used, files = _way_in_use(host, where, receipts)
    return used if WORDS["outdated"] in files.values() else None


def _way_in_use(host: HostSpec, where: Where, receipts: Receipts) -> tuple[Where, dict[str, str]]:
    """Of the ways in which the host may call us the one that is in use, and the state of each of its files."""
    ways = [replace(where, way=way) for way in host.ways]
    said = [(way, {file.path: _read_state(file, receipts) for file in host.files(way)}) for way in ways]
    states = [(list(files.values()), (way, files)) for way, files in said]
    return max(states, key=lambda one: (one[0].count(WORDS["wired"]), one[0].count(WORDS["outdated"])))[1]


def _read_state(file: WiredFile, receipts: Receipts) -> str:
    try:
        return WORDS[read_state(file, receipts)]
    except Failure as failure:
        return failure.message


def _try(host: HostSpec, where: Where) -> list[str]:
    """What does not work of what the host would start."""
    troubles: dict[str, str | None] = {}
    for probe in host.probes:
        match "lsp" if probe == "hook" and where.way == "lsp" else probe:
            case "hook":
                troubles["hook"] = try_hook(host, where.programs)
            case "lint":
                troubles["linter"] = try_lint(where.programs)
            case "mcp":
                troubles["MCP server"] = try_mcp_server(where.programs)
            case "lsp":
                troubles["language server"] = try_lsp(host.name, where.programs)
            case "daemon":
                troubles["daemon"] = try_daemon(where.programs)
    return [f"the {what} fails: {why}" for what, why in troubles.items() if why]
