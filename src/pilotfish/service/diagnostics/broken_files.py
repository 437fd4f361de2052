"""Every other file that an edit broke (DIAG-11).

The files that may be affected (`affected`) are checked for real, the likeliest first, a few at a time, until all are
done or the time is over: what is finished by then counts, and how many were not is said. The importers of each file
that turns out broken follow. What such a file had before the edit is not what the edit broke: where it was not checked
before, it is judged once more with the text that the edited file had.
"""

import os
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy

import anyio
from msgspec import Struct, field

from pilotfish.feedback.deleted_modules import broken_by_deletion
from pilotfish.feedback.delta import CheckedText, Comparison, Delta, NoBaseline, delta
from pilotfish.feedback.project_account import FileAccount, since_said
from pilotfish.model import AbsPath, Severity
from pilotfish.service.diagnostics.affected import NOBODY, Affected, AffectedFiles, EditedText, may_affect
from pilotfish.service.diagnostics.baselines import Baselines
from pilotfish.service.diagnostics.missing_packages import without_missing_packages
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.proposals import ProposalRunner, ProposalTime, ProposedFiles
from pilotfish.service.diagnostics.runner import CheckRunner, FileVerdict, Patience
from pilotfish.service.diagnostics.searched_roots import SearchedRoot, searched_roots
from pilotfish.service.recent import Recent
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

AT_ONCE = 2
"""Files that are checked side by side: a server has something to do while we read the next one. Most servers do one
thing at a time, and what they were asked for last stands in the way of the next edit."""

FIRST_PART = 8
"""Files that are checked before the first are compared with their state before the edit."""

COMPARING_SHARE = 0.35
"""Of the time that is left, for comparing: the second check of a file finds much done by the first."""

COMPARING_SECONDS = 1.0
"""What comparing with the state before the edit gets at least: without it, a finished verdict could not be told."""

MAX_WAVES = 4
"""How often the importers of newly broken files follow."""

MAX_BROKEN = 200
"""Conversations whose broken files are remembered."""


Checking = Callable[[AbsPath, Patience], Awaitable[Sequence[FileVerdict]]]
"""Checks one file as it is on disk."""


class BrokenFiles(Struct, frozen=True):
    """What was found in other files. `complete`: every file that may be affected is known and was checked."""

    verdicts: tuple[FileVerdict, ...] = ()
    changes: Mapping[AbsPath, Comparison] = field(default_factory=dict[AbsPath, Comparison])
    candidates: int = 0
    complete: bool = True
    whole: bool = False
    """The servers were asked about their whole projects: all that they say of these is known."""

    @property
    def unchecked(self) -> int:
        return self.candidates - len(self.verdicts)


class _Search:
    """One run: the files that wait for their check, and what was found so far."""

    def __init__(self, edits: Sequence[EditedText], deadline: float) -> None:
        self.edits = edits
        self.deadline = deadline
        self.waiting: deque[AbsPath] = deque()
        self.found: dict[AbsPath, FileVerdict] = {}
        self.changes: dict[AbsPath, Comparison] = {}
        self._candidates: set[AbsPath] = {edit.path for edit in edits}
        self._complete = True
        self.whole = True
        self.given: dict[AbsPath, FileVerdict] = {}
        """Verdicts that need no check."""
        self.said: dict[AbsPath, tuple[str, FileAccount]] = {}
        """What a server said of files before the edits."""

    @property
    def left(self) -> float:
        return self.deadline - current_time()

    @property
    def deleted(self) -> list[AbsPath]:
        return [edit.path for edit in self.edits if edit.after is None]

    def add(self, workspace: Workspace, affected: Affected) -> None:
        self._complete = self._complete and affected.complete
        for path in affected.files:
            if path not in self._candidates and os.path.isfile(path) and workspace.serves(path):
                self._candidates.add(path)
                self.waiting.append(path)

    def result(self) -> BrokenFiles:
        candidates = len(self._candidates) - len({edit.path for edit in self.edits})
        complete = self._complete and len(self.found) == candidates
        return BrokenFiles(tuple(self.found.values()), self.changes, candidates, complete, whole=self.whole)


class ProjectCheck:
    def __init__(
        self,
        runner: CheckRunner,
        proposal_runner: ProposalRunner,
        baselines: Baselines,
        words: ProjectWords,
        is_followed: Callable[[AbsPath], bool],
        reports: ProjectReports,
    ) -> None:
        self._runner = runner
        self._reports = reports
        self._proposal_runner = proposal_runner
        self._baselines = baselines
        self._words = words
        self._is_followed = is_followed
        """Whether every change below a root is noticed; where not, the disk is looked at for each edit."""
        self._affected = AffectedFiles(words)
        self._broken: Recent[tuple[str | None, AbsPath], set[AbsPath]] = Recent(MAX_BROKEN)
        """By host and workspace: the files that were told to be broken and have not been seen mended."""

    def comparing_with(self, baselines: Baselines) -> "ProjectCheck":
        """The same check, with other states to compare with."""
        made = copy(self)
        made._baselines = baselines  # noqa: SLF001 -- a copy of ourselves
        return made

    async def run(
        self, client: ClientSession, workspace: Workspace, edits: Sequence[EditedText], deadline: float
    ) -> BrokenFiles:
        """What these edits broke elsewhere, as far as it can be known by the deadline."""
        broken, search = self._broken_of(client, workspace), _Search(edits, deadline)
        for target in searched_roots(workspace, (edit.path for edit in edits)):
            led = await self._led(client, workspace, target, search, broken)
            if led is not None:
                search.add(workspace, led)
                await self._judge_waiting(client, workspace, search)
                self._reports.judged(target, search.found.values())
            else:
                search.whole = False
                search.add(workspace, await self._affected_by(target, search, broken))
                await self._judge_in_waves(client, workspace, target, search)
                # What was said of the files that were opened for this is no news.
                self._runner.spoken_of(target.root)
        self._remember(broken, search.changes)
        return search.result()

    async def _led(
        self,
        client: ClientSession,
        workspace: Workspace,
        target: SearchedRoot,
        search: "_Search",
        broken: Collection[AbsPath],
    ) -> Affected | None:
        """The files that the server itself says have changed; None where the candidates must be found without it."""
        edits = [edit for edit in search.edits if may_affect(edit)]
        if not edits:
            search.whole = False
            return NOBODY
        paths = [edit.path for edit in edits]
        found = await self._reports.changed(client, workspace, target, paths, search.deadline)
        if found is None:
            return None
        search.given |= found.verdicts
        search.said |= {path: (found.server, before) for path, before in found.files.items() if before is not None}
        return Affected(tuple(dict.fromkeys((*broken, *found.files))), found.complete)

    async def _judge_in_waves(
        self, client: ClientSession, workspace: Workspace, target: SearchedRoot, search: "_Search"
    ) -> None:
        for _ in range(MAX_WAVES):
            worse = await self._judge_waiting(client, workspace, search)
            if not worse or search.left <= 0:
                break
            following = await self._affected.of_broken(target.root, worse, target.extensions, search.left)
            search.add(workspace, following)

    async def as_they_are(
        self,
        workspace: Workspace,
        edits: Sequence[EditedText],
        deadline: float,
        check: Checking,
        worse: Sequence[AbsPath] = (),
    ) -> BrokenFiles:
        """The files that edits which are not on disk may break, as they are now; of `worse` ones, the importers."""
        search = _Search(edits, deadline)
        for target in searched_roots(workspace, (edit.path for edit in edits)):
            if worse:
                following = await self._affected.of_broken(target.root, worse, target.extensions, search.left)
                search.add(workspace, following)
            else:
                search.add(workspace, await self._affected_by(target, search))
        search.found |= await _checked(check, tuple(search.waiting), deadline)
        return search.result()

    async def _affected_by(self, target: SearchedRoot, search: "_Search", broken: Collection[AbsPath] = ()) -> Affected:
        if not self._is_followed(target.root):
            self._words.lost(target.root)
            if search.deleted:
                await self._runner.tell_deleted(target.root, search.deleted)
        found = await self._affected.of_edits(target.root, search.edits, target.extensions, search.left, broken=broken)
        return Affected((*self._runner.spoken_of(target.root), *found.files), found.complete)

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep the words of these roots, and what was told of them, no longer."""
        self._words.drop(is_meant)
        self._broken.drop(lambda key: is_meant(key[1]))

    async def _judge_waiting(self, client: ClientSession, workspace: Workspace, search: "_Search") -> list[AbsPath]:
        """Check what waits, the likeliest first, and compare it; returns the files that are worse than before.

        In growing parts: a state before the edits is had for a whole part at once, and the first ones matter most.
        """
        given = {path: search.given[path] for path in search.waiting if path in search.given}
        search.waiting = deque(path for path in search.waiting if path not in given)
        worse, size = await self._take(client, workspace, search, given), FIRST_PART
        while search.waiting and search.left > 0:
            part = [search.waiting.popleft() for _ in range(min(size, len(search.waiting)))]
            is_known = all(self._baselines.text(client, path) is not None for path in part)
            until = search.deadline if is_known else search.deadline - search.left * COMPARING_SHARE
            worse += await self._take(client, workspace, search, await self._check(client, workspace, part, until))
            size *= 2
        return worse

    async def _take(
        self, client: ClientSession, workspace: Workspace, search: "_Search", verdicts: Mapping[AbsPath, FileVerdict]
    ) -> list[AbsPath]:
        """Compare these with what was before; returns the files that are worse."""
        compared = await self._compare(client, workspace, search, verdicts)
        changes = {path: _sorted(workspace, path, change, search.deleted) for path, change in compared.items()}
        search.found |= verdicts
        search.changes |= changes
        return [path for path, change in changes.items() if _introduced(change)]

    async def _check(
        self, client: ClientSession, workspace: Workspace, paths: Sequence[AbsPath], deadline: float
    ) -> dict[AbsPath, FileVerdict]:
        async def check(path: AbsPath, patience: Patience) -> Sequence[FileVerdict]:
            return await self._runner.run(client, workspace, [path], patience=patience, anew=True)

        return await _checked(check, paths, deadline)

    async def _compare(
        self, client: ClientSession, workspace: Workspace, search: "_Search", verdicts: Mapping[AbsPath, FileVerdict]
    ) -> dict[AbsPath, Comparison]:
        """What changed in each file; of one that was not checked before, against its state before the edits."""
        judged = {path: verdict for path, verdict in verdicts.items() if verdict.refused is None}
        changes = {path: self._baselines.compare(client, verdict) for path, verdict in judged.items()}
        wanted = workspace.config.feedback.severities
        unknown = {
            path: judged[path]
            for path, change in changes.items()
            if isinstance(change, NoBaseline)
            and _has_findings(_sorted(workspace, path, change, search.deleted), wanted)
        }
        for path in unknown.keys() & search.said.keys():
            server, before = search.said[path]
            changes[path] = since_said(before, unknown.pop(path).diagnostics, server)
        if unknown and search.deleted:
            judged_by_import = {path: _without(workspace, one, search.deleted) for path, one in unknown.items()}
            # Where no import tells, nobody knows.
            return changes | {path: change for path, change in judged_by_import.items() if change.introduced}
        return changes | await self._compare_with_earlier(client, workspace, search, unknown)

    async def _compare_with_earlier(
        self, client: ClientSession, workspace: Workspace, search: "_Search", verdicts: Mapping[AbsPath, FileVerdict]
    ) -> dict[AbsPath, Comparison]:
        """Judge these files once more, with the texts that the edited ones had; nothing where one is not known."""
        before = {edit.path: edit.before for edit in search.edits if edit.before is not None}
        if not verdicts or len(before) < len(search.edits):
            return {}
        files = ProposedFiles(before, {path: verdict.text for path, verdict in verdicts.items()})
        left = max(search.left, COMPARING_SECONDS)
        judged = await self._proposal_runner.run(client, workspace, files, ProposalTime(left, left))
        return {
            earlier.path: delta(_state(earlier), _state(now))
            for earlier in judged
            if earlier.is_fresh and (now := verdicts.get(earlier.path)) is not None
        }

    def _broken_of(self, client: ClientSession, workspace: Workspace) -> set[AbsPath]:
        key = client.host, workspace.root
        known = self._broken.get(key)
        if known is None:
            known = set[AbsPath]()
            self._broken.put(key, known)
        return known

    @staticmethod
    def _remember(broken: set[AbsPath], changes: Mapping[AbsPath, Comparison]) -> None:
        for path, change in changes.items():
            if _introduced(change):
                broken.add(path)
            elif isinstance(change, Delta) and change.fixed:
                broken.discard(path)


def _without(workspace: Workspace, verdict: FileVerdict, deleted: Sequence[AbsPath]) -> Delta:
    codes = [workspace.specs[outcome.server].imports.unresolved for outcome in verdict.outcomes]
    return broken_by_deletion(_state(verdict), deleted, frozenset[str]().union(*codes))


def _state(verdict: FileVerdict) -> CheckedText:
    return CheckedText(verdict.text, verdict.diagnostics)


async def _checked(check: Checking, paths: Sequence[AbsPath], deadline: float) -> dict[AbsPath, FileVerdict]:
    """The verdicts that are fresh, or refused, by the deadline."""
    found: dict[AbsPath, FileVerdict] = {}
    waiting = iter(paths)

    async def work() -> None:
        for path in waiting:
            left = deadline - current_time()
            if left <= 0:
                return
            for verdict in await check(path, Patience(left, left)):
                if verdict.is_fresh or verdict.refused is not None:
                    found[path] = verdict

    with anyio.move_on_after(max(0.0, deadline - current_time())):
        async with owned_tasks() as tasks:
            for _ in range(min(AT_ONCE, len(paths))):
                tasks.start_soon(work)
    return found


def _introduced(change: Comparison) -> bool:
    return isinstance(change, Delta) and bool(change.introduced)


def _has_findings(change: Comparison, wanted: frozenset[Severity]) -> bool:
    return isinstance(change, NoBaseline) and any(found.severity in wanted for found in change.diagnostics)


def _sorted(workspace: Workspace, path: AbsPath, change: Comparison, deleted: Collection[AbsPath]) -> Comparison:
    return without_missing_packages(workspace, path, change, deleted).change
