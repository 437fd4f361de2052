"""Per-session ledger: which texts were sent, when, and what was answered.

`Ledger.send` is the only way to send a text; every verdict rests on which text was sent when. An older text is never
sent after a newer one.
"""

import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session
from pilotfish.feedback.settle import Habits
from pilotfish.model import AbsPath, Severity
from pilotfish.protocol.diagnostics import Report
from pilotfish.service.recent import Recent
from pilotfish.service.texts import Given
from pilotfish.system.clock import current_time

MAX_COSTS = 5_000
"""Files of a server whose costs are known."""

SECONDS_PER_BYTE = 2e-5
"""For a file that was never checked: as tsserver needs them for a test of 130 KB that takes 3 s."""


class FileToSend(Struct, frozen=True):
    """A file and the text to send. `saved` says that this text is on disk."""

    path: AbsPath
    language_id: str
    text: str
    saved: bool = True
    order: float | None = None
    """Rises with every text that is read or given; None: send it whatever the server has."""
    given: Given | None = None
    """Given by the caller, and not read from the disk."""
    is_old: bool = False
    """Unchanged on disk since before the server started: opening it is not a change for other files."""


class Sent(Struct, frozen=True):
    """The text that a file has at the server."""

    version: int
    number: int
    """Its number among all changes that were sent."""
    at: float
    order: float
    opened: bool = False
    """The file was opened with it."""


class Coverage(Struct, frozen=True):
    """How much an answer about a file covers."""

    version: int
    changes: int
    """Texts of any file that had been sent."""
    refreshes: int
    """Refresh requests of the server: earlier answers may be stale."""

    def covers(self, other: "Coverage") -> bool:
        return self.version >= other.version and self.changes >= other.changes and self.refreshes >= other.refreshes


class PullAnswer(Struct, frozen=True):
    """A server's complete answer to our question about a file."""

    coverage: Coverage
    reports: tuple[Report, ...]


class Settled(Struct, frozen=True):
    """The last fresh verdict on a file, with its reports: a late publish for an older text may replace them."""

    coverage: Coverage
    reports: tuple[Report, ...]
    push: Report | None
    at: float
    """When its last report came."""


class FileCosts:
    """Seconds that checks of files take: a server that does one thing at a time is asked for the cheap ones first."""

    def __init__(self) -> None:
        self._seconds: Recent[str, float] = Recent(MAX_COSTS)

    def learn(self, path: str, seconds: float) -> None:
        self._seconds.put(path, seconds)

    def of(self, path: str) -> float:
        """As it took last; of one that was never checked, by its size."""
        known = self._seconds.get(path)
        if known is not None:
            return known
        try:
            return os.stat(path).st_size * SECONDS_PER_BYTE
        except OSError:
            return 0.0


class Ledger(Struct):
    since: float = field(default_factory=current_time)
    answered: bool = False
    """It has given a fresh verdict once: progress that it reports now is not loading."""
    began: bool = False
    """It has sent its first diagnostics, or sends none unasked: a question need not wait for them."""
    loaded: bool = False
    """It has answered for its first diagnostics and ended all work of that time. What it works on later, some servers
    never end: basedpyright drops the analysis of open documents in the middle, and its progress stays."""
    changes: int = 0
    changed_at: float = 0.0
    changed_before: float = 0.0
    """When the change before the last one was sent."""
    answers: dict[AbsPath, PullAnswer] = field(default_factory=dict[AbsPath, PullAnswer])
    settled: dict[AbsPath, Settled] = field(default_factory=dict[AbsPath, Settled])
    habits: Habits = field(default_factory=Habits)
    asked: int = -1
    """The changes that had been sent when a file was last asked about; -1: none was."""
    asked_before: int = -1
    """The same of the last question with another number."""
    unheard: dict[AbsPath, Sent] = field(default_factory=dict[AbsPath, Sent])
    """Texts without an answer at their deadline, until the next text of the same file."""
    heard: int = 0
    """The last arrival of a report that was looked at by `CheckRunner.spoken_of`."""
    projects: dict[AbsPath, str | None] = field(default_factory=dict[AbsPath, str | None])
    """The project of files, where a server was asked for it."""
    costs: FileCosts = field(default_factory=FileCosts)
    refusal: str | None = None
    """The message by which the server said that it cannot check at all."""
    behind: str | None = None
    """Why the server may not know what is on disk; its verdicts are then only assumed."""
    tell: Callable[[], Awaitable[None]] | None = None
    """Sends the server what has changed on disk by now, for a check that is under way; None where nobody watches."""
    in_step: anyio.Event | None = None
    """Set when the server has been told what changed on disk since its start; None where nobody watches."""
    newest_change: float = 0.0
    """A text with a lower order may be older than a change on disk that the server was told of when the file was not
    open, or than the server itself: then nothing will tell of that change again."""
    _sent: dict[AbsPath, Sent] = field(default_factory=dict[AbsPath, Sent])
    _unsaved: set[AbsPath] = field(default_factory=set[AbsPath])
    """Documents that were opened as they were on disk, without any save since."""
    _turns: dict[AbsPath, anyio.Lock] = field(default_factory=dict[AbsPath, anyio.Lock])
    _commanding: anyio.Lock = field(default_factory=anyio.Lock)
    _in_use: Counter[AbsPath] = field(default_factory=Counter[AbsPath])
    _checks: int = 0
    proposed: dict[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Files whose text at the server is not the one on disk, with their language ids."""
    _previewing: bool = False
    _previews: int = 0
    """Those at work and those that wait."""
    _waiting: int = 0
    """Others that wait for the texts on disk."""
    _left: Pulse = field(default_factory=Pulse)

    def has_loaded(self, session: Session) -> bool:
        return self.answered or self.loaded or (self.began and not session.readiness.busy)

    async def until_in_step(self, seconds: float) -> None:
        """Wait until a new server was told what changed since its start; else `behind` says that it was not."""
        if self.in_step is not None and not self.in_step.is_set():
            with anyio.move_on_after(seconds):
                await self.in_step.wait()

    async def is_as_before(self, changes: int) -> bool:
        """Whether nothing has changed since there were so many changes, on disk neither.

        For answers in several parts, each right for its moment: together they may be of no state that the files had.
        """
        if self.changes == changes and self.tell is not None:
            await self.tell()
        return self.changes == changes

    # --- Texts -------------------------------------------------------------------------------------------------------

    def send(self, session: Session, file: FileToSend) -> Sent:
        """Send the text, unless the server has a newer one; returns what it has now."""
        path, known = file.path, self._sent.get(file.path)
        newest = known.order if known is not None else 0
        order = newest if file.order is None else file.order
        if order >= newest or not session.documents.is_open(path):
            _show(session, file)
        version = session.documents.version(path)
        if known is None and file.is_old:
            # Not a change for other files: the server can only have read this text.
            known = Sent(version, self.changes, current_time(), order, opened=True)
            self._unsaved.add(path)
        elif known is None or known.version != version:
            known = replace(self._changed(version, order), opened=known is None)
            if file.saved:
                self._save(session, path)
        if known.order < max(newest, order):
            known = replace(known, order=max(newest, order))
        self._sent[path] = known
        return known

    def save_if_never(self, session: Session, path: AbsPath) -> None:
        """Save a document that was opened as it was on disk: a check that only a save starts may have left it out."""
        if path in self._unsaved:
            self._save(session, path)

    def _save(self, session: Session, path: AbsPath) -> None:
        session.save(path)
        # What a save starts is about all that is open by now.
        self._unsaved.clear()

    def version(self, path: AbsPath) -> int | None:
        """Of the text that was sent last; None before the first."""
        known = self._sent.get(path)
        return None if known is None else known.version

    def open_again(self, session: Session, file: FileToSend) -> None:
        """Open a document at a new process, which may have read the file before it changed."""
        path = file.path
        session.sync(path, file.language_id, file.text)
        if not file.is_old:
            self._changed(0, 0)
        self._sent[path] = Sent(session.documents.version(path), self.changes, current_time(), 0, opened=True)
        self._unsaved.add(path)

    def note_question(self) -> None:
        """The server is asked about a file, and may look at any other on the way."""
        if self.asked != self.changes:
            self.asked_before, self.asked = self.asked, self.changes

    def forgets(self, session: Session, path: AbsPath, reports: Iterable[Report]) -> bool:
        """Whether some of this may have been found before the last change, on the way to another file; then the text is
        sent anew, so that the server looks again."""
        known, sent = self.answers.get(path), self._sent[path]
        answered, shown = -1 if known is None else known.coverage.changes, -1 if sent.opened else sent.number
        found, before = _words(reports), _words(() if known is None or shown > answered else known.reports)
        since = max(answered, shown)
        is_unheard = self.asked_before > since or (self.asked_before == since > answered)
        if not (found if is_unheard else found & before and self.asked_before == since):
            return False
        language, text = session.documents.language_id(path) or "", session.documents.text(path).string
        version = session.sync(path, language, text, anew=True)
        self._sent[path] = replace(sent, version=version, number=self.changes, opened=False)
        return True

    def note_disk_change(self) -> None:
        """The server was notified of changes on disk: what it said before about any file may be stale."""
        self.projects.clear()
        self._changed(0, 0)

    def close(self, session: Session, path: AbsPath) -> None:
        """Close a document; for other files that is a change like any other."""
        self._close_unchanged(session, path)
        self._unsaved.discard(path)
        self.projects.clear()
        self._changed(0, 0)

    def let_go(self, session: Session, file: FileToSend) -> None:
        """Close a document that nobody uses and that is as on disk: the server reads the same there."""
        path = file.path
        is_free = session.documents.is_open(path) and not self._in_use[path]
        if is_free and session.documents.text(path).string == file.text:
            self._close_unchanged(session, path)

    def reopen(self, session: Session, file: FileToSend) -> Sent:
        """Close a document that is as on disk, whoever uses it, and open it again: the server speaks of it anew."""
        self._close_unchanged(session, file.path)
        return self.send(session, replace(file, is_old=True))

    def close_all_but(self, most: int, session: Session) -> None:
        """Close the least recently used documents beyond `most`; never one that is in use."""
        for path in session.documents.least_recently_used(most):
            if not self._in_use[path]:
                self._close_unchanged(session, path)

    def _close_unchanged(self, session: Session, path: AbsPath) -> None:
        session.close(path)
        for kept in (self._sent, self.answers, self.settled, self.unheard):
            kept.pop(path, None)

    def _changed(self, version: int, order: float) -> Sent:
        self.changes += 1
        self.changed_before, self.changed_at = self.changed_at, current_time()
        return Sent(version, self.changes, self.changed_at, order)

    # --- Turns -------------------------------------------------------------------------------------------------------

    def is_using(self, path: AbsPath) -> bool:
        """Whether a check or a question uses it now."""
        return self._in_use[path] > 0

    @contextmanager
    def using(self, path: AbsPath) -> Generator[None]:
        self._in_use[path] += 1
        try:
            yield
        finally:
            self._in_use[path] -= 1
            if not self._in_use[path]:
                del self._in_use[path]

    @asynccontextmanager
    async def turn(self, path: AbsPath) -> AsyncGenerator[None]:
        """One pull of a file at a time: `unchanged` refers to what we held when we asked, and answers may overtake."""
        lock = self._turns.setdefault(path, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            known = lock.statistics()
            if not known.locked and not known.tasks_waiting:
                self._turns.pop(path, None)

    @asynccontextmanager
    async def commanding(self, session: Session) -> AsyncGenerator[None]:
        """One command at a time: none can be cancelled, and what waits at the server stands in the way of an edit."""
        async with self._commanding:
            await session.connection.caught_up()
            yield

    def shared(self) -> "_Sharing":
        """For ordinary checks and questions: many at once, but none while the server has a proposed text.

        Without a preview this does not wait, not even for one turn of the loop: the texts of a patch go out together.
        """
        return _Sharing(self)

    async def enter(self) -> None:
        await self._until_free()
        self._checks += 1

    def leave(self) -> None:
        self._checks -= 1
        self._left.notify()

    async def _until_free(self) -> None:
        self._waiting += 1
        try:
            while self._previewing or self.proposed:
                await self._left.wait()
        finally:
            self._waiting -= 1

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """After the checks that run, and before any other."""
        await self._until_free()
        self._previewing = True
        try:
            while self._checks:
                await self._left.wait()
            yield
        finally:
            self._previewing = False
            self._left.notify()

    @asynccontextmanager
    async def proposing(self, put_back: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
        """Alone, for a preview. Its texts stay for the next one that waits, unless somebody else waits, too.

        Whoever is the last to leave calls `put_back`, after which `proposed` is empty.
        """
        self._previews += 1
        is_mine = False
        try:
            while self._previewing:
                await self._left.wait()
            self._previewing = is_mine = True
            while self._checks:
                await self._left.wait()
            yield
        finally:
            self._previews -= 1
            if is_mine or not self._previewing:
                try:
                    if self.proposed and (self._waiting or not self._previews):
                        self._previewing = True
                        await put_back()
                finally:
                    self._previewing = False
                    self._left.notify()


class _Sharing(Struct, frozen=True):
    """A class, because every question passes here and a generator costs three times as much."""

    ledger: Ledger

    async def __aenter__(self) -> None:
        await self.ledger.enter()

    async def __aexit__(self, *_exception: object) -> None:
        self.ledger.leave()


def _words(reports: Iterable[Report]) -> set[str]:
    """What is said there, beside hints."""
    return {str(item.message) for report in reports for item in report.items if item.severity != Severity.HINT}


def _show(session: Session, file: FileToSend) -> None:
    documents, path = session.documents, file.path
    before = (documents.version(path), documents.text(path).string) if documents.is_open(path) else None
    session.sync(path, file.language_id, file.text)
    if before is not None and before[0] == documents.version(path) and before[1] != file.text:
        # It takes no didChange: reopening the document is the only way to send another text.
        session.close(path)
        session.sync(path, file.language_id, file.text)
