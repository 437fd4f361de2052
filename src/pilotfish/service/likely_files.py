"""Files that the next edit may break, and what they have now: known before the edit comes (DIAG-11)."""

from collections.abc import Awaitable, Callable

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import AffectedFiles, EditedText
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.preparation import Prepared
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.searched_roots import searched_roots
from pilotfish.service.texts import Texts
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time

MAX_LIKELY = 30
"""For one file that is read: some seconds of a server that nobody waits for."""

SECONDS = 10.0
"""For the words of the project, and for one file."""


class LikelyFiles:
    def __init__(
        self,
        runner: CheckRunner,
        texts: Texts,
        states: FileStates,
        words: ProjectWords,
        in_step: Callable[[Visit], Awaitable[Visit]],
        reports: ProjectReports,
    ) -> None:
        """`in_step`: read what is noticed by now."""
        self._runner = runner
        self._texts = texts
        self._states = states
        self._affected = AffectedFiles(words)
        self._words = words
        self._in_step = in_step
        self._reports = reports

    async def prepare(self, one: Prepared) -> list[AbsPath]:
        """Check one, or say which to check for one that was read."""
        if one.is_read:
            return await self._likely(one.visit, one.path)
        await self._check(one)
        return []

    async def _likely(self, visit: Visit, path: AbsPath) -> list[AbsPath]:
        """Those that are not known, the likeliest first; none where changes on disk are not noticed."""
        found = list[AbsPath]()
        edit = EditedText(path, None, (await self._texts.current(path)).text)
        for target in searched_roots(visit.workspace, [path]):
            # What a server says of its whole project now is what it is compared with after the edit.
            await self._reports.look(visit, target, path, current_time() + SECONDS)
            if not self._words.is_followed(target.root):
                continue
            affected = await self._affected.of_edits(target.root, [edit], target.extensions, SECONDS)
            found += affected.files
        unknown = [one for one in found if not self._states.is_current(one) and visit.workspace.serves(one)]
        return unknown[:MAX_LIKELY]

    async def _check(self, one: Prepared) -> None:
        """Check one, and keep what it has, unless something changed meanwhile: then it may be broken already."""
        if self._states.is_current(one.path):
            return
        await self._in_step(one.visit)
        world = self._states.world
        verdicts = await self._runner.run(one.visit, [one.path], patience=Patience(SECONDS, SECONDS), anew=True)
        await self._in_step(one.visit)
        for verdict in verdicts:
            if verdict.is_fresh:
                self._states.put(verdict, world)
