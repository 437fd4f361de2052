"""A check of every file of a project that some server is for (DIAG-13).

What stands is taken from the picture, and the rest is checked a few files at a time until all are done or the time is
over. What is done by then is told, how much is not is said, and the next check goes on from there.
"""

from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread
from msgspec import Struct

from pilotfish.api.answers import Effort, Error, error_of
from pilotfish.counting import counted
from pilotfish.errors import Code
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.effort import effort_of
from pilotfish.service.diagnostics.picture import Picture
from pilotfish.service.diagnostics.runner import FileVerdict, Patience
from pilotfish.service.project_files import FilesToCheck, select
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import owned_tasks

PROJECT_SECONDS = 45.0
"""For one check: many clients of MCP give a call a minute."""

AT_ONCE = 8
"""Files under way: more do not make a server faster, and each holds its text."""

NO_FILES = "no file of this project can be checked"

Done = Callable[[int, int], None]
"""Told how many files were checked, of how many."""


class ProjectVerdict(Struct, frozen=True):
    """What is known of a project."""

    chosen: FilesToCheck
    verdicts: tuple[FileVerdict, ...]

    @property
    def unchecked(self) -> int:
        return len(self.chosen.files) - len(self.verdicts)

    def effort(self, started: float) -> Effort:
        """How far it was checked: fresh only where every file of it was."""
        # A file that was deleted meanwhile is no file of the project.
        asked = [one for one in self.verdicts if one.refused is None or one.refused.code is not Code.FILE_MISSING]
        found, total = effort_of(asked, (), started), len(self.chosen.files)
        caveats, warnings = [*found.caveats], self.chosen.skipped
        if self.unchecked:
            caveats.append(f"{self.unchecked} of {counted(total, 'file')} were not checked yet; ask again for them")
        elif total:
            warnings = [f"the whole project was checked: {counted(total, 'file')}", *warnings]
        elif not self.chosen.missing:
            caveats.append(NO_FILES)
        return Effort(
            duration_ms=found.duration_ms,
            server_hits=found.server_hits,
            errors=tuple(dict.fromkeys([*found.errors, *self.chosen.unreached, *self.chosen.missing])),
            caveats=tuple(caveats),
            timed_out=found.timed_out or bool(self.unchecked),
            warnings=tuple(warnings),
        )


class WholeProject:
    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    async def known(self, workspace: Workspace, paths: Sequence[str]) -> tuple[FilesToCheck, dict[str, FileVerdict]]:
        """The files that `paths` mean, and what is known of them and stands."""
        standing: dict[str, FileVerdict] = {}

        async def unserved(below: Sequence[str]) -> dict[str, Error | None]:
            served = [path for path in below if self._picture.knows(path) or workspace.serves(AbsPath(path))]
            standing.update(await self._picture.standing(workspace, served))
            rest = [path for path in below if path not in standing]
            # In a thread, because it searches the disk for programs.
            return await anyio.to_thread.run_sync(_unserved, workspace, rest)

        chosen = await select(workspace.root, unserved, paths)
        standing |= await self._picture.standing(workspace, chosen.named)
        return chosen, {path: standing[path] for path in chosen.files if path in standing}

    async def check(
        self, client: ClientSession, workspace: Workspace, patience: Patience, seconds: float, done: Done | None
    ) -> ProjectVerdict:
        """Every file below the root of the workspace, as far as there is time; the workspace is in step with the disk.

        Raises `Unavailable` after `"lsp": false`.
        """
        workspace.require_enabled()
        deadline = current_time() + seconds
        chosen, found = await self.known(workspace, [workspace.root])
        left = [path for path in chosen.files if path not in found]
        waiting = iter(left)

        def tell() -> None:
            if done is not None:
                done(len(found), len(chosen.files))

        async def work() -> None:
            for path in waiting:
                for verdict in await self._picture.check(client, workspace, [path], patience):
                    found[verdict.path] = verdict
                tell()

        tell()
        with anyio.move_on_after(deadline - current_time()):
            async with owned_tasks() as tasks:
                for _ in left[:AT_ONCE]:
                    tasks.start_soon(work)
        return ProjectVerdict(chosen, tuple(found[path] for path in sorted(found)))


def _unserved(workspace: Workspace, paths: Sequence[str]) -> dict[str, Error | None]:
    """Why each of these files cannot be checked; None where no server is for it. Blocking: for a thread."""
    found: dict[str, Error | None] = {}
    workspace.look_again()
    for path in paths:
        if not workspace.serves(AbsPath(path)):
            found[path] = None
            continue
        choice = workspace.servers_for(AbsPath(real_path(path)), looked=True)
        if not choice.servers:
            found[path] = None if choice.missing is None else error_of(workspace.why_unavailable(choice.missing))
    return found
