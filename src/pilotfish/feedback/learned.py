"""What a server's habits have shown about its publishes. Pure; kept per server and root.

Only servers whose publishes carry no version need it: how far apart two publishes for one change have come at the most,
and how long the last one has taken at the most.
To wait longer needs no proof: a wider gap counts once it was seen. To call silence an answer needs one: few
observations teach nothing.
"""

from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.settle import FIRST_GAP_SECONDS, Traits
from pilotfish.servers.spec import Freshness

ENOUGH = 5
"""Changes observed before silence can mean something."""

MARGIN = 2.0
"""How much longer than ever seen we wait."""

LONGEST_GAP_SECONDS = 1.0
"""A gap learned beyond this is a server that was busy with something else."""


class Habits(Struct, frozen=True):
    """What was seen, in seconds."""

    changes: int = 0
    slowest: float = 0.0
    """From a change to its last publish."""
    widest_gap: float = 0.0
    silences: int = 0
    """Changes in a row that it never spoke of, not even late."""


def observed(habits: Habits, *, sent_at: float, publishes: tuple[float, ...]) -> Habits:
    """The habits after one change that was watched until it had settled; `publishes` are its times, in order."""
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
    """The habits after a publish that came `gap` seconds after its change had been called settled.

    Without it no gap wider than the pause could ever be learned: the pause ends the watching.
    """
    return habits if gap > LONGEST_GAP_SECONDS else replace(habits, widest_gap=max(habits.widest_gap, gap))


def unheard(habits: Habits, *, spoke_later: bool) -> Habits:
    """The habits after a change that no publish had followed in time, once the next text is sent.

    Only then is it known whether the server was silent or slow; one slow answer and no silence means anything.
    """
    return replace(habits, silences=0 if spoke_later else habits.silences + 1)


def traits_of(freshness: Freshness, habits: Habits) -> Traits:
    """What the catalogue says, and what was learned where it says nothing."""
    silent = freshness.publishes_unchanged is False
    learned = freshness.publishes_unchanged is None and habits.silences >= ENOUGH
    enough = habits.changes >= ENOUGH
    gap = min(LONGEST_GAP_SECONDS, max(FIRST_GAP_SECONDS, habits.widest_gap * MARGIN))
    return Traits(
        phases=freshness.phases,
        # Half of the server's own pause: publishes cannot be about a change that its pause still holds back.
        floor_seconds=(freshness.debounce_ms or 0) / 2000,
        gap_seconds=gap,
        silent_when_unchanged=silent,
        silence_seconds=habits.slowest * MARGIN if enough and (silent or learned) else None,
    )
