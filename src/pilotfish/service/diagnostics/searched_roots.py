"""Where files are looked for that an edit may have broken."""

from collections.abc import Iterable

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import Role
from pilotfish.service.workspace import Workspace


class SearchedRoot(Struct, frozen=True):
    """The root of servers that judge an edited file, and their kinds of files."""

    root: AbsPath
    extensions: frozenset[str]
    servers: tuple[Candidate, ...]


def searched_roots(workspace: Workspace, paths: Iterable[AbsPath]) -> list[SearchedRoot]:
    """The roots of the servers that understand the language. A linter of the catalogue judges one file at a time."""
    found: dict[AbsPath, dict[str, Candidate]] = {}
    for path in paths:
        for candidate in workspace.servers_for(path).servers:
            spec = candidate.spec
            if (spec.rank.role is Role.MAIN or spec.rank.named) and spec.serves_code:
                found.setdefault(candidate.root, {})[spec.id] = candidate
    return [_searched(workspace, root, tuple(servers.values())) for root, servers in found.items()]


def _searched(workspace: Workspace, root: AbsPath, servers: tuple[Candidate, ...]) -> SearchedRoot:
    extensions = {extension for candidate in servers for extension in candidate.spec.extensions}
    for spec in workspace.specs.values():
        if not extensions.isdisjoint(spec.reads) and not spec.disabled and workspace.shortcoming(spec.id) is None:
            extensions |= set(spec.files.extensions)
    return SearchedRoot(root, frozenset(extensions), servers)
