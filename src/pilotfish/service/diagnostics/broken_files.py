"""Every other file that an edit broke (DIAG-11).

The files that may be affected (`affected`) are checked for real, the likeliest first, a few at a time, until all are
done or the time is over: what is finished by then counts, and how many were not is said. What such a file had before
the edit is not what the edit broke: where it was not checked before, it is judged once more with the text that the
edited file had.
"""

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf

from msgspec import Struct, field

from pilotfish.feedback.conversation import still_there, with_late
from pilotfish.feedback.delta import (
    Comparison,
    FileAccount,
    NoBaseline,
    delta,
    in_either,
    said,
    said_of,
    since_said,
)
from pilotfish.feedback.unresolved_imports import broken_by_deletion
from pilotfish.model import AbsPath, Severity
from pilotfish.paths import is_inside
from pilotfish.protocol.diagnostics import words_of
from pilotfish.service.diagnostics.affected import (
    NOBODY,
    Affected,
    AffectedFiles,
    EditedText,
    SearchedRoot,
    ServerAccount,
    affecting,
    answers_affected,
    searched_roots,
    server_affected,
)
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.missing_imports import without_missing_packages
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.proposals import ProposalRunner
from pilotfish.service.diagnostics.runner import MAX_SPOKEN, Checking, CheckRunner, Patience, checked
from pilotfish.service.diagnostics.verdicts import BrokenFiles, FileVerdict, KnownFindings
from pilotfish.service.recent import Recent
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import is_of_linked_worktree

FIRST_PART = 8
"""Files that are checked before the first are compared with their state before the edit."""

UNLIKELY_SECONDS = 0.3
"""For files that mention nothing of what was changed, while an agent waits; or as long as it has waited by then: what
was probably not broken makes no edit wait more than twice as long. What was, follows late."""

COMPARING_SHARE = 0.35
"""Of the time that is left, for comparing: the second check of a file finds much done by the first."""

COMPARING_SECONDS = 1.0
"""What comparing with the state before the edit gets at least: without it, a finished verdict could not be told."""

MAX_HEARD = 200
"""Files of one server that are looked at in the background because it complains of them."""

MAX_BROKEN = 200
"""Conversations whose broken files are remembered."""


class BrokenSearch(Struct):
    """One run: the files that wait for their check, and what was found so far."""

    edits: Sequence[EditedText]
    limit: float
    world: int
    """In which it began."""
    heard: KnownFindings = KnownFindings()
    since: Sequence[EditedText] = ()
    """The same files with their texts before the first edit whose effect is not known."""
    settings: Collection[AbsPath] = ()
    """Files that were changed with these and configure servers."""
    until: float = 0.0
    """How far the deadline may be moved for servers that still load."""
    waits_since: float | None = None
    """When an agent began to wait."""
    _unlikely: set[AbsPath] = field(default_factory=set[AbsPath])
    _unlikely_until: float = inf
    """While only files that are probably not broken wait, and an agent for them."""
    waiting: deque[AbsPath] = field(default_factory=deque[AbsPath])
    found: dict[AbsPath, FileVerdict] = field(default_factory=dict[AbsPath, FileVerdict])
    unjudged: dict[AbsPath, FileVerdict] = field(default_factory=dict[AbsPath, FileVerdict])
    changes: dict[AbsPath, Comparison] = field(default_factory=dict[AbsPath, Comparison])
    _candidates: dict[AbsPath, None] = field(default_factory=dict[AbsPath, None])
    is_sound: bool = True
    """Whether no file outside of the candidates can be affected."""
    whole: bool = True
    uncompared: set[AbsPath] = field(default_factory=set[AbsPath])
    """Files of which it is not known what earlier edits broke in them, because it could not be had in time."""
    given: dict[AbsPath, FileVerdict] = field(default_factory=dict[AbsPath, FileVerdict])
    """Verdicts that need no check."""
    said: dict[AbsPath, tuple[str, FileAccount]] = field(default_factory=dict[AbsPath, tuple[str, FileAccount]])
    """What a server said of files before the edits."""

    @property
    def before(self) -> dict[AbsPath, str | None]:
        return _texts_before(self.edits)

    @property
    def changes_since(self) -> list[Sequence[EditedText]]:
        """The edits, and what they are together with earlier ones whose effect is not known yet."""
        return [self.edits, *([self.since] if self.since and self.since != self.edits else [])]

    @property
    def deadline(self) -> float:
        return min(self.limit, self._unlikely_until)

    @property
    def comparing_seconds(self) -> float:
        return max(self.left, COMPARING_SECONDS if self._unlikely_until == inf else 0.0)

    @property
    def left(self) -> float:
        return self.deadline - current_time()

    @property
    def candidates(self) -> frozenset[AbsPath]:
        return frozenset(self._candidates)

    def is_comparable(self, workspace: Workspace, verdict: FileVerdict) -> bool:
        """Whether the texts before the edits are all known and can be shown: then a longer look tells what is new."""
        is_shown = None not in self.before.values() and not self.settings
        return is_shown and (not self.deleted or _finds_unsaved(workspace, verdict))

    @property
    def deleted(self) -> list[AbsPath]:
        return [edit.path for edit in self.edits if edit.after is None]

    def add(self, workspace: Workspace, affected: Affected) -> None:
        self.is_sound = self.is_sound and affected.complete
        self._unlikely |= affected.unlikely
        self._unlikely_until = inf
        before = self.before
        for path in affected.files:
            is_new = path not in before and path not in self._candidates
            if is_new and os.path.isfile(path) and workspace.serves(path):
                self._candidates[path] = None
                self.waiting.append(path)

    def next_part(self, size: int) -> list[AbsPath]:
        """Never likely files with others, for which an agent waits no longer than it has waited by then."""
        self.waiting = deque(sorted(self.waiting, key=self._unlikely.__contains__))
        likely = sum(path not in self._unlikely for path in self.waiting)
        if not likely and self.waits_since is not None and self._unlikely_until == inf:
            now = current_time()
            self._unlikely_until = now + max(UNLIKELY_SECONDS, now - self.waits_since)
        return [self.waiting.popleft() for _ in range(min(size, likely or len(self.waiting)))]

    def result(self) -> BrokenFiles:
        candidates, uncompared = len(self.candidates), len(self.uncompared & self.found.keys())
        settled = self.is_sound and len(self.found) + len(self.unjudged) == candidates and not uncompared
        left = [path for path in self._candidates if path not in self.found and path not in self.unjudged]
        return BrokenFiles(
            tuple(self.found.values()),
            self.changes,
            candidates,
            settled and not self.unjudged,
            self.whole,
            uncompared,
            tuple(self.unjudged.values()),
            settled,
            tuple(left),
        )

    def sift(self, verdicts: Mapping[AbsPath, FileVerdict]) -> dict[AbsPath, FileVerdict]:
        """Those that a server has judged, or that are refused; the others are kept apart."""
        self.unjudged |= {path: one for path, one in verdicts.items() if one.is_withheld}
        return {path: one for path, one in verdicts.items() if not one.is_withheld}


class ProjectCheck:
    def __init__(
        self,
        access: Access,
        runner: CheckRunner,
        proposal_runner: ProposalRunner,
        states: FileStates,
        words: ProjectWords,
        reports: ProjectReports,
    ) -> None:
        self._runner = runner
        self._access = access
        self._reports = reports
        self._proposal_runner = proposal_runner
        self._states = states
        self._words = words
        self._affected = AffectedFiles(words)
        self._broken: Recent[tuple[str | None, AbsPath], set[AbsPath]] = Recent(MAX_BROKEN)
        """By host and workspace: the files that were told to be broken and have not been seen mended."""

    async def run(self, visit: Visit, search: BrokenSearch, also: Collection[AbsPath] = ()) -> BrokenFiles:
        """What these edits broke elsewhere, as far as it can be known by the deadline.

        `also`: files that are looked at whatever is said of them.
        """
        workspace, known = visit.workspace, self._broken_of(visit)
        broken = {*known, *also}
        self._wait_while_loading(workspace, search, search.before)
        for target in searched_roots(workspace, search.before):
            led = await self._led(visit, target, search, broken)
            if led is not None:
                search.add(workspace, led)
                await self._judge_waiting(visit, search)
            search.whole = search.whole and led is not None
            if led is None or (target.foreign and led is not NOBODY):
                await self._judge_by_name(visit, target, search, broken, has_account=led is not None)
            self._reports.judged(target, search.found.values(), edited=search.before)
        for path, change in search.changes.items():
            if change.introduced:
                known.add(path)
            elif change.fixed:
                known.discard(path)
        if search.is_sound and not search.whole:
            for edits in search.changes_since:
                self._states.explain(_texts_before(edits), search.candidates, search.world)
        return search.result()

    async def _judge_by_name(
        self,
        visit: Visit,
        target: SearchedRoot,
        search: BrokenSearch,
        broken: Collection[AbsPath],
        *,
        has_account: bool,
    ) -> None:
        """`has_account`: the files of the server's own kinds are known."""
        by_name = await self._affected_by(target, search, broken)
        if has_account:
            search.add(visit.workspace, by_name.only(target.foreign))
        else:
            found, candidates = ServerAccount(), (*broken, *by_name.files)
            for edits in search.changes_since:
                said = await server_affected(self._access, visit, target, edits, candidates, search.deadline)
                if said is None:
                    found = None
                    break
                found = found.joined(said)
            search.add(visit.workspace, by_name if found is None else found.instead_of(by_name))
        while search.waiting and search.left > 0:
            await self._judge_waiting(visit, search)
            # What was said of the files that were opened for this is no news; of others, open or not, it is.
            search.add(visit.workspace, Affected(tuple(self._spoken_of(target.root)), complete=True))

    async def rejudge(self, visit: Visit, files: Sequence[AbsPath], search: BrokenSearch) -> BrokenFiles:
        """What a change of settings broke in these files."""
        search.whole = False
        search.add(visit.workspace, Affected(tuple(files), complete=True))
        if self._runner.seconds_of_starting(visit.workspace, files) < search.left:
            await self._judge_waiting(visit, search)
        # Else nobody waits for nothing: the server, which is started anew, would not be back in time.
        return search.result()

    async def _led(
        self,
        visit: Visit,
        target: SearchedRoot,
        search: BrokenSearch,
        broken: Collection[AbsPath],
    ) -> Affected | None:
        """The files that the server itself says have changed; None where the candidates must be found without it."""
        if answers_affected(target):
            # It knows better than names do whether an edit matters to others.
            return None
        edits = tuple(edit for edits in search.changes_since for edit in edits)
        paths = list(dict.fromkeys(edit.path for edit in await affecting(edits)))
        if not paths:
            search.whole = False
            return NOBODY
        found = await self._reports.changed(visit, target, paths, search.deadline)
        if found is None:
            return None
        search.given |= found.verdicts
        search.said |= {path: (found.server, before) for path, before in found.files.items() if before is not None}
        return Affected(tuple(dict.fromkeys((*broken, *found.files))), found.complete)

    async def as_they_are(
        self,
        workspace: Workspace,
        edits: Sequence[EditedText],
        deadline: float,
        check: Checking,
    ) -> BrokenFiles:
        """The files that edits which are not on disk may break, as they are now."""
        search = BrokenSearch(edits, deadline, self._states.world)
        for target in searched_roots(workspace, (edit.path for edit in edits)):
            search.add(workspace, await self._affected_by(target, search))
        search.found |= search.sift(await checked(check, tuple(search.waiting), deadline))
        return search.result()

    async def _affected_by(
        self, target: SearchedRoot, search: BrokenSearch, broken: Collection[AbsPath] = ()
    ) -> Affected:
        if search.deleted and not self._words.is_followed(target.root):
            await self._runner.tell_deleted(target.root, search.deleted)
        files, complete = dict.fromkeys((*self._reports.owed(target), *self._spoken_of(target.root)), False), True
        for edits in search.changes_since:
            found = await self._affected.of_edits(target.root, edits, target.extensions, search.left, broken=broken)
            files |= {path: path in found.unlikely and files.get(path, True) for path in found.files}
            complete = complete and found.complete
        unlikely = frozenset(path for path, is_unlikely in files.items() if is_unlikely)
        return Affected(tuple(sorted(files, key=unlikely.__contains__)), complete, unlikely)

    def spoken_of(self, workspace: Workspace) -> list[AbsPath]:
        """Files of which the servers of a workspace have published errors that nobody has heard of."""
        roots, wanted = self._runner.roots(), workspace.config.feedback.severities
        found = (self._spoken_of(root, wanted, MAX_HEARD) for root in roots if workspace.holds(root))
        return list(dict.fromkeys(path for paths in found for path in paths))

    def _spoken_of(
        self, root: AbsPath, wanted: Collection[int] = tuple(Severity), most: int = MAX_SPOKEN
    ) -> list[AbsPath]:
        """Files, open or not, of which a server has published something else than what is known of them."""
        found = list[AbsPath]()
        for path, (server, push) in self._runner.spoken_of(root, most).items():
            known = self._states.last_listed(path)
            is_new = known is None or said(map(words_of, push.items)) != said_of(known, server)
            is_meant = any((one.severity or Severity.ERROR) in wanted for one in push.items)
            # Whoever works in another worktree is told.
            if is_new and is_meant and not is_of_linked_worktree(path, root):
                found.append(path)
        return found

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep the words of these roots, and what was told of them, no longer."""
        self._words.drop(is_meant)
        self._broken.drop(lambda key: is_meant(key[1]))

    def _wait_while_loading(self, workspace: Workspace, search: BrokenSearch, paths: Iterable[AbsPath]) -> None:
        """Of a server that has just begun, other files are awaited as long as the edited one (DIAG-5)."""
        loaded = current_time() + self._runner.seconds_of_loading(workspace, paths)
        search.limit = max(search.limit, min(loaded, search.until))

    async def _judge_waiting(self, visit: Visit, search: BrokenSearch) -> None:
        """Check what waits, the likeliest first, and compare it.

        In growing parts: a state before the edits is had for a whole part at once, and the first ones matter most.
        """
        given = {path: search.given[path] for path in search.waiting if path in search.given}
        search.waiting = deque(path for path in search.waiting if path not in given)
        self._wait_while_loading(visit.workspace, search, search.waiting)
        await self._take(visit, search, given)
        for verdict in given.values():
            self._states.put(verdict, search.world)
        search.heard.hear(search.result())
        size = FIRST_PART
        while search.waiting and search.left > 0:
            part = search.next_part(size)
            needs_share = search.left > COMPARING_SECONDS and not all(map(self._states.knows, part))
            until = search.deadline - (search.left * COMPARING_SHARE if needs_share else 0.0)
            found = search.sift(await self._check(visit, part, until))
            if current_time() >= until and search.left > 0:
                # They were cut off for the sake of comparing, which may need less; the servers may have almost done.
                cut_off = [path for path in part if path not in found and path not in search.unjudged]
                search.waiting.extendleft(reversed(cut_off))
            await self._take(visit, search, found)
            search.heard.hear(search.result())
            size *= 2

    async def _take(self, visit: Visit, search: BrokenSearch, verdicts: Mapping[AbsPath, FileVerdict]) -> None:
        """Compare these with what was before."""
        workspace = visit.workspace
        compared = await self._compare(visit, search, verdicts)
        states = {path: verdicts[path].checked for path in compared}
        compared = {path: with_late(one, search.heard.untold.get(path), states[path]) for path, one in compared.items()}
        changes = {path: _sorted(workspace, path, change, search.deleted) for path, change in compared.items()}
        wanted = workspace.config.feedback.severities
        # Nobody knows yet what is new in these: they count as not checked, and follow.
        unknown = [path for path, change in changes.items() if change.undated(wanted)]
        late = {path for path in unknown if search.is_comparable(workspace, verdicts[path])}
        search.found |= {path: one for path, one in verdicts.items() if path not in late}
        search.changes |= {path: one for path, one in changes.items() if path not in late}

    async def _check(self, visit: Visit, paths: Sequence[AbsPath], deadline: float) -> dict[AbsPath, FileVerdict]:
        """The verdicts on these files. What a check that was interrupted has found, and stands, is not asked again."""

        async def check(path: AbsPath, patience: Patience) -> Sequence[FileVerdict]:
            world = self._states.world
            if known := self.standing([path]):
                return list(known.values())
            found = await self._runner.run(visit, [path], patience=patience, anew=True)
            for one in found:
                if one.is_final:
                    self._states.put(one, world)
            return found

        return await checked(check, paths, deadline)

    def standing(self, paths: Iterable[AbsPath]) -> dict[AbsPath, FileVerdict]:
        """The verdicts on these files that stand, where changes are noticed."""
        processes, roots = self._runner.processes(), list(filter(self._words.is_followed, self._runner.roots()))
        followed = [path for path in paths if any(is_inside(path, root) for root in roots)]
        found = {path: self._states.current(path, processes) for path in followed}
        return {path: one for path, one in found.items() if one is not None}

    async def _compare(
        self, visit: Visit, search: BrokenSearch, verdicts: Mapping[AbsPath, FileVerdict]
    ) -> dict[AbsPath, Comparison]:
        """What changed in each file; of one that was not checked before, against its state before the edits."""
        judged = {path: verdict for path, verdict in verdicts.items() if verdict.refused is None}
        first, *earlier = search.changes_since
        wanted = visit.workspace.config.feedback.severities
        found = await self._compare_with(visit, search, _texts_before(first), judged)
        for edits in earlier:
            since = await self._compare_with(visit, search, _texts_before(edits), judged)
            told = {path: still_there(search.heard.told.get(path), one.checked) for path, one in judged.items()}
            sifted = {path: _sorted(visit.workspace, path, change, search.deleted) for path, change in since.items()}
            search.uncompared |= {path for path, change in sifted.items() if change.undated(wanted)}
            found = {path: in_either(one, since[path], told[path]) for path, one in found.items()}
        return found

    async def _compare_with(
        self,
        visit: Visit,
        search: BrokenSearch,
        before: Mapping[AbsPath, str | None],
        judged: Mapping[AbsPath, FileVerdict],
    ) -> dict[AbsPath, Comparison]:
        """The same with the texts before some edits: where need be, judged once more with these."""
        workspace = visit.workspace
        earlier = {path: self._states.before(one, before, search.settings) for path, one in judged.items()}
        changes = {path: delta(earlier[path], one.checked) for path, one in judged.items()}
        wanted = workspace.config.feedback.severities
        unknown = {
            path: judged[path]
            for path, change in changes.items()
            if isinstance(change, NoBaseline) and _sorted(workspace, path, change, search.deleted).undated(wanted)
        }
        for path in unknown.keys() & search.said.keys():
            server, account = search.said[path]
            changes[path] = since_said(account, unknown.pop(path).diagnostics, server)
        blind = {path: one for path, one in unknown.items() if search.deleted and not _finds_unsaved(workspace, one)}
        if blind:
            specs = {path: [workspace.specs[each.server] for each in one.outcomes] for path, one in blind.items()}
            codes = {path: {code for one in found for code in one.imports.unresolved} for path, found in specs.items()}
            judged_by_import = {
                path: broken_by_deletion(one.checked, search.deleted, codes[path]) for path, one in blind.items()
            }
            # Where no import tells, nobody knows.
            changes |= {path: change for path, change in judged_by_import.items() if change.introduced}
            unknown = {path: one for path, one in unknown.items() if path not in blind}
        if not unknown or None in before.values() or search.settings:
            return changes
        texts = {path: text for path, text in before.items() if text is not None}
        shown = {path: verdict.text for path, verdict in unknown.items()}
        for earlier in await self._proposal_runner.run(visit, texts, shown, search.comparing_seconds):
            if earlier.is_final and earlier.path in unknown:
                changes[earlier.path] = delta(earlier.checked, unknown[earlier.path].checked)
                self._states.put_before(earlier, before)
        return changes

    def _broken_of(self, visit: Visit) -> set[AbsPath]:
        key = visit.client.host, visit.workspace.root
        if (known := self._broken.get(key)) is None:
            self._broken.put(key, known := set[AbsPath]())
        return known


def _texts_before(edits: Sequence[EditedText]) -> dict[AbsPath, str | None]:
    return {edit.path: edit.before for edit in edits}


def _finds_unsaved(workspace: Workspace, verdict: FileVerdict) -> bool:
    return all(workspace.specs[one.server].imports.finds_unsaved for one in verdict.outcomes)


def _sorted(workspace: Workspace, path: AbsPath, change: Comparison, deleted: Collection[AbsPath]) -> Comparison:
    return without_missing_packages(workspace, path, change, deleted)[0]
