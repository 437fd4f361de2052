"""Checks that ask no server about what is known and stands (DIAG-13).

A fresh verdict stands as long as the file has the text that was judged, the same processes would judge it, and nothing
was noticed on disk that may affect it (`FileStates`). All else is checked. Without a watcher nothing stands.
"""

import os
from collections.abc import Mapping, Sequence

import anyio
from msgspec import Struct

from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.policy.boundary import admit
from pilotfish.pool.plan import Key
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.affected import Affected, AffectedFiles, EditedText, searched_roots
from pilotfish.service.diagnostics.file_states import FileStates, Judges, committed_text
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict
from pilotfish.service.recent import Recent
from pilotfish.service.texts import Texts
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.ports import FileText

MAX_SERVERS = 64
"""Servers of which it is known how often they took answers back."""

MAX_EXPLAINED = 200
"""Changed files whose effect is computed; after more, every file of the project is checked again."""

INDEX_SECONDS = 30.0
"""For the words of a project."""

_Processes = dict[tuple[str, AbsPath], tuple[str, float] | None]
"""By server and root, during one look at many files; None: it does not run, or nobody would notice a change."""


class _TakenBack(Struct, frozen=True):
    """How often a server had taken its answers back, in which world, after how many documents."""

    world: int
    refreshes: int
    moves: int


class Picture:
    def __init__(
        self,
        access: Access,
        runner: CheckRunner,
        states: FileStates,
        words: ProjectWords,
    ) -> None:
        self._access = access
        self._texts: Texts = access.texts
        self._runner = runner
        self._states = states
        self._affected = AffectedFiles(words)
        self._words = words
        self._explaining = anyio.Lock()
        self._taken_back: Recent[Key, _TakenBack] = Recent(MAX_SERVERS)

    async def who_used(self, workspace: Workspace, gone: Sequence[AbsPath]) -> Affected:
        """The files that may be broken because these, which the last commit has, are gone."""
        served = filter(workspace.serves, gone)
        edits = [EditedText(path, await committed_text(workspace, path, ""), None) for path in served]
        found, complete = dict[AbsPath, None](), True
        for target in searched_roots(workspace, (one.path for one in edits)):
            affected = await self._affected.of_edits(target.root, edits, target.extensions, INDEX_SECONDS)
            found |= dict.fromkeys(affected.files)
            complete = complete and affected.complete
        return Affected(tuple(filter(os.path.isfile, found)), complete)

    async def check(
        self,
        visit: Visit,
        paths: Sequence[str],
        patience: Patience,
        *,
        anew: bool = False,
    ) -> tuple[FileVerdict, ...]:
        """One verdict per file, from what is known where it stands; the workspace is in step with the disk.

        `anew`: what is not known is checked as after a change of other files, see `CheckRunner.run`.
        """
        found = await self.standing(visit.workspace, paths)
        left, world = [path for path in paths if path not in found], self._states.world
        checked = await self._runner.run_until_certain(visit, left, patience, anew=anew) if left else ()
        for verdict in checked:
            if verdict.is_final:
                self._states.put(verdict, world)
        return (*found.values(), *checked)

    def knows(self, path: str) -> bool:
        """Whether there is a verdict on this file, which may stand."""
        return self._states.knows(AbsPath(path))

    async def standing(self, workspace: Workspace, paths: Sequence[str]) -> dict[str, FileVerdict]:
        """What is known of these files, by the names that were given, and stands."""
        await self._explain(workspace)
        workspace.look_again()
        processes = _Processes()
        return {path: one for path in paths if (one := await self._standing(workspace, path, processes)) is not None}

    async def _standing(self, workspace: Workspace, path: str, processes: _Processes) -> FileVerdict | None:
        try:
            file = await self._current(workspace, path)
        except Refused:
            return None
        judges = () if file is None else self._judges(workspace, file, processes)
        known = self._states.standing(file.path, file.text, judges) if file is not None and judges else None
        return known and FileVerdict(file.path, file.text, known.outcomes, listed=known.listed) if file else None

    async def _current(self, workspace: Workspace, path: str) -> FileText | None:
        """The file that is meant, as it is now; None where nothing is known of it. Raises `Refused`."""
        named = AbsPath(path)
        if is_inside(path, workspace.root) and self._states.knows(named):
            file = await self._texts.unchanged_file(named)
            if file is not None:
                # It was admitted when it was checked, and is still the same file.
                return file
        real = admit(path, workspace.boundary).path
        return await self._texts.current(real) if self._states.knows(real) else None

    def _judges(self, workspace: Workspace, file: FileText, processes: _Processes) -> Judges:
        """The processes that would judge the file, by server and start time; empty if one of them does not run."""
        found = list[tuple[str, float]]()
        first_line = file.text.partition("\n")[0]
        for candidate in workspace.servers_for(file.path, first_line, looked=True).servers:
            named = candidate.spec.id, candidate.root
            if named not in processes:
                processes[named] = self._process(workspace, candidate)
            process = processes[named]
            if process is None:
                return ()
            found.append(process)
        return tuple(found)

    def _process(self, workspace: Workspace, candidate: Candidate) -> tuple[str, float] | None:
        """None where it does not run, has read other inputs than there are now, or would not be told of changes."""
        key = self._access.server(workspace, candidate).recipe.key
        entry = self._access.pool.entries().get(key)
        session = entry.session if entry is not None and entry.usable else None
        if session is not None and session.inputs is not None and not session.inputs.holds():
            return None
        is_followed = session is not None and self._words.is_followed(candidate.root)
        return (key.server, session.started_at) if session is not None and is_followed else None

    async def _explain(self, workspace: Workspace) -> None:
        """Find out which files the changes since then may affect, where that is not known yet."""
        async with self._explaining:
            for root in sorted({key.root for key in self._access.pool.entries() if workspace.holds(key.root)}):
                self._heed_refreshes(workspace, root)
                for number, changed in self._states.unexplained(root, MAX_EXPLAINED).items():
                    if changed and None not in changed.values():
                        await self._explain_change(workspace, number, changed)

    def _heed_refreshes(self, workspace: Workspace, root: AbsPath) -> None:
        """A server takes its answers back after a change; without one nobody knows why, and nothing stands."""
        for key, entry in self._access.pool.entries().items():
            session, spec = entry.session, workspace.specs.get(key.server)
            if key.root != root or session is None or spec is None:
                continue
            refreshes, moves = session.reports.refreshes, session.documents.moves
            before = self._taken_back.get(key) or _TakenBack(self._states.world, refreshes, moves)
            is_opened = spec.freshness.refreshes_on_open and before.moves != moves
            if refreshes > before.refreshes and before.world == self._states.world and not is_opened:
                self._states.lose(root)
            self._taken_back.put(key, _TakenBack(self._states.world, refreshes, moves))

    async def _explain_change(self, workspace: Workspace, number: int, changed: Mapping[AbsPath, str | None]) -> None:
        world, targets = self._states.world, searched_roots(workspace, changed)
        if any(not searched_roots(workspace, [path]) for path in changed):
            # Settings, or a file that only some tool reads: nobody can say what it changes.
            return
        edits = [EditedText(path, text, await self._texts.readable(path)) for path, text in sorted(changed.items())]
        affected = set[AbsPath]()
        for target in targets:
            found = await self._affected.of_edits(target.root, edits, target.extensions, INDEX_SECONDS)
            if not found.complete:
                return
            affected.update(found.files)
        if self._states.world == world:
            self._states.explain_change(number, affected)
