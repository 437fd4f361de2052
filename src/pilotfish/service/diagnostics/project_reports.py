"""Which files changed by the server's own account of its whole project, where it gives one (DIAG-11).

A server that judges all of its project names every file that an edit broke, also where no name tells. It is asked in
the way that the catalogue names (`ProjectScope`), and what it says now is compared with what it said before: the files
with something new are then checked and compared like any others. Where it cannot be asked so, where it was never asked
before, or where that takes too long, there is no answer here.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from math import inf

import anyio
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Failure, Refused
from pilotfish.feedback.delta import Account, FileAccount, changed_files, said, said_of
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.policy.boundary import admit
from pilotfish.protocol.codec import Malformed, decode_items, items
from pilotfish.protocol.diagnostics import Report, diagnostics_of, words_of
from pilotfish.protocol.notebooks import is_notebook
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import path_of, uri_of
from pilotfish.protocol.wire import WireDiagnostic, WorkspaceDocumentDiagnosticReport
from pilotfish.servers.spec import ScopeKind
from pilotfish.service.diagnostics.affected import SearchedRoot
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.inquiry import BEGIN_SECONDS
from pilotfish.service.diagnostics.ledger import Ledger
from pilotfish.service.diagnostics.on_demand import COMMAND
from pilotfish.service.diagnostics.verdicts import FileVerdict, Outcome
from pilotfish.service.recent import Recent
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import is_of_linked_worktree

TRIES = 3
"""An answer during which something was sent may be of two states."""

MAX_ACCOUNT_SECONDS = 1.0
"""An account of the project that took longer is not waited for again: candidates are checked sooner."""

MAX_FIRST = 30
"""Files of which a server that was never listened to has spoken; after more, it told what it found at its start."""

MAX_LAST = 32
"""Servers whose last account is kept for the next process of the same root."""

PULL = "workspace/diagnostic"
LED = {ScopeKind.PROJECT_PULL, ScopeKind.PROJECT_COMMAND, ScopeKind.PROJECT_PUSH}


class ProjectChange(Struct, frozen=True):
    """The files of which the server says something else than before. `complete`: it has judged its whole project."""

    server: str
    files: Mapping[AbsPath, FileAccount | None]
    """With what it said before; None where that is not known."""
    complete: bool = True
    reports: Mapping[AbsPath, Report] = field(default_factory=dict[AbsPath, Report])
    """What it says now, as far as that is all it has to say."""
    verdicts: Mapping[AbsPath, FileVerdict] = field(default_factory=dict[AbsPath, FileVerdict])
    """The same, of files that only this server judges: they need no check."""


class _Account(Struct):
    """What one process last said of its whole project; `files` is None before the first time."""

    incarnation: float
    files: dict[AbsPath, FileAccount] | None = None
    heard: int = 0
    """The last arrival of a report that counts in it."""
    world: int = 0
    """The world that it is of, see `FileStates`."""
    seconds: float = 0.0
    """How long it took."""
    at: float = -inf
    """When it was given."""
    owed: dict[AbsPath, FileAccount | None] = field(default_factory=dict[AbsPath, FileAccount | None])
    """Files of which it said something else than before and that have not been judged since, with what it was."""


class ProjectReports:
    def __init__(self, access: Access, states: FileStates) -> None:
        self._access = access
        self._states = states
        self.accounts: Recent[tuple[str, AbsPath], _Account] = Recent(MAX_LAST)
        """By server and root."""

    async def changed(
        self,
        visit: Visit,
        target: SearchedRoot,
        edited: Sequence[AbsPath],
        deadline: float,
    ) -> ProjectChange | None:
        """What the server of a root says of its project otherwise than before; None where nobody knows."""

        async def work(session: Session) -> ProjectChange | None:
            ledger, account = self._access.ledgers.of(session), self._account(session, target)
            await ledger.until_in_step(deadline - current_time())
            is_late, world, given_at = self._is_late(account, edited), self._states.world, account.at
            found = await self._ask(session, target, account, edited, deadline)
            if found is not None:
                # Of another worktree that it has read as well, whoever works there is told.
                mine = {path: one for path, one in found.files.items() if not is_of_linked_worktree(path, target.root)}
                account.owed = {**mine, **account.owed}
            account.owed = {path: self._comparable(account, path, edited) for path in account.owed}
            if account.at != given_at:
                account.world = world
            if found is None:
                return None
            if is_late:
                # What the edits broke may be in what it said before, too: names tell more.
                return None
            changes = ledger.changes
            # Where something is to be said of a verdict, the check of the file says it.
            limited = (
                ledger.behind is not None
                or visit.workspace.restriction(target.servers[0].spec, target.servers[0].root) is not None
            )
            verdicts = {} if limited or not found.complete else await self._verdicts(visit.workspace, session, found)
            whole = replace(found, files=dict(account.owed))
            return replace(whole, verdicts=verdicts) if ledger.changes == changes else whole

        return await self._use(visit, target, work, deadline)

    async def whole(self, visit: Visit, target: SearchedRoot, deadline: float) -> Account | None:
        """All that the server of a root says of its project now, where it can be asked for that."""

        async def work(session: Session) -> ProjectChange | None:
            ledger = self._access.ledgers.of(session)
            async with ledger.shared():
                for _ in range(TRIES):
                    changes = ledger.changes
                    reports = await session.pull_workspace(timeout=deadline - current_time())
                    if ledger.changes == changes:
                        return ProjectChange(session.server, {}, reports=_by_path(reports))
            return None

        if target.servers[0].spec.scope.kind is not ScopeKind.PROJECT_PULL:
            return None
        found = await self._use(visit, target, work, deadline)
        return found and {path: said(map(words_of, report.items)) for path, report in found.reports.items()}

    async def look(self, visit: Visit, target: SearchedRoot, path: AbsPath, deadline: float) -> None:
        """Learn what the server of a root says of its project now: the next change is compared with it.

        Again, too, when anything was changed since it was last asked: after a branch switch and back nobody knows
        otherwise what a moved or deleted file broke. What it says of edits that are not judged yet counts as late.
        """

        async def work(session: Session) -> ProjectChange | None:
            account = self._account(session, target)
            if account.files is None or self._states.has_any_changed(target.root, account.world):
                await self._access.ledgers.of(session).until_in_step(deadline - current_time())
                world, given_at = self._states.world, account.at
                await self._ask(session, target, account, [path], deadline)
                if account.at != given_at:
                    account.world = world
            return None

        await self._use(visit, target, work, deadline)

    def judged(self, target: SearchedRoot, verdicts: Iterable[FileVerdict], *, edited: Iterable[AbsPath]) -> None:
        """These files were checked, or are looked after by whoever edited them: nothing is owed of them."""
        for server, account in self._of_root(target.root):
            for path in edited:
                account.owed.pop(path, None)
            for verdict in verdicts:
                account.owed.pop(verdict.path, None)
                if account.files is not None and verdict.is_fresh:
                    account.files[verdict.path] = said_of(verdict.diagnostics, server)

    def owed(self, target: SearchedRoot) -> list[AbsPath]:
        """Files of a root of which the server said something else, and that have not been checked since."""
        return [path for _, account in self._of_root(target.root) for path in account.owed]

    def _of_root(self, root: AbsPath) -> list[tuple[str, _Account]]:
        """The accounts of servers that have one, each with the name of its server."""
        found = [(key[0], self.accounts.get(key)) for key in self.accounts if key[1] == root]
        return [(server, account) for server, account in found if account is not None]

    def _account(self, session: Session, target: SearchedRoot) -> _Account:
        """A new process is compared with what the one before it said, where both are asked: a file that was moved may
        end a server, and what the move broke is to be told all the same."""
        key = session.server, target.root
        known = self.accounts.get(key)
        if known is None or known.incarnation != session.started_at:
            last, known = known, _Account(session.started_at)
            if last is not None and target.servers[0].spec.scope.kind is ScopeKind.PROJECT_PULL:
                known = replace(known, files=last.files, world=last.world, at=last.at, owed=last.owed)
            self.accounts.put(key, known)
        return known

    def _comparable(self, account: _Account, path: AbsPath, edited: Sequence[AbsPath]) -> FileAccount | None:
        """What the server said of a file, if its world differs from the present one by these edits alone."""
        changed = self._states.changed_since(account.world, path)
        # A folder comes and goes with what is in it.
        others = [one for one in changed or () if not any(is_inside(own, one) for own in edited)]
        return None if changed is None or others else account.owed[path]

    def _is_late(self, account: _Account, edited: Sequence[AbsPath]) -> bool:
        """Whether the last account was given when one of the edits was on disk already: it may speak of that."""
        for path in edited:
            # Of a deleted file only its last text is known, and how old that was.
            age = self._access.texts.age(path) if os.path.exists(path) else None
            if age is not None and account.at > current_time() - age:
                return True
            if age is None and account.files is not None and not self._states.has_changed(path, account.world):
                return True
        return False

    async def _verdicts(
        self, workspace: Workspace, session: Session, found: ProjectChange
    ) -> dict[AbsPath, FileVerdict]:
        verdicts: dict[AbsPath, FileVerdict] = {}
        for path, report in found.reports.items():
            try:
                file = await self._access.texts.current(admit(path, workspace.boundary).path)
            except Refused:
                continue
            judges = [one.spec.id for one in workspace.servers_for(path, file.text.partition("\n")[0]).servers]
            is_open = session.documents.is_open(path)
            # What a server reads itself of a notebook has other lines than what it is sent.
            is_as_on_disk = session.documents.text(path).string == file.text if is_open else not is_notebook(path)
            if judges == [session.server] and is_as_on_disk and file.path == path:
                text, encoding = Text(file.text), session.encoding
                diagnostics = diagnostics_of(report, text=text, encoding=encoding, server=session.server, path=path)
                outcome = Outcome(
                    session.server,
                    diagnostics,
                    skipped=report.skipped,
                    judged=file.text,
                    incarnation=session.started_at,
                )
                verdicts[path] = FileVerdict(path, file.text, (outcome,))
        return verdicts

    async def _use(
        self,
        visit: Visit,
        target: SearchedRoot,
        work: Callable[[Session], Awaitable[ProjectChange | None]],
        deadline: float,
    ) -> ProjectChange | None:
        candidate = target.servers[0]
        if len(target.servers) > 1 or candidate.spec.scope.kind not in LED:
            return None
        server, left = self._access.server(visit.workspace, candidate), max(0.0, deadline - current_time())
        try:
            return await self._access.use_server(server, visit.client.id, work, seconds=left)
        except (Failure, Malformed):
            # The candidates are checked instead, and what is wrong is said there.
            return None

    async def _ask(
        self, session: Session, target: SearchedRoot, account: _Account, edited: Sequence[AbsPath], deadline: float
    ) -> ProjectChange | None:
        spec, ledger = target.servers[0].spec, self._access.ledgers.of(session)
        async with ledger.shared():
            match spec.scope.kind:
                case ScopeKind.PROJECT_PULL if session.supports(PULL):
                    return await _pulled(session, ledger, account, deadline)
                case ScopeKind.PROJECT_COMMAND if spec.scope.command in _commands(session):
                    about = {"Files": [uri_of(path) for path in edited]}
                    asked = {"command": spec.scope.command, "arguments": [about]}
                    await session.request(COMMAND, asked, timeout=deadline - current_time())
                    return _pushed(session, account, is_done=True)
                case ScopeKind.PROJECT_PUSH if await _has_begun(session, token := spec.scope.progress or ""):
                    restarts = spec.freshness.restarts_check
                    is_done = await _is_over(session, token, edited, deadline, restarts=restarts)
                    spoken = session.reports.pushed_since(account.heard)
                    is_partial = account.files is None and all(map(session.documents.is_open, spoken))
                    if spec.scope.starts_with_open and is_partial:
                        # It has never published about a file that is not open.
                        return None
                    found = _pushed(session, account, is_done=is_done)
                    # With a second check, neither what is published nor what is answered is all.
                    return found and (found if spec.freshness.save_progress is None else replace(found, reports={}))
                case _:
                    return None


async def _has_begun(session: Session, token: str) -> bool:
    """Whether the check runs, or has run, that the last save has started: it begins a moment later."""
    with anyio.move_on_after(BEGIN_SECONDS):
        while session.readiness.is_behind(token) and not session.readiness.has_begun(token):
            await session.changed.wait()
    return session.readiness.has_begun(token)


async def _is_over(session: Session, token: str, edited: Sequence[AbsPath], deadline: float, *, restarts: bool) -> bool:
    """Wait until the check that a save has started is over and all that it found is here; False: not in time."""
    with anyio.CancelScope(deadline=deadline):
        while True:
            left = session.readiness.last_end(restarts=restarts) - current_time()
            if left <= 0 and session.readiness.has_ended(token):
                break
            with anyio.move_on_after(left if left > 0 else None):
                await session.changed.wait()
        opened = next((path for path in (*edited, *session.documents.paths) if session.documents.is_open(path)), None)
        if opened is not None and session.supports("textDocument/diagnostic", opened):
            # Its findings may be a moment behind its end; an answer to a later question is not.
            await session.pull(opened, timeout=max(0.1, deadline - current_time()))
        return True
    return False


async def _pulled(session: Session, ledger: Ledger, account: _Account, deadline: float) -> ProjectChange | None:
    if account.seconds > MAX_ACCOUNT_SECONDS:
        return None
    for _ in range(TRIES):
        started, changes = current_time(), ledger.changes
        reports = await session.pull_workspace(timeout=deadline - started)
        if ledger.changes == changes:
            before, found = account.files, _by_path(reports)
            now = {path: said(map(words_of, report.items)) for path, report in found.items()}
            account.files, account.at = now, current_time()
            if before is None:
                # The first one takes longer than any other.
                return None
            account.seconds = current_time() - started
            files = {path: before.get(path, FileAccount()) for path in changed_files(before, now)}
            nothing = Report((), None, 0)
            return ProjectChange(session.server, files, reports={path: found.get(path, nothing) for path in files})
    return None


def _pushed(session: Session, account: _Account, *, is_done: bool) -> ProjectChange | None:
    """What it has published since it was last listened to."""
    before, pushes = account.files, session.reports.pushed_since(account.heard)
    now = {path: said(map(words_of, push.items)) for path, push in pushes.items()}
    if is_done or before is not None:
        # A first account is none before it is whole: what it lacks would be taken for new.
        account.files, account.heard = {**(before or {}), **now}, session.reports.arrivals
        account.at = current_time()
    if before is None and sum(map(bool, now.values())) > MAX_FIRST:
        return None
    # Of a file that was closed, nothing of what was published is left: whatever is published again is looked at.
    ordered = sorted(now, key=lambda path: not now[path])
    files = {path: None if before is None else before.get(path, FileAccount()) for path in ordered}
    documents, current = session.documents, dict[AbsPath, Report]()
    for path, push in pushes.items():
        if push.version is None or not documents.is_open(path) or push.version >= documents.version(path):
            current[path] = push
    return ProjectChange(session.server, files, is_done, current)


def _by_path(reports: Sequence[WorkspaceDocumentDiagnosticReport]) -> dict[AbsPath, Report]:
    """Several providers may speak of one file."""
    found: dict[AbsPath, Report] = {}
    for report in reports:
        path = path_of(report.uri)
        if path is not None and report.items is not UNSET:
            decoded, known = decode_items(report.items, WireDiagnostic), found.get(path, Report((), None, 0))
            found[path] = Report((*known.items, *decoded.items), None, 0, skipped=known.skipped + decoded.skipped)
    return found


def _commands(session: Session) -> frozenset[object]:
    offers = session.capabilities.options(COMMAND)
    return frozenset(name for offer in offers for name in items(offer.get("commands")))
