"""Which files an edit may have broken. It over-approximates: `feedback.shapes` says how, and what fools it."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.feedback.shapes.changes import (
    EVERYTHING,
    ChangedSymbols,
    changed_symbols,
    likely_words,
)
from pilotfish.feedback.shapes.python import PYTHON
from pilotfish.feedback.shapes.spread import Reach, Spread
from pilotfish.feedback.shapes.words import EVERYBODYS, is_package
from pilotfish.model import AbsPath
from pilotfish.paths import distance
from pilotfish.protocol.codec import Malformed
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import Role
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.diagnostics.on_demand import TRIES, ask_about
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.project_shapes import OutOfTime, ProjectShapes
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time


class EditedText(Struct, frozen=True):
    """One changed file; `before` is None where nobody knows what it was, `after` is None where it is gone."""

    path: AbsPath
    before: str | None
    after: str | None


class Affected(Struct, frozen=True):
    """The files that may be affected, the likeliest first; `complete` when no other file can be."""

    files: tuple[AbsPath, ...]
    complete: bool
    unlikely: frozenset[AbsPath] = frozenset()
    """Those of them that mention nothing of what was changed: only a type that is inferred may reach them."""

    def only(self, extensions: tuple[str, ...]) -> "Affected":
        return replace(self, files=tuple(path for path in self.files if path.endswith(extensions)))


NOBODY = Affected((), complete=True)


class AffectedFiles:
    def __init__(self, words: ProjectWords) -> None:
        self._words = words

    async def of_edits(
        self,
        root: AbsPath,
        edits: Sequence[EditedText],
        extensions: Collection[str],
        seconds: float,
        broken: Collection[AbsPath] = (),
    ) -> Affected:
        """What these edits may have broken below a root. `broken`: files that were told to be, checked first."""
        started = current_time()
        changes = await anyio.to_thread.run_sync(_changes, tuple(edits))
        if not changes:
            return NOBODY
        known = await self._words.index(root, seconds)
        if known is None:
            return Affected((), complete=False)
        index, complete = known
        edited = {edit.path: [text for text in (edit.before, edit.after) if text is not None] for edit in edits}
        project = ProjectShapes(self._words.shapes, index, extensions, edited)
        spread = Spread(project)
        unlikely = frozenset[AbsPath]()
        with anyio.move_on_after(seconds - (current_time() - started)) as scope:
            try:
                unlikely = await anyio.to_thread.run_sync(_run, spread, project, changes, edits, abandon_on_cancel=True)
            finally:
                project.is_over = True
        complete = complete and not scope.cancelled_caught
        unlikely -= frozenset(broken)
        return Affected(_ordered(spread.found.copy(), edits, frozenset(broken), unlikely), complete, unlikely)


def _changes(edits: Sequence[EditedText]) -> dict[AbsPath, ChangedSymbols]:
    """Blocking: for a thread."""
    return {edit.path: change for edit in edits if (change := change_of(edit))}


def _run(
    spread: Spread,
    project: ProjectShapes,
    changes: Mapping[AbsPath, ChangedSymbols],
    edits: Sequence[EditedText],
) -> frozenset[AbsPath]:
    """The files that mention nothing of what was changed. Blocking: for a thread."""
    with suppress(OutOfTime):
        spread.run(_with_packages(changes, edits, project.paths))
        if any(os.path.basename(path) in EVERYBODYS for path in changes):
            spread.found.update({path: Reach(9, 0) for path in project.paths if path not in spread.found})
        words = [_words(edit, changes[edit.path]) for edit in edits if edit.path in changes]
        if None not in words:
            wanted = frozenset[str]().union(*(one or () for one in words))
            return frozenset(
                path for path in spread.found if all(wanted.isdisjoint(shape.outside) for shape in project.shapes(path))
            )
    return frozenset()


def _words(edit: EditedText, changed: ChangedSymbols) -> frozenset[str] | None:
    return likely_words(changed, edit.before, edit.after) if edit.path.endswith(PYTHON) else None


def _ordered(
    found: Mapping[AbsPath, Reach],
    edits: Sequence[EditedText],
    broken: frozenset[AbsPath],
    unlikely: frozenset[AbsPath],
) -> tuple[AbsPath, ...]:
    near, own = edits[0].path, {edit.path for edit in edits}

    def likeliest(path: AbsPath) -> tuple[bool, bool, bool, int, int, int, str]:
        reach = found.get(path, Reach(0, 0))
        first = path not in broken, path in unlikely, not reach.mentions
        return *first, reach.steps, -reach.mentions, distance(path, near), path

    return tuple(sorted((found.keys() | broken) - own, key=likeliest))


def _with_packages(
    changes: Mapping[AbsPath, ChangedSymbols], edits: Iterable[EditedText], paths: Iterable[AbsPath]
) -> dict[AbsPath, ChangedSymbols]:
    """Where a package came or went, all that is in it may be found otherwise."""
    folders = tuple(
        f"{os.path.dirname(edit.path)}/"
        for edit in edits
        if is_package(edit.path) and (edit.before is None or edit.after is None)
    )
    inside = {path: EVERYTHING for path in paths if path.startswith(folders)} if folders else {}
    return {**inside, **changes}


async def affecting(edits: Sequence[EditedText]) -> list[EditedText]:
    """Those that changed what other files can see; a comment does not."""
    changes = await anyio.to_thread.run_sync(_changes, tuple(edits))
    return [edit for edit in edits if edit.path in changes]


@lru_cache(maxsize=16)
def change_of(edit: EditedText) -> ChangedSymbols:
    # Where there was nothing, another file may have been found by the same name.
    return changed_symbols(edit.path, edit.before or None, edit.after)


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


WALK_MS = 1_500
"""Processor time for comparing declarations. What was not compared by then counts as changed, with all importers: then
many times as much is checked. Most of it is not lost: a check of these files needs the same types."""

DECLARATIONS_MS = 250
"""Of it, for the declarations of one file. Those of types that are inferred take 13 s in a Vue project, and nobody is
answered meanwhile. Such a file is compared by its source from then on: more files are checked, never fewer."""


class ServerAccount(Struct, frozen=True):
    """The files of the server's programs that may be affected, and the candidates that no program has.

    Of the files in its programs this is exact: the server compares what they declare before and after the edits. Names
    fill in only what it has not loaded, and everything where it does not answer in time.
    """

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

    def joined(self, other: "ServerAccount") -> "ServerAccount":
        return replace(self, files=(*self.files, *other.files), unknown=(*self.unknown, *other.unknown))

    def instead_of(self, by_name: Affected) -> Affected:
        """These first, then those that only names tell of."""
        unknown = frozenset(self.unknown)
        others = (path for path in by_name.files if path in unknown)
        return Affected((*map(AbsPath, self.files), *others), by_name.complete or not unknown)


async def server_affected(
    access: Access,
    visit: Visit,
    target: SearchedRoot,
    edits: Sequence[EditedText],
    candidates: Sequence[AbsPath],
    deadline: float,
) -> ServerAccount | None:
    """What the server of a root says that edits may have broken; None where it cannot say so in time."""
    on_demand = target.servers[0].spec.freshness.on_demand
    if on_demand is None or not answers_affected(target):
        return None
    # A server that has not answered by then could not have checked a file either.
    seconds = max(0.0, deadline - current_time())
    texts = [_said_of(edit) for edit in edits]
    limits = {"milliseconds": WALK_MS, "forDeclarations": DECLARATIONS_MS}
    about = {"edits": texts, "candidates": candidates, **limits}
    # A program knows who imports a new file only some time after it was told of that: until then, names tell.
    unproven = candidates if any(edit.before == "" for edit in edits) else ()

    async def work(session: Session) -> ServerAccount | None:
        ledger = access.ledgers.of(session)
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
        server = access.server(visit.workspace, target.servers[0])
        return await access.use_server(server, visit.client.id, work, seconds=seconds)
    except (Failure, Malformed):
        # The plugin is not loaded, no project has the file, or it is not known what was before.
        return None


def _said_of(edit: EditedText) -> Mapping[str, object]:
    return {"file": edit.path, "gone": edit.after is None} | ({} if edit.before is None else {"before": edit.before})


def answers_affected(target: SearchedRoot) -> bool:
    """Whether the only server of a root may be asked: what another one judges it does not know."""
    on_demand = target.servers[0].spec.freshness.on_demand
    return len(target.servers) == 1 and on_demand is not None and on_demand.affected is not None
