"""The most recent feedback and questions, for people who want to see what their agents were shown and asked.

Kept in memory only, but for the numbers of a day, which go on when the daemon is started anew.
"""

import logging
import time
from collections import deque

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, Meta
from pilotfish.api.questions import Question
from pilotfish.api.status import DayTotals
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.service.recent import Recent
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.ports import Memory

logger = logging.getLogger(__name__)

KIND = "day"

MAX_SHOWN = 20
"""As many as the page shows."""

MAX_EDITS = 3
MAX_CHARACTERS = 64 * 1024
"""Edits of one feedback, and characters of one text, that are kept to show what was changed."""

MAX_PROJECTS = 100
"""Projects that are counted."""


class EditedFile(Struct, frozen=True):
    """A file before and after an edit."""

    path: AbsPath
    before: str
    after: str


class ShownFeedback(Struct, frozen=True):
    """One answer to `touched`."""

    at: float
    """Seconds since the epoch."""
    client: ClientSession
    paths: tuple[str, ...]
    feedback: Feedback
    edits: tuple[EditedFile, ...] = ()


class AnsweredQuestion(Struct, frozen=True):
    """One question of a client, and how it was answered."""

    at: float
    client: ClientSession
    question: Question
    meta: Meta


class _Day(Struct):
    date: tuple[int, int]
    totals: DayTotals
    first_ms: int
    """How long the first answer took, on this day or an earlier one."""


class RecentFeedback:
    """The newest is first. `changed` is notified of each."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.changed = Pulse()
        self._memory = memory
        self._shown: deque[ShownFeedback] = deque(maxlen=MAX_SHOWN)
        self._questions: deque[AnsweredQuestion] = deque(maxlen=MAX_SHOWN)
        self._days: Recent[AbsPath, _Day] = Recent(MAX_PROJECTS)

    def add(self, shown: ShownFeedback) -> None:
        edits = [one for one in shown.edits if len(one.before) + len(one.after) <= 2 * MAX_CHARACTERS]
        self._shown.appendleft(replace(shown, edits=tuple(edits[:MAX_EDITS])))
        if shown.paths:
            self._count(shown)
        self.changed.notify()

    def add_question(self, answered: AnsweredQuestion) -> None:
        self._questions.appendleft(replace(answered, question=replace(answered.question, text=None)))
        self.changed.notify()

    def all(self) -> tuple[ShownFeedback, ...]:
        return tuple(self._shown)

    def questions(self) -> tuple[AnsweredQuestion, ...]:
        return tuple(self._questions)

    def today(self, root: AbsPath, now: float) -> DayTotals:
        """What was counted for a project since midnight, local time."""
        day = self._day(root)
        return day.totals if day is not None and day.date == _date(now) else DayTotals()

    def _count(self, shown: ShownFeedback) -> None:
        feedback, root, date = shown.feedback, shown.client.root, _date(shown.at)
        known = self._day(root)
        first = feedback.duration_ms if known is None else known.first_ms
        before = known.totals if known is not None and known.date == date else DayTotals()
        totals = DayTotals(
            edits=before.edits + 1,
            told=before.told + bool(feedback.text),
            introduced=before.introduced + feedback.introduced,
            fixed=before.fixed + feedback.fixed,
            saved_ms=before.saved_ms + max(0, first - feedback.duration_ms),
        )
        day = _Day(date, totals, first)
        self._days.put(root, day)
        try:
            if self._memory is not None:
                self._memory.put(KIND, root, msgspec.json.encode(day))
        except Failure as error:
            logger.debug("numbers of the day not written: %s", error)

    def _day(self, root: AbsPath) -> _Day | None:
        """The last one that something was counted on."""
        known = self._days.get(root)
        if known is None and self._memory is not None:
            try:
                said = self._memory.get(KIND, root)
                known = None if said is None else msgspec.json.decode(said, type=_Day)
            except (Failure, msgspec.MsgspecError):  # Unreadable, or written by another version.
                return None
        return known


def _date(at: float) -> tuple[int, int]:
    local = time.localtime(at)
    return local.tm_year, local.tm_yday
