"""What a server's habits have shown about its publishes. Pure; kept per server and root.

Only servers whose publishes carry no version need it: how soon after a change the first publish for it has come at the
earliest, how far apart two publishes for one change have come at the most, and how long it has taken at the most.
Few observations teach nothing: a wrong habit would be a wrong answer, so the bounds are generous.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

from pilotfish.feedback.settle import FIRST_GAP_SECONDS, Traits
from pilotfish.servers.spec import Freshness

ENOUGH = 5
"""Changes observed before a habit counts."""

MARGIN = 2.0
"""How much longer than ever seen we wait."""

LONGEST_GAP_SECONDS = 1.0
"""A gap learned beyond this is a server that was busy with something else."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What was seen. `fastest` and `slowest`: seconds from a change to its first and last publish."""

    changes: int = 0
    slowest: float = 0.0
    widest_gap: float = 0.0
    silences: int = 0
    """Changes after which it published nothing, although the answer was known by another sign."""


def observed(habits: Habits, *, sent_at: float, publishes: tuple[float, ...]) -> Habits:
    """The habits after one change that was watched until it had settled; `publishes` are its times, in order."""
    if not publishes:
        return replace(habits, silences=habits.silences + 1)
    gaps = [later - earlier for earlier, later in pairwise(publishes)]
    return Habits(
        habits.changes + 1,
        max(habits.slowest, publishes[-1] - sent_at),
        max([habits.widest_gap, *gaps]),
        habits.silences,
    )


def traits_of(freshness: Freshness, habits: Habits) -> Traits:
    """What the catalogue says, and what was learned where it says nothing."""
    silent = freshness.publishes_unchanged is False
    enough = habits.changes >= ENOUGH
    gap = min(LONGEST_GAP_SECONDS, max(FIRST_GAP_SECONDS, habits.widest_gap * MARGIN)) if enough else FIRST_GAP_SECONDS
    return Traits(
        phases=freshness.phases,
        # Half of the server's own pause: publishes cannot be about a change that its pause still holds back.
        floor_seconds=(freshness.debounce_ms or 0) / 2000,
        gap_seconds=gap,
        silent_when_unchanged=silent,
        silence_seconds=habits.slowest * MARGIN if silent and enough else None,
    )
