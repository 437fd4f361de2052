"""The ledgers of all live sessions, and the documents that a session keeps open."""

from collections.abc import Callable, Iterable
from math import inf, nextafter

from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Refused
from pilotfish.feedback.settle import ENOUGH, Habits
from pilotfish.model import AbsPath
from pilotfish.protocol.documents import Documents
from pilotfish.service.diagnostics.ledger import FileToSend, Ledger
from pilotfish.service.recent import Remembered
from pilotfish.service.texts import Texts
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Memory

MAX_OPEN_DOCUMENTS = 200
"""Documents open at one server; the least recently used beyond it are closed."""

HABITS_KIND = "habits"

MAX_HABITS = 500
"""Servers of roots whose habits are at hand; those of others are read again."""


class Ledgers:
    """The only place that makes ledgers. Habits of a server are kept in `memory` from one run to the next."""

    def __init__(
        self,
        texts: Texts,
        started: Callable[[Session], None] = lambda _session: None,
        memory: Memory | None = None,
    ) -> None:
        """`started` is called with every session that has just started."""
        self._texts = texts
        self._started = started
        self._habits = HabitStore(memory)
        self._ledgers: dict[Session, Ledger] = {}
        self._last_order = 0.0

    def of(self, session: Session) -> Ledger:
        if session not in self._ledgers:
            alive = {known: kept for known, kept in self._ledgers.items() if known.failure is None}
            self._ledgers = {**alive, session: Ledger(habits=self._habits.recall(session))}
        return self._ledgers[session]

    def next_order(self) -> float:
        """The order of a text that is given now, or about to be read: the time, and higher than any before.

        Taken after the reading, it would pass a text for newer than one that was given meanwhile.
        """
        self._last_order = max(current_time(), nextafter(self._last_order, inf))
        return self._last_order

    def doubt(self, paths: Iterable[AbsPath]) -> None:
        """Somebody has written these files: read them again, whatever their times say."""
        self._texts.doubt(paths)

    def keep_habits(self, session: Session) -> None:
        """Write down what was learned about the server, where it is new."""
        self._habits.keep(session, self.of(session).habits)

    def is_older(self, path: AbsPath, session: Session) -> bool:
        """Whether the file, as it was last read, has not changed since before the server started."""
        age = self._texts.age(path)
        return age is not None and age > current_time() - session.started_at

    def close_unused(self, session: Session) -> None:
        """Close the least recently used documents: a server's memory must not grow with every file ever asked about."""
        self.of(session).close_all_but(MAX_OPEN_DOCUMENTS, session)

    async def restore(self, session: Session, before: Documents | None) -> None:
        """After a restart: open again what was open, with the text that is on disk now."""
        ledger = self.of(session)
        ledger.newest_change = self.next_order()
        self._started(session)
        if before is None:
            return
        for path in before.paths:
            try:
                text = await self._newest(path, ledger)
            except Refused:
                # It is gone or no longer text: there is nothing to open.
                continue
            is_old = self.is_older(path, session)
            ledger.open_again(session, FileToSend(path, before.language_id(path) or "", text, is_old=is_old))

    async def _newest(self, path: AbsPath, ledger: Ledger) -> str:
        """The text of a file that is about to be opened; raises `Refused`."""
        while True:
            order = self.next_order()
            text = (await self._texts.current(path)).text
            if order > ledger.newest_change:
                return text

    async def follow(self, session: Session, path: AbsPath, *, gone: bool) -> bool:
        """A file changed on disk: an open document takes its text or is closed. False: not now, it is being checked."""
        ledger, language, order = self.of(session), session.documents.language_id(path), self.next_order()
        if language is None:
            ledger.newest_change = order
            if gone:
                session.reports.forget(path)
            return True
        try:
            text = (await self._texts.current(path)).text
        except Refused:
            if ledger.is_using(path):
                return False
            ledger.close(session, path)
            return True
        if session.documents.is_open(path):
            ledger.send(session, FileToSend(path, language, text, order=order))
        return True


class HabitStore:
    """The habits of servers (`feedback.settle`), kept from one run to the next, per server and root.

    Without a memory, every process starts with no habits."""

    def __init__(self, memory: Memory | None) -> None:
        self._kept = None if memory is None else Remembered(memory, HABITS_KIND, Habits, Habits, MAX_HABITS)

    def recall(self, session: Session) -> Habits:
        return self._kept.get(self._key(session)) if self._kept else Habits()

    def keep(self, session: Session, habits: Habits) -> None:
        """Only where they change what is decided: after a few edits nothing changes, and an edit costs no write."""
        # Counts beyond `ENOUGH` change no decision.
        short = replace(habits, changes=min(habits.changes, ENOUGH), silences=min(habits.silences, ENOUGH))
        if self._kept and self._kept.get(self._key(session)) != short:
            self._kept.put(self._key(session), short)

    @staticmethod
    def _key(session: Session) -> str:
        return f"{session.server}\0{session.root}"
