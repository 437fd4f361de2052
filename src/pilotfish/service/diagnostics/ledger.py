"""What we know of our own dealings with one session, beyond what the session keeps.

`Ledger.send` is the one way by which texts are sent: what was sent, when and as which of all changes, is what every
verdict rests on. An older text is never sent after a newer one, so what a server has only ever becomes newer.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session
from pilotfish.feedback.learned import Habits
from pilotfish.model import AbsPath
from pilotfish.protocol.diagnostics import Report
from pilotfish.system.clock import current_time


class FileToSend(Struct, frozen=True):
    """A file to check. `saved` says that this text is what is on disk."""

    path: AbsPath
    language_id: str
    text: str
    saved: bool = True
    order: int | None = None
    """Rises with every text that is read or given; None for a text that is sent whatever the server has."""
    given: bool = False
    """Handed in by the caller: the disk has no say about it."""
    is_old: bool = False
    """It has been on disk like this since before the server started: opening it tells the server nothing new."""


class Sent(Struct, frozen=True):
    """The text that a file has at the server."""

    version: int
    number: int
    """As which of all changes it was sent."""
    at: float
    order: int


class Coverage(Struct, frozen=True):
    """What an answer about a file takes into account."""

    version: int
    changes: int
    """How many texts of any file had been sent."""
    refreshes: int
    """How often the server had said that earlier answers may be old."""

    def covers(self, other: "Coverage") -> bool:
        return self.version >= other.version and self.changes >= other.changes and self.refreshes >= other.refreshes


class PullAnswer(Struct, frozen=True):
    """What a server answered to our own question about a file, whole and of one state."""

    coverage: Coverage
    reports: tuple[Report, ...]


class Settled(Struct, frozen=True):
    """The last fresh verdict on a file. The reports are kept: a late publish of an older text may replace them."""

    coverage: Coverage
    reports: tuple[Report, ...]
    push: Report | None
    at: float
    """When the last of it was said."""


class Ledger(Struct):
    since: float = field(default_factory=current_time)
    answered: bool = False
    """It has settled once: work that it tells of now is no longer its loading."""
    began: bool = False
    """It has said its first diagnostics, or never says any unasked: whoever only asks questions waits for no more."""
    changes: int = 0
    changed_at: float = 0.0
    changed_before: float = 0.0
    """When the change before the last one was sent."""
    answers: dict[AbsPath, PullAnswer] = field(default_factory=dict[AbsPath, PullAnswer])
    settled: dict[AbsPath, Settled] = field(default_factory=dict[AbsPath, Settled])
    habits: Habits = field(default_factory=Habits)
    unheard: dict[AbsPath, Sent] = field(default_factory=dict[AbsPath, Sent])
    """Texts that had no answer when the time was over, until the next one of the same file."""
    refusal: str | None = None
    """The words by which the server said that it does not check at all."""
    behind: str | None = None
    """Why the server may not know the disk as it is; what it says is then only assumed."""
    _sent: dict[AbsPath, Sent] = field(default_factory=dict[AbsPath, Sent])
    _turns: dict[AbsPath, anyio.Lock] = field(default_factory=dict[AbsPath, anyio.Lock])
    _in_use: Counter[AbsPath] = field(default_factory=Counter[AbsPath])
    _checks: int = 0
    _previewing: bool = False
    _left: Pulse = field(default_factory=Pulse)

    def has_loaded(self, session: Session) -> bool:
        return self.answered or (self.began and not session.readiness.busy)

    # --- Texts -------------------------------------------------------------------------------------------------------

    def send(self, session: Session, file: FileToSend) -> Sent:
        """Make the server see the text, unless it has a newer one already; returns what it has now."""
        path, known = file.path, self._sent.get(file.path)
        newest = known.order if known is not None else 0
        order = newest if file.order is None else file.order
        if order >= newest or not session.documents.is_open(path):
            _show(session, file)
        version = session.documents.version(path)
        if known is None and file.is_old:
            # For other files nothing changes: the server could only ever have read this.
            known = Sent(version, self.changes, current_time(), order)
        elif known is None or known.version != version:
            known = self._changed(version, order)
            if file.saved:
                session.save(path)
        if known.order < max(newest, order):
            known = replace(known, order=max(newest, order))
        self._sent[path] = known
        return known

    def version(self, path: AbsPath) -> int | None:
        """Of the text that was sent last; None when none was."""
        known = self._sent.get(path)
        return None if known is None else known.version

    def open_again(self, session: Session, path: AbsPath, language_id: str, text: str) -> None:
        """Show a new process what the old one had. It reads the same disk, so for other files nothing changes."""
        session.sync(path, language_id, text)
        self._sent[path] = Sent(session.documents.version(path), self.changes, current_time(), 0)

    def note_disk_change(self) -> None:
        """The server was told of changes on disk: what it said before about any file may not hold any more."""
        self._changed(0, 0)

    def close(self, session: Session, path: AbsPath) -> None:
        """Take a document from the server; for the other files that is a change like any other."""
        session.close(path)
        for kept in (self._sent, self.answers, self.settled, self.unheard):
            kept.pop(path, None)
        self._changed(0, 0)

    def close_all_but(self, most: int, session: Session) -> None:
        """Close the least recently used documents beyond `most`; never one that is in use."""
        for path in session.documents.least_recently_used(most):
            if not self._in_use[path]:
                session.close(path)
                for kept in (self._sent, self.answers, self.settled, self.unheard):
                    kept.pop(path, None)

    def _changed(self, version: int, order: int) -> Sent:
        self.changes += 1
        self.changed_before, self.changed_at = self.changed_at, current_time()
        return Sent(version, self.changes, self.changed_at, order)

    # --- Turns -------------------------------------------------------------------------------------------------------

    def is_using(self, path: AbsPath) -> bool:
        """Whether it is being checked, or asked about."""
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
        """One question about a file at a time: `unchanged` means what we held when we asked, and answers overtake."""
        lock = self._turns.setdefault(path, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            known = lock.statistics()
            if not known.locked and not known.tasks_waiting:
                self._turns.pop(path, None)

    def shared(self) -> "_Sharing":
        """An ordinary check or question: many at once, but none while a proposed text is at the server.

        Without a preview nothing is waited for, not even a turn of the loop: the texts of a patch go out together.
        """
        return _Sharing(self)

    async def enter(self) -> None:
        while self._previewing:
            await self._left.wait()
        self._checks += 1

    def leave(self) -> None:
        self._checks -= 1
        self._left.beat()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """A preview: after the checks under way, and before any other."""
        while self._previewing:
            await self._left.wait()
        self._previewing = True
        try:
            while self._checks:
                await self._left.wait()
            yield
        finally:
            self._previewing = False
            self._left.beat()


class _Sharing(Struct, frozen=True):
    """Written out, because every question comes by here and a generator costs it three times as much."""

    ledger: Ledger

    async def __aenter__(self) -> None:
        await self.ledger.enter()

    async def __aexit__(self, *_exception: object) -> None:
        self.ledger.leave()


def _show(session: Session, file: FileToSend) -> None:
    documents, path = session.documents, file.path
    before = (documents.version(path), documents.text(path).string) if documents.is_open(path) else None
    session.sync(path, file.language_id, file.text)
    if before is not None and before[0] == documents.version(path) and before[1] != file.text:
        # It does not follow changes: opening the document anew is the only way to show it another text.
        session.close(path)
        session.sync(path, file.language_id, file.text)
