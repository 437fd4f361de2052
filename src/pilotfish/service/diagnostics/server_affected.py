"""Which files an edit may have broken by the account of the server that has loaded the project.

Of the files in its programs the server's answer is exact: it compares what they declare before and after the edit. What
other files there are that mention what changed, `affected` has found, and the server says which of those it has not
loaded. Where there is no answer in time, those found by name are checked.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.protocol.codec import Malformed
from pilotfish.service.diagnostics.affected import Affected, EditedText
from pilotfish.service.diagnostics.on_demand import TRIES, ask_about
from pilotfish.service.diagnostics.searched_roots import SearchedRoot
from pilotfish.service.use_server import Access
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time

WALK_MS = 1_500
"""Processor time for comparing declarations. What was not compared by then counts as changed, with all importers: then
many times as much is checked. Most of it is not lost: a check of these files needs the same types."""

DECLARATIONS_MS = 250
"""Of it, for the declarations of one file. Those of types that are inferred take 13 s in a Vue project, and nobody is
answered meanwhile. Such a file is compared by its source from then on: more files are checked, never fewer."""


class ServerAccount(Struct, frozen=True):
    """The files of the server's programs that may be affected, and the candidates that no program has."""

    files: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    """Of each file, 0 for the likeliest to be broken."""
    unknown: tuple[str, ...] = ()
    projects: Mapping[str, str] = field(default_factory=dict[str, str])
    """Which project judges a file that is not open, where that is certain."""

    def ordered(self, cost: Callable[[str], float]) -> "ServerAccount":
        """The likeliest to be broken first, and of these the cheapest."""
        ranks = dict(zip(self.files, self.ranks, strict=False))
        return replace(self, files=tuple(sorted(self.files, key=lambda path: (ranks.get(path, 0), cost(path)))))

    def instead_of(self, by_name: Affected) -> Affected:
        """These first, then those that only names tell of."""
        unknown = frozenset(self.unknown)
        others = (path for path in by_name.files if path in unknown)
        return Affected((*map(AbsPath, self.files), *others), by_name.complete or not unknown)


class ServerAffected:
    def __init__(self, access: Access) -> None:
        self._access = access

    async def of_edits(
        self,
        visit: Visit,
        target: SearchedRoot,
        edits: Sequence[EditedText],
        candidates: Sequence[AbsPath],
        deadline: float,
    ) -> ServerAccount | None:
        """What the server of a root says that edits may have broken; None where it cannot say so in time."""
        if not answers_affected(target):
            return None
        on_demand = target.servers[0].spec.freshness.on_demand
        assert on_demand is not None
        # A server that has not answered by then could not have checked a file either.
        seconds = max(0.0, deadline - current_time())
        texts = [{"file": edit.path} | ({} if edit.before is None else {"before": edit.before}) for edit in edits]
        limits = {"milliseconds": WALK_MS, "forDeclarations": DECLARATIONS_MS}
        about = {"edits": texts, "candidates": candidates, **limits}
        # A program knows who imports a new file only some time after it was told of that: until then, names tell.
        unproven = candidates if any(edit.before == "" for edit in edits) else ()

        async def work(session: Session) -> ServerAccount | None:
            ledger = self._access.ledgers.of(session)
            async with ledger.shared():
                for _ in range(TRIES):
                    changes = ledger.changes
                    ask = ask_about(session, on_demand, on_demand.affected, [about], ServerAccount, timeout=seconds)
                    (said,) = await ask
                    if await ledger.is_as_before(changes):
                        ledger.projects |= {AbsPath(path): project for path, project in said.projects.items()}
                        return replace(said.ordered(ledger.costs.of), unknown=(*said.unknown, *unproven))
            return None

        try:
            server = self._access.server(visit.workspace, target.servers[0])
            return await self._access.use_server(server, visit.client.id, work, seconds=seconds)
        except (Failure, Malformed):
            # The plugin is not loaded, no project has the file, or it is not known what was before.
            return None


def answers_affected(target: SearchedRoot) -> bool:
    """Whether the only server of a root may be asked: what another one judges it does not know."""
    on_demand = target.servers[0].spec.freshness.on_demand
    return len(target.servers) == 1 and on_demand is not None and on_demand.affected is not None
