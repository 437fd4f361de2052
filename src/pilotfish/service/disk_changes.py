"""Changes on disk, for all sessions: one watcher per root, shared by the servers of that root.

A write by a shell, git or a formatter reaches each server as LSP says: one notification for the paths that match its
globs, a new text for an open document, `didClose` for one whose file is gone.
`catch_up` delivers what the system reports by now, at once, before an answer. Otherwise changes are collected until
they stop, so that a branch switch is one notification per server.
Where a watcher is not available or fails, servers run without it, and `health` says so.
"""

import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Struct, field

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, Coalescer, PathChange, WatchRegistration, batch, may_match, wanted
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.diagnostics.on_demand import reread
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import is_in_worktree
from pilotfish.system.ports import Clock, Interest, OpenWatcher, Watcher, WatchHealth
from pilotfish.system.tasks import owned_tasks, side_by_side

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.1
"""Changes are delivered when none has come for this long. No answer waits for it: `catch_up` delivers at once."""

STEP_SECONDS = 0.025
"""How often changes are read meanwhile; the kernel's queue holds what git writes in ten times as long."""

GATHER_SECONDS = 5.0
"""Changes are delivered this long after the first one at the latest: a build may write for minutes."""

CATCH_UP_SECONDS = 10.0
"""How long an answer may wait that nobody gives longer: covering 40,000 files takes 0.5 s, a branch switch of as many
4 s. After that the answer says that changes are missing."""

SLACK_SECONDS = 0.02
"""File times may be behind the clock by this much."""

MAX_PENDING = 250_000
"""Changed paths in one notification, some 30 MB. A server that missed more is restarted."""

PIECE = 500
"""Changes that are dealt with in one go, which takes some milliseconds: a command may move a folder with thousands of
files, and everybody else must have their turn meanwhile."""

MAX_FOLDERS = 2_000
"""Documents whose folder is kept."""

Noticed = Callable[[AbsPath, Sequence[PathChange]], None]
"""Told of every change below a root."""


class _Member(Struct):
    """One session and the changes that it has not been sent yet."""

    session: Session
    started: float
    """Wall time of its start: it may have read any file since."""
    moves: tuple[int, int] | None = None
    """Versions of its capabilities and documents at the last look."""
    registrations: tuple[WatchRegistration, ...] = ()
    made_up: tuple[WatchRegistration, ...] = ()
    """Those for which it was sent what changed before they were watched."""
    documents: frozenset[AbsPath] = frozenset()
    folders: frozenset[AbsPath] = frozenset()
    """The folders of these."""
    has_news: bool = False
    is_behind: bool = False
    """It has not yet read again what it was told of."""
    pending: Coalescer = field(default_factory=lambda: Coalescer(MAX_PENDING))
    delivering: anyio.Lock = field(default_factory=anyio.Lock)

    def look(self) -> bool:
        """Whether something else must be watched since the last look."""
        moves = self.session.capabilities.moves, self.session.documents.moves
        if moves == self.moves:
            return False
        is_first, before = self.moves is None, (self.registrations, self.folders)
        self.moves = moves
        self.registrations = self.session.watchers()
        self.documents = frozenset(self.session.documents.paths)
        self.folders = frozenset(map(_folder, self.documents))
        return is_first or before != (self.registrations, self.folders)


class DiskChanges:
    def __init__(
        self,
        open_watcher: OpenWatcher | None,
        ledgers: Ledgers,
        clock: Clock,
        words: ProjectWords | None = None,
        noticed: Noticed = lambda _root, _changes: None,
    ) -> None:
        self._open_watcher = open_watcher
        self._ledgers = ledgers
        self._clock = clock
        self._words = words or ProjectWords()
        """Told of every change as well: they are of the files on disk."""
        self._noticed = noticed
        """And so are those who want to know what commands have changed."""
        self._roots: dict[AbsPath, _Root] = {}
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with owned_tasks() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    def join(self, session: Session) -> None:
        """Watch for a session that has just started, until it ends."""
        if self._tasks is not None and self._open_watcher is not None:
            ledger = self._ledgers.of(session)
            ledger.tell = partial(self._tell, session)
            ledger.in_step, ledger.behind = anyio.Event(), "changes on disk since its start are not known yet"
            self._tasks.start_soon(self._accompany, session, self._open_watcher)

    async def catch_up(self, concerns: Callable[[AbsPath], bool], seconds: float = CATCH_UP_SECONDS) -> None:
        """Deliver all changes on disk to the sessions of these roots now; takes at most so many seconds."""
        behind = [root for path, root in self._roots.items() if concerns(path) and not root.is_in_step()]
        if behind:
            await side_by_side(lambda root: root.catch_up(seconds), behind)

    async def _tell(self, session: Session) -> None:
        """The same for one session, from within a check."""
        root = self._roots.get(session.root)
        if root is not None and not root.is_in_step():
            await root.catch_up(CATCH_UP_SECONDS, session)

    def health(self, root: AbsPath) -> WatchHealth | None:
        """The state of the watcher of a root; None without one."""
        known = self._roots.get(root)
        return None if known is None else known.health

    def follows(self, root: AbsPath) -> bool:
        """Whether every change below a root is noticed as it happens."""
        health = self.health(root)
        return health is not None and health.degraded is None

    def covers(self, folder: AbsPath) -> bool:
        """The same of a folder that may lie below the root of a server."""
        return any(is_in_worktree(folder, root) and self.follows(root) for root in self._roots)

    async def _accompany(self, session: Session, open_watcher: OpenWatcher) -> None:
        root = self._roots.get(session.root)
        if root is None or root.failure is not None:
            root = root or _Root(session.root, self._ledgers, self._clock, self._words, self._noticed)
            self._roots[session.root] = root
            assert self._tasks is not None  # `join` looked
            self._tasks.start_soon(root.run, open_watcher)
        try:
            await root.accompany(session)
        except Exception:
            logger.exception("watching failed server=%s root=%s", session.server, session.root)
        finally:
            if root.is_deserted:
                del self._roots[session.root]


class _Root:
    """One watcher and the sessions that it is for."""

    def __init__(self, path: AbsPath, ledgers: Ledgers, clock: Clock, words: ProjectWords, noticed: Noticed) -> None:
        self._path = path
        self._ledgers = ledgers
        self._clock = clock
        self._words = words
        self._noticed = noticed
        self._members: dict[Session, _Member] = {}
        self._watcher: Watcher | None = None
        self._covered = Interest((path,))
        self._covering = anyio.Lock()
        self._draining = anyio.Lock()
        """Held until what was drained is passed on: before that, nobody is in step."""
        self._covered_at = self._looked_at = clock.wall()
        self._outdated = True
        """Some session may want something else than is covered."""
        self._life = anyio.CancelScope()
        self.failure: str | None = None
        """Why nothing is watched; the next session that joins tries again."""

    @property
    def health(self) -> WatchHealth:
        if self._watcher is not None:
            return self._watcher.health
        return WatchHealth(degraded=self.failure or "the watcher is starting")

    # --- Life --------------------------------------------------------------------------------------------------------

    async def run(self, open_watcher: OpenWatcher) -> None:
        """Deliver changes as they come, until `end`."""
        self.failure, self._covered, self._outdated = None, Interest((self._path,)), True
        try:
            with self._life:
                async with open_watcher() as watcher:
                    self._watcher = watcher
                    await self._cover()
                    await self._deliver_all()
                    self._let_in()
                    while True:
                        await watcher.wait_for_changes()
                        await self._gather(watcher)
                        await self._deliver_all()
        except Exception as error:
            logger.exception("watching failed root=%s", self._path)
            self.failure = f"watching failed: {error}"
            self._life = anyio.CancelScope()
        finally:
            self._watcher = None
            self._let_in()

    @property
    def is_deserted(self) -> bool:
        return not self._members

    def _let_in(self) -> None:
        """Let checks use new sessions that have been sent what changed since their start.

        What is to be said of the others stands until the next question: only that reads the watcher again.
        """
        if self._watcher is None and self.failure is None:
            return
        for session, member in self._members.items():
            in_step = self._ledgers.of(session).in_step
            if in_step is None or in_step.is_set():
                continue
            if self.failure is not None:
                # It has just read the disk itself; what it misses from now on, the next question finds out.
                self._release(session, None)
            elif not (member.has_news or self._outdated):
                self._release(session, self._behind())

    async def accompany(self, session: Session) -> None:
        """Watch what one session asks for, until it ends."""
        age = current_time() - session.started_at
        member = self._members[session] = _Member(session, self._clock.wall() - age - SLACK_SECONDS)
        in_step = self._ledgers.of(session).in_step
        try:
            while session.failure is None:
                if member.look():
                    self._outdated = True
                    await self._cover()
                    await self._deliver(member)
                    self._let_in()
                    continue
                await session.changed.wait()
        finally:
            del self._members[session]
            self._outdated = True
            if self.is_deserted:
                self._life.cancel()
            if in_step is not None:
                # It has ended, and its own failure says more.
                in_step.set()

    def is_in_step(self) -> bool:
        """Whether every session was sent all changes on disk. Reads what the watcher reports by now."""
        if self._watcher is None or self._outdated or self._covering.locked() or self._draining.locked():
            return False
        now = self._clock.wall()
        try:
            found = self._watcher.drain_now()
        except OSError:
            # `catch_up` meets the same error and handles it.
            return False
        deque(self._pass_on(self._watcher, found or (), now), 0)
        for member in self._members.values():
            self._outdated |= member.look()
        if found is None or self._outdated or self._undelivered():
            return False
        for session in self._members:
            self._release(session, self._behind())
        return True

    async def catch_up(self, seconds: float, only: Session | None = None) -> None:
        """Never raises, and is bounded; verdicts of a server that was not sent all changes are only assumed.

        `only`: deliver to this session, from within a check of it. The others may be held up by a preview that waits
        for this check.
        """
        told = False
        try:
            with anyio.move_on_after(seconds):
                await self._cover()
                if self._watcher is not None:
                    await self._drain(self._watcher)
                await (self._deliver_all() if only is None else self._deliver_within(only))
                told = True
        except Exception:
            logger.exception("catching up failed root=%s", self._path)
        behind = self._behind() if told else "it was not notified of all changes on disk"
        for session in self._members if only is None else self._members.keys() & {only}:
            self._release(session, behind)

    def _behind(self) -> str | None:
        why = self.failure if self._watcher is None else self._watcher.health.behind
        return None if why is None else f"changes on disk may not be known: {why}"

    def _release(self, session: Session, behind: str | None) -> None:
        """Let checks use a session, with what is to be said of their verdicts."""
        ledger, member = self._ledgers.of(session), self._members.get(session)
        if member is not None and member.is_behind:
            behind = "it has not read again yet what has changed on disk"
        ledger.behind = behind
        if ledger.in_step is not None:
            ledger.in_step.set()

    # --- What is watched ---------------------------------------------------------------------------------------------

    async def _cover(self) -> None:
        """Make the watcher watch what the sessions ask for now; one call at a time."""
        async with self._covering:
            self._outdated |= any([member.look() for member in self._members.values()])  # noqa: C419 -- all must look
            watcher = self._watcher
            if watcher is None or not self._outdated:
                return
            interest, now = self._interest(), self._clock.wall() - SLACK_SECONDS
            if interest != self._covered:
                await watcher.cover(interest)
                before, since = self._covered, self._covered_at
                packages = {one for member in self._members.values() for one in member.session.package_watchers}
                if packages.union(before.registrations) != packages.union(interest.registrations):
                    # What changed where nobody watched is seen by looking; the words are of no package.
                    self._words.lost(self._path)
                self._covered, self._covered_at = interest, now
                self._make_up_for(watcher, before, since)
            self._outdated = False

    def _interest(self) -> Interest:
        members = tuple(self._members.values())
        registrations = dict.fromkeys(one for member in members for one in member.registrations)
        folders = (member.folders for member in members)
        return Interest((self._path,), tuple(registrations), frozenset[AbsPath]().union(*folders))

    def _make_up_for(self, watcher: Watcher, before: Interest, since: float) -> None:
        """Find what changed before it was watched: since a server's start, or since a document was opened."""
        known, roots = frozenset(before.registrations), (self._path,)
        for member in self._members.values():
            if not known.issuperset(member.registrations):
                found = watcher.recent(member.started)
                # Not what it was told of: some read the whole project again for every change, and register once more.
                told = set(wanted(found, member.made_up, roots))
                _add(member, (one for one in found if one not in told))
                member.made_up = member.registrations
                # Nobody knows whether they are new: to people, they were changed, unless those have seen it happen.
                unseen = [one.path for one in found if not may_match(known, _folder(one.path), roots)]
                self._noticed(self._path, [PathChange(path, Change.CHANGED) for path in unseen])
        opened = self._covered.folders - before.folders
        written = [found.path for found in watcher.recent(since, opened)] if opened else []
        for member in self._members.values():
            _add(member, (PathChange(path, Change.CHANGED) for path in written if path in member.documents))

    # --- What is handed over -----------------------------------------------------------------------------------------

    async def _gather(self, watcher: Watcher) -> None:
        """Read changes until they stop, in steps: a program that writes all the time must not keep us busy."""
        latest, quiet_at = current_time() + GATHER_SECONDS, 0.0
        while True:
            found, now = await self._drain(watcher), current_time()
            if found:
                quiet_at = now + QUIET_SECONDS
            if now >= min(quiet_at, latest):
                return
            await anyio.sleep(STEP_SECONDS)  # noqa: TID251 -- no answer waits for this: `catch_up` delivers at once

    async def _drain(self, watcher: Watcher) -> bool:
        async with self._draining:
            now = self._clock.wall()
            found = await watcher.drain()
            for _ in self._pass_on(watcher, found, now):
                await anyio.lowlevel.cancel_shielded_checkpoint()
        return bool(found)

    def _pass_on(self, watcher: Watcher, drained: Sequence[PathChange], now: float) -> Iterator[None]:
        """To those who follow all changes, whatever a server has registered, and to the sessions, piece by piece."""
        found = (*drained, *watcher.aliases(drained))
        since, self._looked_at = self._looked_at - SLACK_SECONDS, now
        self._ledgers.doubt(change.path for change in found)
        self._words.changed(self._path, (change.path for change in found))
        self._noticed(self._path, found)
        for piece in _pieces(found):
            for member in self._members.values():
                _add(member, piece)
                if member.session.inputs is not None:
                    member.session.inputs.note_older(piece, since)
            yield

    async def _deliver_all(self) -> None:
        """Returns when every session was sent what was found by now, also by another task."""
        if members := self._undelivered():
            await side_by_side(self._deliver, members)

    def _undelivered(self) -> list[_Member]:
        return [member for member in self._members.values() if member.has_news or member.delivering.locked()]

    async def _deliver(self, member: _Member) -> None:
        async with self._ledgers.of(member.session).shared():
            await self._deliver_within(member.session)

    async def _deliver_within(self, session: Session) -> None:
        """From within a check or in the place of one: no preview is under way, and none begins before the end."""
        member, ledger = self._members.get(session), self._ledgers.of(session)
        if member is None:
            return
        try:
            async with member.delivering:
                flush, member.has_news = member.pending.flush(), False
                # Between taking back what it had registered and registering anew, that counts on.
                message, asked_for = None, tuple(dict.fromkeys((*session.watchers(), *member.registrations)))
                with anyio.CancelScope(shield=True):  # what was flushed is nowhere else
                    for piece in _pieces(flush.changes):
                        if session.inputs is not None:
                            for one in piece:
                                session.inputs.note(one.path, one.change, is_open=session.documents.is_open(one.path))
                        await anyio.lowlevel.checkpoint()
                    make = partial(batch, flush.changes, asked_for, (session.root,))
                    message = make() if len(flush.changes) <= PIECE else await anyio.to_thread.run_sync(make)
                # An open document is what we sent: of its file this is no news, unless it is closed before it follows.
                told_open, paths = set(session.documents.paths), [one.path for one in flush.changes]
                if flush.rescan:
                    session.fail("missed too many changes on disk at once")
                elif session.send_changes(message, flush.changes) and not told_open.issuperset(paths):
                    ledger.note_disk_change()
                await self._follow(member, flush.changes)
                closed = told_open.difference(session.documents.paths)
                left = [one for one in flush.changes if one.path in closed and one.change is not Change.DELETED]
                if left and session.tell_changes(left):
                    ledger.note_disk_change()
        except Failure:
            # It is stopping or dead. The next process reads the disk itself.
            logger.debug("changes not delivered server=%s root=%s", session.server, session.root)

    async def _follow(self, member: _Member, changes: Iterable[PathChange]) -> None:
        """Close what is gone, which counts as there while it is open; have others read again; send new texts."""
        left = {found.path: found for found in changes}
        try:
            member.is_behind = True
            gone = {path for path, found in left.items() if found.change is Change.DELETED}
            for path in gone.intersection(member.session.documents.paths):
                await self._ledgers.follow(member.session, path, gone=True)
            member.is_behind = not await reread(member.session, left.values())
            for piece in () if member.is_behind else _pieces(tuple(left.values())):
                await anyio.lowlevel.checkpoint()
                for found in piece:
                    if await self._ledgers.follow(member.session, found.path, gone=found.change is Change.DELETED):
                        del left[found.path]
        finally:
            _add(member, left.values())


def _pieces(changes: Sequence[PathChange]) -> Iterator[Sequence[PathChange]]:
    return (changes[start : start + PIECE] for start in range(0, len(changes), PIECE))


@lru_cache(MAX_FOLDERS)
def _folder(path: AbsPath) -> AbsPath:
    return AbsPath(os.path.dirname(path))


def _add(member: _Member, changes: Iterable[PathChange]) -> None:
    for found in changes:
        member.pending.add(found)
        member.has_news = True
