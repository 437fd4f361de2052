"""The most recent feedback and questions, for people who want to see what their agents were shown and asked.

Kept in memory only, but for the numbers of a day, which go on when the daemon is started anew.
"""

import time
from collections import Counter, deque
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, Meta
from pilotfish.api.questions import Question
from pilotfish.api.status import DayTotals
from pilotfish.client.pulse import Pulse
from pilotfish.model import AbsPath
from pilotfish.service.recent import Remembered
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.ports import Memory

KIND = "day"

MAX_SHOWN = 20
MAX_SHOWN_OF_ALL = 60
"""As many as the page shows, of one project and of all; of questions the first, of all."""

MAX_EDITS = 3
MAX_CHARACTERS = 64 * 1024
"""Edits of one feedback, and characters of one text, that are kept to show what was changed."""

MAX_PROJECTS = 100
"""Projects that are counted."""


class EditedFile(Struct, frozen=True):
    path: AbsPath
    before: str
    after: str


class ShownFeedback(Struct, frozen=True):
    at: float
    """Seconds since the epoch."""
    client: ClientSession
    paths: tuple[str, ...]
    feedback: Feedback
    edits: tuple[EditedFile, ...] = ()
    waits: bool = False
    """It is judged with what the same client does next, which is shown in its place."""


class AnsweredQuestion(Struct, frozen=True):
    at: float
    client: ClientSession
    question: Question
    meta: Meta


class _Day(Struct):
    """The last one that something was counted on."""

    date: tuple[int, int] = (0, 0)
    totals: DayTotals = DayTotals()
    first_ms: int | None = None
    """How long the first answer took, on this day or an earlier one."""


class RecentFeedback:
    """The newest is first. `changed` is notified of each."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.changed = Pulse()
        self._shown: list[ShownFeedback] = []
        self._questions: deque[AnsweredQuestion] = deque(maxlen=MAX_SHOWN)
        self._days = Remembered(memory, KIND, _Day, _Day, MAX_PROJECTS)

    def add(self, shown: ShownFeedback) -> None:
        edits = [one for one in shown.edits if len(one.before) + len(one.after) <= 2 * MAX_CHARACTERS]
        joined = [one for one in self._shown if one.waits and one.client.id == shown.client.id]
        paths = tuple(dict.fromkeys(chain.from_iterable(one.paths for one in (*reversed(joined), shown))))
        shown = replace(shown, paths=paths, edits=tuple(edits[:MAX_EDITS]))
        self._shown = _as_many_as_are_shown([shown, *(one for one in self._shown if one not in joined)])
        if shown.paths and not shown.waits:
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
        day = self._days.get(root)
        return day.totals if day.date == _date(now) else DayTotals()

    def _count(self, shown: ShownFeedback) -> None:
        feedback, root, date = shown.feedback, shown.client.root, _date(shown.at)
        known, before = self._days.get(root), self.today(root, shown.at)
        first = feedback.duration_ms if known.first_ms is None else known.first_ms
        totals = DayTotals(
            edits=before.edits + 1,
            told=before.told + bool(feedback.text),
            introduced=before.introduced + feedback.introduced,
            fixed=before.fixed + feedback.fixed,
            saved_ms=before.saved_ms + max(0, first - feedback.duration_ms),
        )
        self._days.put(root, _Day(date, totals, first))


def _as_many_as_are_shown(newest_first: Sequence[ShownFeedback]) -> list[ShownFeedback]:
    kept, of_project = list[ShownFeedback](), Counter[AbsPath]()
    for one in newest_first:
        of_project[one.client.root] += 1
        if of_project[one.client.root] <= MAX_SHOWN:
            kept.append(one)
    return kept[:MAX_SHOWN_OF_ALL]


def _date(at: float) -> tuple[int, int]:
    local = time.localtime(at)
    return local.tm_year, local.tm_yday
