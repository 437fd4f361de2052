"""The habits of servers, kept from one run to the next, per server and root.

They are written only when what follows from them may be another: after some edits nothing is new any more, and an edit
costs no write.
"""

import logging

import msgspec
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.feedback.learned import ENOUGH, Habits
from pilotfish.system.ports import Memory

logger = logging.getLogger(__name__)

KIND = "habits"


class Remembering:
    """Without a memory, every run begins with nothing."""

    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory
        self._kept: dict[str, Habits] = {}

    def recalled(self, session: Session) -> Habits:
        key = _key(session)
        if key not in self._kept:
            self._kept[key] = self._read(key)
        return self._kept[key]

    def keep(self, session: Session, habits: Habits) -> None:
        # Beyond enough of them, how many there were means nothing.
        short = replace(habits, changes=min(habits.changes, ENOUGH), silences=min(habits.silences, ENOUGH))
        if self._memory is not None and self._kept.get(_key(session)) != short:
            self._kept[_key(session)] = short
            try:
                self._memory.put(KIND, _key(session), msgspec.json.encode(short))
            except Failure as failure:
                # A full disk costs us what we learned, and nobody an answer.
                logger.debug("habits are not kept: %s", failure.message)

    def _read(self, key: str) -> Habits:
        try:
            said = self._memory.get(KIND, key) if self._memory is not None else None
            return Habits() if said is None else msgspec.json.decode(said, type=Habits)
        except (Failure, msgspec.DecodeError):
            # Another version wrote it, or it cannot be read. Habits are learned again in a few edits.
            return Habits()


def _key(session: Session) -> str:
    return f"{session.server}\0{session.root}"
