"""Where files are looked for that an edit may have broken."""

from collections.abc import Iterable

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import Role
from pilotfish.service.diagnostics.component_imports import component_servers
from pilotfish.service.workspace import Workspace


class SearchedRoot(Struct, frozen=True):
    """The root of servers that judge an edited file, and their kinds of files."""

    root: AbsPath
    extensions: frozenset[str]
    servers: tuple[Candidate, ...]

    @property
    def foreign(self) -> tuple[str, ...]:
        """The kinds of files that import theirs, and that only other servers judge."""
        return tuple(self.extensions.difference(*(one.spec.extensions for one in self.servers)))


def searched_roots(workspace: Workspace, paths: Iterable[AbsPath]) -> list[SearchedRoot]:
    """The roots of the servers that understand the language, or else join it to another, as Angular does templates.

    A linter of the catalogue judges one file at a time.
    """
    found: dict[AbsPath, dict[str, Candidate]] = {}
    for path in paths:
        servers = workspace.servers_for(path).servers
        for candidate in list(filter(_understands, servers)) or [one for one in servers if one.spec.reads]:
            found.setdefault(candidate.root, {})[candidate.spec.id] = candidate
    return [_searched(workspace, root, tuple(servers.values())) for root, servers in found.items()]


def _understands(candidate: Candidate) -> bool:
    spec = candidate.spec
    return (spec.rank.role is Role.MAIN or spec.rank.named) and spec.serves_code


def _searched(workspace: Workspace, root: AbsPath, servers: tuple[Candidate, ...]) -> SearchedRoot:
    extensions = {extension for candidate in servers for extension in candidate.spec.extensions}
    for spec in component_servers(workspace, extensions):
        if workspace.shortcoming(spec.id) is None:
            extensions |= set(spec.files.extensions)
    return SearchedRoot(root, frozenset(extensions), servers)
