"""What patches of one base introduce, one patch after the other, in a copy of the project that only this uses.

A server goes from one patch straight to the next: files that both leave alone are not touched, and nothing is put back
in between. A patch is judged by the files that it changes and by all that it may break elsewhere, each compared with
its state at the base. Where the server accounts for its whole project, it names those files; elsewhere they are all
that cannot be proven to be unaffected (`affected`). A state at the base is had when it is first needed, and kept for
every later patch.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import State, answer_from
from pilotfish.api.questions import Operation
from pilotfish.errors import Code
from pilotfish.feedback.delta import Account, CheckedText, Delta, changed_files, delta
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.service.diagnostics.affected import AffectedFiles, EditedText, SearchedRoot, affecting, searched_roots
from pilotfish.service.diagnostics.file_states import PROSE
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict, effort_of
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time
from pilotfish.system.source_files import files_below
from pilotfish.system.tasks import a_few_at_once

AT_ONCE = 4
"""Files under way at a server."""

PATCH_SECONDS = 300.0
"""For finding the files of one patch; every check has its own limit."""

LONG = 3
"""States at the base that a batch has needed before more are had than it needs."""

AHEAD = 40
"""How many more, each time that a server is taken back to the base: that costs more than a few checks there."""

PATIENCE = Patience(first=90.0, later=60.0)

PASSING = frozenset(
    {
        Code.SERVER_START_FAILED,
        Code.INIT_TIMEOUT,
        Code.SERVER_CRASHED,
        Code.SERVER_HUNG,
        Code.PROTOCOL_ERROR,
        Code.REQUEST_TIMEOUT,
        Code.OVERLOADED,
        Code.CRASH_LOOP,
    }
)
"""Failures that another try may not meet."""

NO_SERVER = "no server is for any file of this patch"


class PatchVerdict(Struct, frozen=True):
    """By path below the root, what came and what went."""

    introduced: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict[str, tuple[Diagnostic, ...]])
    fixed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict[str, tuple[Diagnostic, ...]])
    state: State = State.FRESH
    reason: str | None = None
    may_pass: bool = False
    """Something failed that may not fail again: a server died or was late."""


class SharedStates(Struct):
    """What is known of the files of a base, by path below the root, by all copies of it in this process."""

    files: dict[str, CheckedText] = field(default_factory=dict[str, CheckedText])
    asking: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])
    """Files that some copy is asking for; set when it has its answer, whatever that is."""
    ahead: set[str] = field(default_factory=set[str])
    """Files that some copy has asked for before a patch needed it."""


class BaseStates(Struct):
    """What is known of the base by one copy."""

    shared: SharedStates = field(default_factory=SharedStates)
    part: tuple[int, int] = (0, 1)
    """Of the files to be asked for ahead, the third, say, of five parts: other copies have the others."""
    is_long: bool = False
    """So many patches are to be judged that most files are needed."""
    accounts: dict[AbsPath, Account | None] = field(default_factory=dict[AbsPath, Account | None])
    """By root of a server: what it said of its whole project; None where it cannot be asked for that."""


class CopyMoves(Struct, frozen=True):
    """How whoever owns the copy moves its files to the base and to the patch."""

    to_base: Callable[[], Awaitable[None]]
    to_patch: Callable[[], Awaitable[None]]


class PatchChecks:
    """What it takes to judge patches. `in_step` tells the servers what was written."""

    def __init__(
        self,
        runner: CheckRunner,
        reports: ProjectReports,
        words: ProjectWords,
        in_step: Callable[[Visit], Awaitable[Visit]],
    ) -> None:
        self.runner, self.reports, self.words, self.in_step = runner, reports, words, in_step

    def of(
        self,
        visit: Visit,
        edits: Sequence[EditedText],
        moves: CopyMoves,
        states: BaseStates,
        *,
        with_hints: bool = True,
    ) -> "PatchCheck":
        """The check of one patch. The texts before its edits are those of the base; without one, the file is new.

        `with_hints` must be the same for all patches with the same states. Raises `Unavailable` after `"lsp": false`.
        """
        visit.workspace.require_enabled()
        return PatchCheck(self, visit, edits, moves, states, with_hints)

    async def check(
        self, visit: Visit, paths: Sequence[AbsPath], *, others: bool, with_hints: bool
    ) -> list[FileVerdict]:
        """The verdicts on files as they are; `others`: not these were changed, but what they may depend on."""
        found, run = list[FileVerdict](), self.runner.run

        async def one(path: AbsPath) -> None:
            found.extend(await run(visit, [path], patience=PATIENCE, anew=others, with_hints=with_hints))

        await a_few_at_once(one, paths, AT_ONCE)
        return found


class PatchCheck:
    """One patch: what is known of it so far, and where the copy is."""

    def __init__(
        self,
        checks: PatchChecks,
        visit: Visit,
        edits: Sequence[EditedText],
        moves: CopyMoves,
        states: BaseStates,
        with_hints: bool,  # noqa: FBT001 -- `PatchChecks.of` names it
    ) -> None:
        self._checks = checks
        self._visit = visit
        self._workspace = visit.workspace
        self._edits = edits
        self._moves = moves
        self._states = states
        self._with_hints = with_hints
        self._own = [edit.path for edit in edits if visit.workspace.serves(edit.path)]
        self._targets = searched_roots(visit.workspace, self._own)
        self._deadline = current_time() + PATCH_SECONDS
        self._is_complete = True
        self._shared = states.shared
        self._bases = states.shared.files
        self._created = {edit.path for edit in edits if edit.before is None}
        self._gone = {edit.path for edit in edits if edit.after is None}
        self._is_patched = False
        self._verdicts: dict[AbsPath, FileVerdict] = {}
        self._deltas: dict[AbsPath, Delta] = {}
        self._unknown: dict[AbsPath, FileVerdict] = {}
        """Files whose state at the base was not had."""

    async def begin(self) -> None:
        """Start the servers of these roots at the base, and have their account of it."""
        for target in self._targets:
            if target.root not in self._states.accounts:
                await self._move(to_patch=False)
                await self._know(self._own)
                whole = await self._checks.reports.whole(self._visit, target, self._deadline)
                self._states.accounts[target.root] = whole

    async def judge(self) -> PatchVerdict:
        await self.begin()
        edits, workspace, accounts = self._edits, self._workspace, self._states.accounts
        if any(not workspace.serves(edit.path) and not edit.path.endswith(PROSE) for edit in edits):
            # A configuration, or whatever else may concern any file.
            await self._compare(self._own)
            every = await anyio.to_thread.run_sync(lambda: [*filter(workspace.serves, files_below(workspace.root))])
            await self._compare(every, others=True)
            return self._verdict()
        await self._move(to_patch=True)
        found = dict[AbsPath, None]()
        seen = await affecting(edits)
        led = [target for target in self._targets if seen and accounts.get(target.root) is not None]
        searched = [target for target in self._targets if seen and target not in led]
        for target in searched:
            found |= dict.fromkeys(await self._affected_by(target, seen))
        # All that is needed of the base, before the first check of the patch.
        await self._know((*self._own, *found))
        await self._compare(self._own)
        for target in led:
            now = await self._checks.reports.whole(self._visit, target, self._deadline)
            self._is_complete = self._is_complete and now is not None
            found |= dict.fromkeys(changed_files(accounts[target.root] or {}, now or {}))
        await self._compare(found, others=True)
        return self._verdict()

    async def _affected_by(self, target: SearchedRoot, edits: Sequence[EditedText]) -> Iterable[AbsPath]:
        words = self._checks.words
        if not words.is_followed(target.root):
            deleted = [edit.path for edit in edits if edit.after is None]
            await self._checks.runner.tell_deleted(target.root, deleted)
        found = await AffectedFiles(words).of_edits(target.root, edits, target.extensions, self._left)
        self._is_complete = self._is_complete and found.complete
        return found.files

    @property
    def _left(self) -> float:
        return self._deadline - current_time()

    async def _move(self, *, to_patch: bool) -> None:
        if not (to_patch and self._is_patched):
            await (self._moves.to_patch if to_patch else self._moves.to_base)()
            self._is_patched = to_patch
            await self._checks.in_step(self._visit)

    async def _know(self, paths: Iterable[AbsPath]) -> None:
        """Have the states of these files at the base: what another copy is asking for, it is left to find."""
        wanted = [path for path in dict.fromkeys(paths) if path not in self._created]
        while wanted := [one for one in wanted if self._named(one) not in self._bases and one not in self._unknown]:
            free = [path for path in wanted if self._named(path) not in self._shared.asking]
            if free:
                await self._ask(free)
                wanted = [path for path in wanted if path not in free]
            else:
                await self._shared.asking[self._named(wanted[0])].wait()

    async def _ask(self, needed: Collection[AbsPath]) -> None:
        """Ask for the states of these files at the base; of others, too, where the server had to go back to it."""
        asked, answered = [*needed], anyio.Event()
        asking = dict.fromkeys(map(self._named, needed), answered)
        self._shared.asking |= asking
        try:
            if self._is_patched or self._states.is_long:
                ahead = await self._ahead()
                asked += ahead
                asking |= dict.fromkeys(map(self._named, ahead), answered)
                self._shared.asking |= asking
            if self._is_patched:
                await self._move(to_patch=False)
            verdicts = await self._checks.check(self._visit, asked, others=False, with_hints=self._with_hints)
        finally:
            for name in asking:
                del self._shared.asking[name]
            answered.set()
        for verdict in verdicts:
            if verdict.is_fresh:
                self._bases[self._named(verdict.path)] = self._state(verdict)
            elif verdict.path in needed:
                self._unknown[verdict.path] = verdict

    async def _ahead(self) -> list[AbsPath]:
        """Files that later patches may need, and that nobody asks for."""
        if not self._states.is_long and len(self._bases) < LONG:
            return []
        number, parts = self._states.part
        every = list[AbsPath]()
        for target in self._targets:
            files = await self._checks.words.files(target.root, self._left)
            every += [path for path in (files.files if files else ()) if path.endswith(tuple(target.extensions))]
        known = self._bases.keys() | self._shared.asking.keys() | self._shared.ahead
        found = list(islice((path for path in every[number::parts] if self._named(path) not in known), AHEAD))
        self._shared.ahead.update(map(self._named, found))
        return found

    async def _compare(self, paths: Iterable[AbsPath], *, others: bool = False) -> list[AbsPath]:
        """Check files as patched; returns those that differ from the base."""
        new = [path for path in dict.fromkeys(paths) if path not in self._verdicts and path not in self._deltas]
        await self._know(new)
        await self._move(to_patch=True)
        for path in self._gone.intersection(new):
            before = self._bases.get(self._named(path), CheckedText("", ()))
            self._deltas[path] = Delta((), (), before.diagnostics)
        there = [path for path in new if path not in self._gone]
        for verdict in await self._checks.check(self._visit, there, others=others, with_hints=self._with_hints):
            path = verdict.path
            self._verdicts[path] = verdict
            before = CheckedText("", ()) if path in self._created else self._bases.get(self._named(path))
            change = None if before is None else delta(before, self._state(verdict))
            if isinstance(change, Delta) and verdict.is_fresh:
                self._deltas[path] = change
        return [path for path in new if (found := self._deltas.get(path)) and (found.introduced or found.fixed)]

    def _verdict(self) -> PatchVerdict:
        introduced = {self._named(path): one.introduced for path, one in self._deltas.items() if one.introduced}
        fixed = {self._named(path): one.fixed for path, one in self._deltas.items() if one.fixed}
        own = [self._verdicts[path] for path in self._own if path in self._verdicts]
        others = [verdict for path, verdict in self._verdicts.items() if path not in self._own]
        asked = [*own, *self._unknown.values(), *(one for one in others if one.refused is None)]
        if not asked and self._is_complete:
            # Of a file that is gone and that nobody needs, there is nothing to ask.
            is_known = not self._gone.isdisjoint(self._own)
            return PatchVerdict({}, fixed) if is_known else PatchVerdict(state=State.UNAVAILABLE, reason=NO_SERVER)
        effort = effort_of(asked, [one for one in others if one.refused is not None], current_time())
        if not self._is_complete:
            effort = replace(effort, caveats=(*effort.caveats, "not every file that the patch may break is known"))
        meta = answer_from(Operation.DIAGNOSTICS, introduced, effort).meta
        outcomes = [outcome for verdict in asked for outcome in verdict.outcomes if not outcome.is_fresh]
        failures = [outcome.failure.code for outcome in outcomes if outcome.failure is not None]
        is_late = any(outcome.failure is None and outcome.diagnostics is None for outcome in outcomes)
        may_pass = not self._is_complete or is_late or not PASSING.isdisjoint(failures)
        return PatchVerdict(introduced, fixed, meta.state, meta.reason, may_pass=may_pass)

    def _named(self, path: AbsPath) -> str:
        return path.removeprefix(f"{self._workspace.root}/")

    def _state(self, verdict: FileVerdict) -> CheckedText:
        """What is said of a file, without the place of this copy in it: those of one base are compared."""
        root, original = self._workspace.root, self._visit.client.copy_of or self._workspace.root

        def placed(one: Diagnostic) -> Diagnostic:
            said = one.message
            message = said.replace(f"{root}/", "").replace(root, original)
            return replace(one, message=message) if root in said else one

        return CheckedText(verdict.text, tuple(map(placed, verdict.diagnostics)))
