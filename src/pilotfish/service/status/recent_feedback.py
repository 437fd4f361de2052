"""The most recent feedback, for people who want to see what their agents were shown. Kept in memory only."""

from collections import deque

from msgspec import Struct

from pilotfish.api.answers import Feedback
from pilotfish.client.pulse import Pulse
from pilotfish.service.workspaces import ClientSession

MAX_SHOWN = 20
"""As many as the page shows."""


class ShownFeedback(Struct, frozen=True):
    """One answer to `touched`."""

    at: float
    """Seconds since the epoch."""
    client: ClientSession
    paths: tuple[str, ...]
    feedback: Feedback


class RecentFeedback:
    """The newest is first. `changed` is notified of each."""

    def __init__(self, most: int = MAX_SHOWN) -> None:
        self.changed = Pulse()
        self._shown: deque[ShownFeedback] = deque(maxlen=most)

    def add(self, shown: ShownFeedback) -> None:
        self._shown.appendleft(shown)
        self.changed.notify()

    def all(self) -> tuple[ShownFeedback, ...]:
        return tuple(self._shown)
