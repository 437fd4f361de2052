"""Sessions that know the disk as it is: one watcher per root, shared by the servers that run for it.

What somebody writes, be it a shell, git or a formatter, reaches each server as the protocol has it: one notification
with all that its globs match, a new text for a document that is open, the end of one whose file is gone.
Before an answer `catch_up` hands over what the system knows by then, without a pause; otherwise changes are gathered
until they cease, so that a branch switch is one notification per server.

Where a watcher cannot be had or fails, servers go on as they are, and `health` says so.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, Coalescer, PathChange, WatchRegistration
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock, Interest, OpenWatcher, Watcher, WatchHealth
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.1
"""Changes are handed over when none has come for this long. Nobody waits for it: who asks gets them at once."""

STEP_SECONDS = 0.025
"""How often they are looked at meanwhile; the kernel's queue holds what git can write in ten times as long."""

GATHER_SECONDS = 5.0
"""And at the latest this long after the first one: a build may write for minutes."""

CATCH_UP_SECONDS = 10.0
"""How long an answer may wait: covering 40,000 files takes 0.5 s, a branch switch of as many 4 s. One that waited in
vain says so."""

SLACK_SECONDS = 0.02
"""The clock of file systems is behind by up to this much."""

MAX_PENDING = 250_000
"""Changed paths that one server may be told of at once, 30 MB of notification. One that missed more is started anew."""


MAX_FOLDERS = 2_000
"""Documents whose folder need not be worked out again whenever another one is opened."""


class _Member(Struct):
    """One session and what it has not been told yet."""

    session: Session
    started: float
    """Wall time of its start: from then on it may have read anything."""
    moves: tuple[int, int] | None = None
    """Of its offers and of its documents, when they were last looked at."""
    registrations: tuple[WatchRegistration, ...] = ()
    documents: frozenset[AbsPath] = frozenset()
    folders: frozenset[AbsPath] = frozenset()
    """Where these lie."""
    has_news: bool = False
    pending: Coalescer = field(default_factory=lambda: Coalescer(MAX_PENDING))
    delivering: anyio.Lock = field(default_factory=anyio.Lock)

    def look(self) -> bool:
        """Whether something else is to be watched since the last look: most documents lie where others do."""
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
        self, open_watcher: OpenWatcher | None, ledgers: Ledgers, clock: Clock, words: ProjectWords | None = None
    ) -> None:
        self._open_watcher = open_watcher
        self._ledgers = ledgers
        self._clock = clock
        self._words = words or ProjectWords()
        """Told of every change as well: they are of the files on disk."""
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
            self._tasks.start_soon(self._accompany, session, self._open_watcher)

    async def catch_up(self, concerns: Callable[[AbsPath], bool]) -> None:
        """Make the sessions of these roots see the disk as it is now."""
        behind = [root for path, root in self._roots.items() if concerns(path) and not root.is_in_step()]
        if len(behind) == 1:
            await behind[0].catch_up()
        elif behind:
            async with owned_tasks() as tasks:
                for root in behind:
                    tasks.start_soon(root.catch_up)

    def health(self, root: AbsPath) -> WatchHealth | None:
        """How changes below a root are noticed; None when nobody watches there."""
        known = self._roots.get(root)
        return None if known is None else known.health

    def follows(self, root: AbsPath) -> bool:
        """Whether every change below a root is noticed as it happens."""
        health = self.health(root)
        return health is not None and health.degraded is None

    async def _accompany(self, session: Session, open_watcher: OpenWatcher) -> None:
        root = self._roots.get(session.root)
        if root is None or root.failure is not None:
            root = root or _Root(session.root, self._ledgers, self._clock, self._words)
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
                root.end()


class _Root:
    """One watcher and the sessions that it is for."""

    def __init__(self, path: AbsPath, ledgers: Ledgers, clock: Clock, words: ProjectWords) -> None:
        self._path = path
        self._ledgers = ledgers
        self._clock = clock
        self._words = words
        self._members: dict[Session, _Member] = {}
        self._watcher: Watcher | None = None
        self._covered = Interest((path,))
        self._covering = anyio.Lock()
        self._covered_at = clock.wall()
        self._outdated = True
        """Some session may want something else than is covered."""
        self._life = anyio.CancelScope()
        self.failure: str | None = None
        """Why nothing is watched; the next session that joins makes it try again."""

    @property
    def is_deserted(self) -> bool:
        return not self._members

    @property
    def health(self) -> WatchHealth:
        if self._watcher is not None:
            return self._watcher.health
        return WatchHealth(degraded=self.failure or "watching has not begun yet")

    # --- Life --------------------------------------------------------------------------------------------------------

    async def run(self, open_watcher: OpenWatcher) -> None:
        """Hand over changes as they come, until `end`."""
        self.failure, self._covered, self._outdated = None, Interest((self._path,)), True
        try:
            with self._life:
                async with open_watcher() as watcher:
                    self._watcher = watcher
                    await self._cover()
                    while True:
                        await watcher.stirred()
                        await self._gather(watcher)
                        await self._deliver_all()
        except Exception as error:
            logger.exception("watching failed root=%s", self._path)
            self.failure = f"watching failed: {error}"
            self._life = anyio.CancelScope()
        finally:
            self._watcher = None

    def end(self) -> None:
        self._life.cancel()

    async def accompany(self, session: Session) -> None:
        """Follow what one session wants to know, until it ends."""
        age = current_time() - session.started_at
        member = self._members[session] = _Member(session, self._clock.wall() - age - SLACK_SECONDS)
        try:
            while session.failure is None:
                if member.look():
                    self._outdated = True
                    await self._cover()
                    await self._deliver(member)
                    continue
                await session.changed.wait()
        finally:
            del self._members[session]
            self._outdated = True

    def is_in_step(self) -> bool:
        """Whether every session knows the disk as it is now. What has changed since the last look is taken in."""
        if self._watcher is None or self._outdated or self._covering.locked():
            return False
        try:
            found = self._watcher.drain_now()
        except OSError:
            # `catch_up` meets it, too, and knows what to do.
            return False
        members = self._members.values()
        self._words.changed(self._path, (change.path for change in found or ()))
        for member in members:
            _add(member, found or ())
            self._outdated |= member.look()
        if found is None or self._outdated or any(member.has_news or member.delivering.locked() for member in members):
            return False
        for session in self._members:
            self._ledgers.of(session).behind = None
        return True

    async def catch_up(self) -> None:
        """Never fails and never takes for ever; what is said by a server that was not told everything is doubted."""
        told = False
        try:
            with anyio.move_on_after(CATCH_UP_SECONDS):
                await self._cover()
                if self._watcher is not None:
                    await self._drain(self._watcher)
                await self._deliver_all()
                told = True
        except Exception:
            logger.exception("catching up failed root=%s", self._path)
        for session in self._members:
            self._ledgers.of(session).behind = None if told else "it has not been told of all changes on disk"

    # --- What is watched ---------------------------------------------------------------------------------------------

    async def _cover(self) -> None:
        """Let the watcher follow what the sessions want now; waits for whoever is at it."""
        async with self._covering:
            self._outdated |= any([member.look() for member in self._members.values()])  # noqa: C419 -- all must look
            watcher = self._watcher
            if watcher is None or not self._outdated:
                return
            interest, now = self._interest(), self._clock.wall() - SLACK_SECONDS
            if interest != self._covered:
                await watcher.cover(interest)
                before, since = self._covered, self._covered_at
                if before.registrations != interest.registrations:
                    # What changed where nobody watched is seen by looking.
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
        """Tell of what changed before it was watched: since a server's start, or since a document was opened."""
        known = frozenset(before.registrations)
        for member in self._members.values():
            if not known.issuperset(member.registrations):
                _add(member, watcher.recent(member.started))
        opened = self._covered.folders - before.folders
        written = [found.path for found in watcher.recent(since, opened)] if opened else []
        for member in self._members.values():
            _add(member, (PathChange(path, Change.CHANGED) for path in written if path in member.documents))

    # --- What is handed over -----------------------------------------------------------------------------------------

    async def _gather(self, watcher: Watcher) -> None:
        """Take in changes until they cease, in steps: a program that writes all the time must not keep us busy."""
        latest, quiet_at = current_time() + GATHER_SECONDS, 0.0
        while True:
            found, now = await self._drain(watcher), current_time()
            if found:
                quiet_at = now + QUIET_SECONDS
            if now >= min(quiet_at, latest):
                return
            await anyio.sleep(STEP_SECONDS)  # noqa: TID251 -- nobody waits for this: `catch_up` serves whoever asks

    async def _drain(self, watcher: Watcher) -> bool:
        found = await watcher.drain()
        self._words.changed(self._path, (change.path for change in found))
        for member in self._members.values():
            _add(member, found)
        return bool(found)

    async def _deliver_all(self) -> None:
        """Returns when every session knows what was found by now, also what somebody else is about to tell it."""
        members = [member for member in self._members.values() if member.has_news or member.delivering.locked()]
        if len(members) == 1:
            await self._deliver(members[0])
        elif members:
            async with owned_tasks() as tasks:
                for member in members:
                    tasks.start_soon(self._deliver, member)

    async def _deliver(self, member: _Member) -> None:
        session, ledger = member.session, self._ledgers.of(member.session)
        try:
            async with member.delivering, ledger.shared():
                flush, member.has_news = member.pending.flush(), False
                if flush.rescan:
                    session.condemn("missed too many changes on disk at once")
                elif session.tell_changes(flush.changes) and not _are_all_open(session, flush.changes):
                    ledger.note_disk_change()
                await self._follow(member, flush.changes)
        except Failure:
            # It is stopping or dead. The next one reads the disk by itself.
            logger.debug("not told server=%s root=%s", session.server, session.root)

    async def _follow(self, member: _Member, changes: Iterable[PathChange]) -> None:
        """Documents that are open follow their files. What is left when we are interrupted stays to be done."""
        left = {found.path: found for found in changes}
        try:
            for path, found in tuple(left.items()):
                if await self._ledgers.follow(member.session, path, gone=found.change is Change.DELETED):
                    del left[path]
        finally:
            _add(member, left.values())


def _are_all_open(session: Session, changes: Iterable[PathChange]) -> bool:
    """An open document is what we sent, whatever the disk has: to be told of its file changes nothing."""
    return all(session.documents.is_open(found.path) for found in changes)


@lru_cache(MAX_FOLDERS)
def _folder(path: AbsPath) -> AbsPath:
    return AbsPath(os.path.dirname(path))


def _add(member: _Member, changes: Iterable[PathChange]) -> None:
    for found in changes:
        member.pending.add(found)
        member.has_news = True
