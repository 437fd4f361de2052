"""The habits of servers (`feedback.learned`), kept from one run to the next, per server and root; what files cost them.

Habits are written only when they change what is decided: after a few edits nothing changes, and an edit costs no write.
"""

import os

from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.feedback.settle import ENOUGH, Habits
from pilotfish.service.recent import Recent, Remembered
from pilotfish.system.ports import Memory

KIND = "habits"

MAX_KEPT = 500
"""Servers of roots whose habits are at hand; those of others are read again."""


MAX_COSTS = 5_000
"""Files of a server whose costs are known."""

SECONDS_PER_BYTE = 2e-5
"""For a file that was never checked: as tsserver needs them for a test of 130 KB that takes 3 s."""


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


class HabitStore:
    """Without a memory, every process starts with no habits."""

    def __init__(self, memory: Memory | None) -> None:
        self._kept = None if memory is None else Remembered(memory, KIND, Habits, Habits, MAX_KEPT)

    def recall(self, session: Session) -> Habits:
        return self._kept.get(_key(session)) if self._kept else Habits()

    def keep(self, session: Session, habits: Habits) -> None:
        # Counts beyond `ENOUGH` change no decision.
        short = replace(habits, changes=min(habits.changes, ENOUGH), silences=min(habits.silences, ENOUGH))
        if self._kept and self._kept.get(_key(session)) != short:
            self._kept.put(_key(session), short)


def _key(session: Session) -> str:
    return f"{session.server}\0{session.root}"
