"""Checks of files: all files, and all servers of each, at the same time and under one deadline."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import anyio
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.config.schema import TimingSettings
from pilotfish.config.trust import trust_advice
from pilotfish.errors import Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Want, admit
from pilotfish.pool.plan import Key, Rested, Stopping
from pilotfish.protocol.diagnostics import Report
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.servers.inputs import InputEvidence
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import Freshness, PullSupport
from pilotfish.service.diagnostics.check import Check
from pilotfish.service.diagnostics.inquiry import PULL
from pilotfish.service.diagnostics.ledger import FileToSend, Ledger
from pilotfish.service.diagnostics.missing_imports import without_components
from pilotfish.service.diagnostics.verdicts import FileVerdict, Outcome, no_verdict
from pilotfish.service.texts import Given, refuse_binary, text_to_send
from pilotfish.service.use_server import GRACE_SECONDS, Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import a_few_at_once, side_by_side

MAX_SPOKEN = 30
"""Files of one server that an edit waits for because it complains of them. One that complains of more when it is first
listened to has just begun, and speaks of what it found there."""


AT_ONCE = 2
"""Files that are checked side by side: a server has something to do while we read the next one. Most servers do one
thing at a time, and what they were asked for last stands in the way of the next edit."""


class Patience(Struct, frozen=True):
    """Seconds that a check may take, on the first use of a server and later. None: as configured."""

    first: float | None = None
    later: float | None = None
    loading: float = 0.0
    """A server in its first use has what that may take, up to this."""

    def without(self, seconds: float) -> "Patience":
        first, later = (None if one is None else max(0.0, one - seconds) for one in (self.first, self.later))
        return Patience(first, later, self.loading - seconds)


Checking = Callable[[AbsPath, Patience], Awaitable[Sequence[FileVerdict]]]
"""Checks one file as it is on disk."""


class CheckRunner:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._ledgers = access.ledgers
        self._pool = access.pool
        self._texts = access.texts
        self._touched: set[Key] = set()
        """Servers that have had the longer limit of a first use."""
        self._starts: dict[Key, float] = {}
        """Seconds from the check for which a server was started last to its verdict."""

    async def run(
        self,
        visit: Visit,
        paths: Sequence[str],
        *,
        given: Mapping[str, Given] | None = None,
        patience: Patience | None = None,
        anew: bool = False,
        with_hints: bool = True,
    ) -> tuple[FileVerdict, ...]:
        """One verdict per file; a file that cannot be read is refused in its own verdict.

        `given` are texts of these files that the caller has written, see `take`.

        `anew`: other files were changed, and not these. `with_hints`: False only for a server that nobody else asks.

        Raises `Unavailable` after `"lsp": false`.
        """
        workspace = visit.workspace
        workspace.require_enabled()
        files: dict[AbsPath, FileToSend] = {}
        refused: dict[AbsPath, FileVerdict] = {}
        for path in paths:
            try:
                file = await self._read(workspace, path, (given or {}).get(path))
            except Refused as refusal:
                named = AbsPath(os.path.join(workspace.boundary.cwd, path))
                refused[named] = FileVerdict(named, "", (), refusal)
            else:
                files[file.path] = file

        async def one(file: FileToSend) -> FileVerdict:
            return await self._file(visit, file, patience or Patience(), anew=anew, with_hints=with_hints)

        return (*await side_by_side(one, tuple(files.values())), *refused.values())

    async def run_until_certain(
        self,
        visit: Visit,
        paths: Sequence[str],
        patience: Patience,
        *,
        anew: bool = False,
    ) -> tuple[FileVerdict, ...]:
        """The same, once more where others were changed: of a file that is open already, some servers say nothing then
        when nothing is new, and after a pause that is only assumed."""
        started = current_time()
        verdicts = await self.run(visit, paths, patience=patience, anew=anew)
        doubtful = [verdict.path for verdict in verdicts if verdict.is_unsignalled]
        if not doubtful:
            return verdicts
        left = patience.without(current_time() - started)
        again = await self.run(visit, doubtful, patience=left, anew=True)
        # What is assumed is better than no verdict.
        certain = {one.path: one for one in again if one.answered}
        return tuple({**{one.path: one for one in verdicts}, **certain}.values())

    async def take(self, workspace: Workspace, texts: Mapping[str, str] | None) -> Mapping[str, Given]:
        """Take texts that a caller gives, as soon as they come: what is written to the files from now on is newer."""
        if not texts:
            return {}
        orders = {path: self._ledgers.next_order() for path in texts}

        async def one(named: tuple[str, str]) -> Given | None:
            path, text = named
            try:
                real = admit(path, workspace.boundary, Want.TARGET).path
            except Refused:
                # `run` refuses it.
                return None
            return await self._texts.given(real, text, orders[path])

        given = await side_by_side(one, tuple(texts.items()))
        return {path: found for path, found in zip(orders, given, strict=True) if found is not None}

    def sessions(self, root: AbsPath | None = None) -> list[tuple[Key, Session]]:
        """The servers that run and can be asked, of one root or of all."""
        entries = [(key, one) for key, one in self._pool.entries().items() if root is None or key.root == root]
        return [(key, one.session) for key, one in entries if one.session and one.usable]

    def processes(self) -> frozenset[tuple[str, float]]:
        """The same, each with its start time, without those that are started anew before they judge anything."""
        return frozenset((key.server, one.started_at) for key, one in self._current())

    def can_be_asked(self, verdict: FileVerdict) -> bool:
        """Whether all who judged a file answer questions: who only publishes may have said something else since."""
        sessions = {(key.server, one.started_at): one for key, one in self.sessions()}
        judges = [sessions.get((one.server, one.incarnation)) for one in verdict.outcomes]
        pulled = [one is not None and one.freshness.pull is not PullSupport.EMPTY for one in judges]
        return all(pulled) and all(one is not None and one.supports(PULL, verdict.path) for one in judges)

    def _current(self) -> list[tuple[Key, Session]]:
        return [(key, one) for key, one in self.sessions() if one.inputs is None or one.inputs.holds()]

    def seconds_of_loading(self, workspace: Workspace, paths: Iterable[AbsPath]) -> float:
        """What is left of the first use of the servers of such files: one that has just begun still loads."""
        timing = {key: workspace.settings(key.server).timing for key in self._servers_of(workspace, paths)}
        return max((self._left_of_first(key, one) for key, one in timing.items()), default=0.0)

    def seconds_of_starting(self, workspace: Workspace, paths: Iterable[AbsPath]) -> float:
        """What the servers of such files that must be started for their next verdict took for the first one before."""
        stopped = self._servers_of(workspace, paths).difference(key for key, _ in self._current())
        return max((self._starts.get(key, 0.0) for key in stopped), default=0.0)

    def _servers_of(self, workspace: Workspace, paths: Iterable[AbsPath]) -> set[Key]:
        kinds = {os.path.splitext(path)[1]: path for path in paths}
        servers = (candidate for path in kinds.values() for candidate in workspace.servers_for(path).servers)
        return {self._access.server(workspace, candidate).recipe.key for candidate in servers}

    def inputs(self) -> dict[tuple[str, AbsPath], InputEvidence]:
        """By server and root: what those go by that run or start."""
        entries = self._pool.entries().items()
        return {(key.server, key.root): one.inputs for key, one in entries if one.inputs is not None}

    def roots(self) -> frozenset[AbsPath]:
        """Of all servers that run."""
        return frozenset(key.root for key in self._pool.entries())

    def spoken_of(self, root: AbsPath, most: int = MAX_SPOKEN) -> dict[AbsPath, tuple[str, Report]]:
        """Files of which the servers of a root have complained since the last call, each with the server that did.

        Of very many the first ones; the others with the next call.
        """
        found: dict[AbsPath, tuple[str, Report]] = {}
        for key, session in self.sessions(root):
            if (ledger := self._ledgers.of(session)).heard == session.reports.arrivals:
                continue
            pushes = session.reports.pushed_since(ledger.heard).items()
            spoken = sorted((push.arrival, path, push) for path, push in pushes if push.items)
            has_just_begun = not ledger.heard and len(spoken) > MAX_SPOKEN
            now, later = ([], []) if has_just_begun else (spoken[:most], spoken[most:])
            found |= {path: (key.server, push) for _, path, push in now}
            ledger.heard = now[-1][0] if later else session.reports.arrivals
        return found

    async def tell_deleted(self, root: AbsPath, paths: Sequence[AbsPath]) -> None:
        """Tell the servers of a root of deleted files, where no watcher does."""
        changes = [PathChange(path, Change.DELETED) for path in paths]
        for _, session in self.sessions(root):
            ledger = self._ledgers.of(session)
            async with ledger.shared():
                session.tell_changes(changes)
                ledger.note_disk_change()
                for path in paths:
                    await self._ledgers.follow(session, path, gone=True)

    async def _read(self, workspace: Workspace, path: str, given: Given | None) -> FileToSend:
        """The file with the text to check: the caller's where given, which wins over the disk. Raises `Refused`."""
        if given is None:
            order, real = self._ledgers.next_order(), admit(path, workspace.boundary).path
            return FileToSend(real, "", (await self._texts.current(real)).text, order=order)
        real = admit(path, workspace.boundary, Want.TARGET).path
        refuse_binary(real, given.text)
        return FileToSend(real, "", text_to_send(real, given.text), order=given.order, given=given)

    async def _file(
        self, visit: Visit, file: FileToSend, patience: Patience, *, anew: bool, with_hints: bool
    ) -> FileVerdict:
        workspace = visit.workspace
        choice = workspace.servers_for(file.path, file.text.partition("\n")[0])

        async def one(candidate: Candidate) -> Outcome:
            if blocked := workspace.blockage(candidate.spec, file.path):
                return no_verdict(candidate.spec.id, blocked, 0.0)
            named = replace(file, language_id=candidate.language_id)
            return await self._on(visit, candidate, named, patience, anew=anew, with_hints=with_hints)

        ordered = await side_by_side(one, choice.servers)
        absent = (*([choice.missing] if choice.missing else []), *choice.withheld)
        ordered += [no_verdict(one.spec.id, workspace.why_unavailable(one), 0.0) for one in absent]
        # An edit that came during the check has brought its text, and that is what was judged.
        judged = next((one.judged for one in ordered if one.judged is not None), file.text)
        return FileVerdict(file.path, judged, without_components(workspace, file.path, choice, ordered))

    async def _on(
        self, visit: Visit, candidate: Candidate, file: FileToSend, patience: Patience, *, anew: bool, with_hints: bool
    ) -> Outcome:
        workspace = visit.workspace
        started = current_time()
        server = self._access.server(workspace, candidate)
        key = server.recipe.key
        timing = workspace.settings(candidate.spec.id).timing
        entry = self._pool.entries().get(key)
        _note_mentions(None if entry is None else entry.session, file)
        seconds = self._seconds(key, timing, patience)
        freshness, less = _allowed(workspace, candidate, with_hints=with_hints)

        async def work(session: Session) -> Outcome:
            nonlocal file
            _note_mentions(session, file)
            file, outcome = await self._judge(session, freshness, file, started + seconds, anew=anew)
            behind = self._behind(session)
            if behind is not None and outcome.is_fresh:
                outcome = replace(outcome, assumed=True, why=behind)
            if less is not None and outcome.is_fresh:
                why = f"the workspace is not trusted, so {less}. {trust_advice(workspace.root)}"
                outcome = replace(outcome, assumed=True, limited=True, why=why)
            self._ledgers.close_unused(session)
            self._ledgers.keep_habits(session)
            return replace(outcome, incarnation=session.started_at)

        try:
            outcome = await self._access.use_server(server, visit.client.id, work, seconds=seconds, grace=GRACE_SECONDS)
        except Failure as failure:
            outcome = no_verdict(candidate.spec.id, failure, current_time() - started)
        if not outcome.is_late or seconds >= timing.first_touch_timeout_ms / 1000:
            # One that was given less time, or was cut off, leaves the longer limit to the next. Only servers that the
            # pool knows: the set must not grow with every root ever opened.
            self._touched = {key, *(self._touched & self._pool.entries().keys())}
        self._count(key, outcome, started)
        return outcome

    def _behind(self, session: Session) -> str | None:
        """Why what a server says now is only assumed, and is no state to compare with later."""
        if session.inputs is not None and not session.inputs.holds():
            return "what it goes by has changed meanwhile"
        return self._ledgers.of(session).behind

    async def _judge(
        self, session: Session, freshness: Freshness, file: FileToSend, deadline: float, *, anew: bool
    ) -> tuple[FileToSend, Outcome]:
        """The check itself, with the text as it is by then."""
        ledger = self._ledgers.of(session)
        await ledger.until_in_step((deadline - current_time()) / 2)
        async with ledger.shared():
            file = await self._newest(file, ledger)
            file = replace(file, is_old=file.given is None and self._ledgers.is_older(file.path, session))
            check = Check(session, ledger, freshness, file)
            outcome = await (check.run_anew(deadline) if anew else check.run(deadline))
            if freshness.names_versions and outcome.is_unsignalled and not anew:
                # What it found at its start came after the text: of a file that is opened now it names the version.
                outcome = await Check(session, ledger, freshness, file).run_anew(deadline)
        return file, outcome

    async def _newest(self, file: FileToSend, ledger: Ledger) -> FileToSend:
        """The file as it is now, where it was read before the server could be told of changes in it."""
        looked = file.order or 0
        while looked < ledger.newest_change:
            # A text that stands may be overtaken while that is found out.
            looked = self._ledgers.next_order()
            with suppress(Refused):
                found = await self._texts.current(file.path)
                # A text that was given stands until somebody else writes the file.
                if file.given is None or self._texts.was_written_since(file.given, found):
                    file = replace(file, text=found.text, order=looked, given=None)
        return file

    def _seconds(self, key: Key, timing: TimingSettings, patience: Patience) -> float:
        entry = self._pool.entries().get(key)
        session = None if entry is None else entry.session
        inputs = None if session is None else session.inputs
        if entry is not None and (isinstance(entry.slot, Stopping | Rested) or (inputs and not inputs.holds())):
            # It was stopped, or will be, and starts again with the limit of a first use. One that failed has had it.
            self._touched.discard(key)
        # One that has answered a first question may still load what the next one is about.
        is_first = key not in self._touched
        left = timing.first_touch_timeout_ms / 1000 if is_first else self._left_of_first(key, timing)
        given = patience.first if is_first else patience.later
        if given is None:
            return left if is_first else max(timing.diagnostics_wait_timeout_ms / 1000, left)
        return max(given, min(left, patience.loading))

    def _left_of_first(self, key: Key, timing: TimingSettings) -> float:
        entry, first = self._pool.entries().get(key), timing.first_touch_timeout_ms / 1000
        if entry is not None and entry.session is not None:
            return first - (current_time() - entry.session.started_at)
        return 0.0 if key in self._touched else first

    def _count(self, key: Key, outcome: Outcome, started: float) -> None:
        if outcome.incarnation > started and outcome.diagnostics is not None:
            known = {one: seconds for one, seconds in self._starts.items() if one in self._pool.entries()}
            self._starts = {**known, key: current_time() - started}
        found = len(outcome.diagnostics or ())
        self._pool.counters.add_check(outcome.server, seconds=outcome.seconds, found=found, timed_out=outcome.is_late)


def _note_mentions(session: Session | None, file: FileToSend) -> None:
    """The file may name others that the server has read."""
    if session is not None and session.inputs is not None:
        session.inputs.mention(file.path, file.text)


def _allowed(workspace: Workspace, candidate: Candidate, *, with_hints: bool) -> tuple[Freshness, str | None]:
    """How the server is listened to, and why its verdicts are not whole where the workspace is not trusted."""
    freshness = candidate.spec.freshness
    if not with_hints and (asked := freshness.on_demand) is not None and asked.hints:
        # Without the requests that tell nothing else.
        requests = tuple(one for one in asked.requests if one not in asked.hints)
        freshness = replace(freshness, on_demand=replace(asked, requests=requests))
    restricted = workspace.restriction(candidate.spec, candidate.root)
    if restricted is not None and restricted.unchecked is not None:
        freshness = replace(freshness, unchecked=restricted.unchecked)
    if restricted is None or not restricted.incomplete:
        return freshness, workspace.ignored(candidate.spec.id)
    # The second check is what it gives up: nothing tells of its end.
    return replace(freshness, save_progress=None), restricted.reason


async def checked(check: Checking, paths: Sequence[AbsPath], deadline: float) -> dict[AbsPath, FileVerdict]:
    """The verdicts that are fresh, refused, or cannot be had, by the deadline."""
    found: dict[AbsPath, FileVerdict] = {}

    async def one(path: AbsPath) -> None:
        left = deadline - current_time()
        for verdict in await check(path, Patience(left, left)) if left > 0 else ():
            if verdict.is_final or verdict.refused is not None or verdict.is_withheld:
                found[path] = verdict

    with anyio.move_on_after(max(0.0, deadline - current_time())):
        await a_few_at_once(one, paths, AT_ONCE)
    return found
