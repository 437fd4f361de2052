"""What outlives the daemon: where each conversation works, and small facts that were learned.

One SQLite file, one connection, one thread: that of the daemon's loop, which a look-up by key does not hold up. What
was written is there after a `kill -9`; after a power cut the last moments may be missing, and the file is whole.

A file that is not a database any more is moved aside, logged, and made again: nothing in it is worth a daemon
that does not start. A disk that takes nothing is `Unavailable`, so that no caller believes that something was kept.
"""

import logging
import os
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from pilotfish.errors import Code, Unavailable
from pilotfish.model import AbsPath
from pilotfish.system import calls

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_ROWS = 100_000
"""Of each table; beyond it, what was written longest ago is forgotten. A conversation takes some 150 bytes."""

BUSY_SECONDS = 1.0
"""For another daemon that is just ending. No other program writes here."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (id BLOB NOT NULL UNIQUE, cwd BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS facts (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, UNIQUE (kind, key));
"""

FIND_CWD = "SELECT cwd FROM conversations WHERE id = ?"
FIND_FACT = "SELECT value FROM facts WHERE kind = ? AND key = ?"
PUT_CWD = "INSERT OR REPLACE INTO conversations (id, cwd) VALUES (?, ?)"
PUT_FACT = "INSERT OR REPLACE INTO facts (kind, key, value) VALUES (?, ?, ?)"

# Replacing gives a row the highest number, so the lowest numbers are what was written longest ago.
FORGET_CWD = "DELETE FROM conversations WHERE rowid <= (SELECT max(rowid) FROM conversations) - ?"
FORGET_FACT = "DELETE FROM facts WHERE rowid <= (SELECT max(rowid) FROM facts) - ?"

RUINED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""What SQLite says of a file that is not a database any more, in the lower byte of its error code."""


class Store:
    """Opened on first use. The folder is ours alone, and so is the file (0600)."""

    def __init__(self, path: str, max_rows: int = MAX_ROWS) -> None:
        self.path = path
        self.notice: str | None = None
        """What a person should know: that the file had to be made again, and where the old one is."""
        self._max_rows = max_rows
        self._connection: sqlite3.Connection | None = None

    def cwd(self, conversation: str) -> AbsPath | None:
        """Where a conversation works; None when it was never said."""
        row = self._do(lambda database: database.execute(FIND_CWD, (_bytes(conversation),)).fetchone())
        return None if row is None else AbsPath(os.fsdecode(row[0]))

    def put_cwd(self, conversation: str, cwd: AbsPath) -> None:
        """Kept when this returns. Raises `Unavailable` when it cannot be."""
        self._write(PUT_CWD, (_bytes(conversation), os.fsencode(cwd)), FORGET_CWD)

    def get(self, kind: str, key: str) -> bytes | None:
        """A fact of some kind; None when there is none, or it was forgotten."""
        row = self._do(lambda database: database.execute(FIND_FACT, (kind, _bytes(key))).fetchone())
        return None if row is None else bytes(row[0])

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Kept when this returns. Raises `Unavailable` when it cannot be."""
        self._write(PUT_FACT, (kind, _bytes(key), value), FORGET_FACT)

    def close(self) -> None:
        """Harmless when nothing is open; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self, statement: str, values: tuple[object, ...], forget: str) -> None:
        def write(database: sqlite3.Connection) -> None:
            with database:
                database.execute(statement, values)
                database.execute(forget, (self._max_rows,))

        self._do(write)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            try:
                return work(self._open())
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in RUINED:
                    raise
                self._start_over(error)
                return work(self._open())
        except (sqlite3.Error, OSError) as error:
            self.close()
            message = f"{self.path} cannot be used: {error}"
            raise Unavailable(
                Code.FILE_UNREADABLE, message, hint="Is the disk full, or the folder read-only?"
            ) from None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            # SQLite gives its other files the mode of this one.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | calls.O_NOFOLLOW, 0o600))
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _start_over(self, error: sqlite3.DatabaseError) -> None:
        self.close()
        aside = f"{self.path}.broken"
        os.replace(self.path, aside)
        for beside in (f"{self.path}-wal", f"{self.path}-shm"):
            if os.path.lexists(beside):
                os.unlink(beside)
        self.notice = f"{self.path} was no database any more ({error}); it is {aside} now, and a new one was begun"
        logger.warning("%s", self.notice)


def _bytes(text: str) -> bytes:
    """Any text: names that hosts made up may hold what UTF-8 cannot carry."""
    return text.encode("utf-8", "surrogatepass")
