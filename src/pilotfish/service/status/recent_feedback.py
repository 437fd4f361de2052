"""The most recent feedback, for people who want to see what their agents were shown. Kept in memory only."""

import time
from collections import deque

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Feedback
from pilotfish.api.status import DayTotals
from pilotfish.client.pulse import Pulse
from pilotfish.model import AbsPath
from pilotfish.service.recent import Recent
from pilotfish.service.workspaces import ClientSession

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


class _Day(Struct):
    date: tuple[int, int]
    totals: DayTotals
    first_ms: int
    """How long the first answer took, on this day or an earlier one."""


class RecentFeedback:
    """The newest is first. `changed` is notified of each."""

    def __init__(self, most: int = MAX_SHOWN) -> None:
        self.changed = Pulse()
        self._shown: deque[ShownFeedback] = deque(maxlen=most)
        self._days: Recent[AbsPath, _Day] = Recent(MAX_PROJECTS)

    def add(self, shown: ShownFeedback) -> None:
        edits = [one for one in shown.edits if len(one.before) + len(one.after) <= 2 * MAX_CHARACTERS]
        self._shown.appendleft(replace(shown, edits=tuple(edits[:MAX_EDITS])))
        if shown.paths:
            self._count(shown)
        self.changed.notify()

    def all(self) -> tuple[ShownFeedback, ...]:
        return tuple(self._shown)

    def today(self, root: AbsPath, now: float) -> DayTotals:
        """What was counted for a project since midnight, local time."""
        day = self._days.get(root)
        return day.totals if day is not None and day.date == _date(now) else DayTotals()

    def _count(self, shown: ShownFeedback) -> None:
        feedback, root, date = shown.feedback, shown.client.root, _date(shown.at)
        known = self._days.get(root)
        first = feedback.duration_ms if known is None else known.first_ms
        before = known.totals if known is not None and known.date == date else DayTotals()
        totals = DayTotals(
            edits=before.edits + 1,
            told=before.told + bool(feedback.text),
            introduced=before.introduced + feedback.introduced,
            fixed=before.fixed + feedback.fixed,
            saved_ms=before.saved_ms + max(0, first - feedback.duration_ms),
        )
        self._days.put(root, _Day(date, totals, first))


def _date(at: float) -> tuple[int, int]:
    local = time.localtime(at)
    return local.tm_year, local.tm_yday
