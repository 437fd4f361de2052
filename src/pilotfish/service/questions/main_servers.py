"""The servers for a question that names no file: those of the files that mention the name, or of most files there are.

Those that run already are asked in any case.
"""

import os
from collections import Counter
from collections.abc import Iterable

from pilotfish.errors import Code, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.rows import ROWS, OperationRow
from pilotfish.pool.plan import Running
from pilotfish.pool.pool import Pool
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import Role, ServerSpec
from pilotfish.service.questions.completeness import ProjectFiles
from pilotfish.service.workspace import Workspace

MAX_KINDS = 3
"""Kinds of files whose servers are started."""

MAX_ROOTS = 8
"""Roots of one kind for which a server is started: the packages of a repository."""

MAX_LOOKED_AT = 200
"""Files of one kind whose root is looked for."""


class MainServers:
    def __init__(self, pool: Pool, files: ProjectFiles) -> None:
        self._pool = pool
        self._files = files

    async def of(self, workspace: Workspace, name: str | None) -> tuple[Candidate, ...]:
        """Raises `Unavailable` when no file of the workspace has a server."""
        running = self.running(workspace)
        files = await self._mentioning(workspace, name)
        found = {(one.spec.id, one.root): one for one in chosen(files, workspace)}
        found |= {(one.spec.id, one.root): one for one in running if (one.spec.id, one.root) not in found}
        if not found:
            raise _why_none(files, workspace)
        return tuple(found.values())

    async def _mentioning(self, workspace: Workspace, name: str | None) -> frozenset[AbsPath]:
        """The files that mention a name; every source file where none does, or nothing is named."""
        named = None if name is None else await self._files.mentioning(workspace, workspace.root, name, ("",))
        served = frozenset(path for path in named or () if is_code(path, workspace))
        return served or await self._files.sources(workspace) or frozenset()

    async def offered(self, workspace: Workspace) -> tuple[OperationRow, ...]:
        """The operations that some main server of this workspace may answer; all where there is no server yet."""
        servers = chosen(await self._files.sources(workspace) or (), workspace)
        mains = [one.spec for one in servers if one.spec.rank.role is Role.MAIN]
        return tuple(row for row in ROWS.values() if not mains or any(_may_offer(spec, row) for spec in mains))

    def running(self, workspace: Workspace) -> tuple[Candidate, ...]:
        """The servers that run for this workspace."""
        return tuple(
            Candidate(workspace.specs[key.server], key.root, "")
            for key, entry in self._pool.entries().items()
            if isinstance(entry.slot, Running) and key.server in workspace.specs and workspace.holds(key.root)
        )


def chosen(files: Iterable[AbsPath], workspace: Workspace) -> tuple[Candidate, ...]:
    """The servers of the most frequent kinds of files that have one, most frequent first."""
    kinds: dict[str, list[AbsPath]] = {}
    for path in sorted(files):
        if kind := os.path.splitext(path)[1]:
            kinds.setdefault(kind, []).append(path)
    counts = Counter({kind: len(paths) for kind, paths in kinds.items()})
    found: dict[tuple[str, AbsPath], Candidate] = {}
    taken = 0
    for kind, _ in counts.most_common():
        servers = _servers_of(kinds[kind][:MAX_LOOKED_AT], workspace)
        taken += bool(servers)
        found |= {(one.spec.id, one.root): one for one in servers}
        if taken == MAX_KINDS:
            break
    return tuple(found.values())


def _servers_of(paths: Iterable[AbsPath], workspace: Workspace) -> list[Candidate]:
    found: dict[tuple[str, AbsPath], Candidate] = {}
    for path in paths:
        for one in workspace.servers_for(path).servers:
            if one.spec.serves_code and len(found) < MAX_ROOTS:
                found.setdefault((one.spec.id, one.root), one)
    return list(found.values())


def _why_none(files: Iterable[AbsPath], workspace: Workspace) -> Unavailable:
    """What the main language of the files lacks, and how to get it."""
    missing = Counter[str]()
    reasons: dict[str, Unavailable] = {}
    for path in sorted(files)[:MAX_LOOKED_AT]:
        if (one := workspace.servers_for(path).missing) is not None:
            missing[one.spec.id] += 1
            if one.spec.id not in reasons:
                reasons[one.spec.id] = workspace.why_unavailable(one)
    if missing:
        return reasons[min(missing, key=lambda server: (workspace.specs[server].auxiliary, -missing[server]))]
    message = "No language server is installed for the files of this workspace."
    return Unavailable(Code.SERVER_MISSING, message, hint="pilotfish servers lists what could be installed.")


def _may_offer(spec: ServerSpec, row: OperationRow) -> bool:
    return row.request is None or (row.request.prepare or row.request.method) not in spec.lacks


def is_code(path: AbsPath, workspace: Workspace) -> bool:
    return any(one.spec.serves_code for one in workspace.servers_for(path).servers)
