"""Statistics of a few hundred times: percentiles, and how sure the median is."""

import random
from collections.abc import Sequence

RESAMPLES = 1000


def percentile(values: Sequence[float], share: float) -> float:
    """By the nearest rank; of nothing, not a number."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def interval(values: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """Where the median lies in 95 of 100 resamples (bootstrap)."""
    if not values:
        return (float("nan"), float("nan"))
    chance = random.Random(seed)
    medians = sorted(median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return (percentile(medians, 0.025), percentile(medians, 0.975))
