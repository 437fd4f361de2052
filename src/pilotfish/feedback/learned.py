"""What was learned about a server's publishes: its habits. Pure; kept per server and root.

Needed only for servers whose publishes carry no version: the widest gap between two publishes for one change, and the
longest time to the last publish.
One observation is enough to wait longer. Several are needed to take silence for an answer.
"""

from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.settle import FIRST_GAP_SECONDS, Traits
from pilotfish.servers.spec import Freshness

ENOUGH = 5
"""Changes to observe before silence counts as an answer."""

MARGIN = 2.0
"""How many times the longest observed time we wait."""

LONGEST_GAP_SECONDS = 1.0
"""A wider gap means that the server was busy with something else, and is not learned."""


class Habits(Struct, frozen=True):
    """What was observed; times in seconds."""

    changes: int = 0
    slowest: float = 0.0
    """From a change to its last publish."""
    widest_gap: float = 0.0
    silences: int = 0
    """Changes in a row without a publish, not even a late one."""


def observed(habits: Habits, *, sent_at: float, publishes: tuple[float, ...]) -> Habits:
    """The habits after one change that has settled; `publishes` are its times, in order."""
    if not publishes:
        return habits
    gaps = [later - earlier for earlier, later in pairwise(publishes)]
    return Habits(
        habits.changes + 1,
        max(habits.slowest, publishes[-1] - sent_at),
        max([habits.widest_gap, *gaps]),
        habits.silences,
    )


def heard_late(habits: Habits, gap: float) -> Habits:
    """The habits after a publish that came `gap` seconds after its change had settled.

    Without it no gap wider than the pause could be learned, because the pause ends the observation.
    """
    return habits if gap > LONGEST_GAP_SECONDS else replace(habits, widest_gap=max(habits.widest_gap, gap))


def unheard(habits: Habits, *, spoke_later: bool) -> Habits:
    """The habits after a change without a publish in time, when the next text is sent.

    Only then is it known whether the server was silent or slow. After one slow answer, silence means nothing.
    """
    return replace(habits, silences=0 if spoke_later else habits.silences + 1)


def traits_of(freshness: Freshness, habits: Habits) -> Traits:
    """What the catalogue says, and what was learned where the catalogue is silent."""
    silent = freshness.publishes_unchanged is False
    learned = freshness.publishes_unchanged is None and habits.silences >= ENOUGH
    enough = habits.changes >= ENOUGH
    gap = min(LONGEST_GAP_SECONDS, max(FIRST_GAP_SECONDS, habits.widest_gap * MARGIN))
    return Traits(
        phases=freshness.phases,
        # Half of the server's debounce: an earlier publish cannot be about this change.
        floor_seconds=(freshness.debounce_ms or 0) / 2000,
        floor_for_opened=freshness.debounces_opens,
        names_versions=freshness.names_versions,
        gap_seconds=gap,
        silent_when_unchanged=silent,
        silence_seconds=habits.slowest * MARGIN if enough and (silent or learned) else None,
    )
