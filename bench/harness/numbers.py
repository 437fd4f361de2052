"""Statistics of a few hundred times: percentiles, and how sure a median, a ratio or a difference of medians is."""

import math
import random
from collections.abc import Callable, Sequence

RESAMPLES = 400
"""Enough for the ends of a 95 % interval to move by little from seed to seed."""

NAN = float("nan")


def percentile(values: Sequence[float], share: float, none: float = 0.0) -> float:
    """The smallest value that so many are not above; `none` of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else none


def median(values: Sequence[float]) -> float:
    """Of nothing, not a number."""
    return percentile(values, 0.5, NAN)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """Where the median lies in 95 of 100 resamples (bootstrap)."""
    if not values:
        return (NAN, NAN)
    chance = random.Random(seed)
    return _middle([median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)])


def spread(
    first: Sequence[float], second: Sequence[float], combined: Callable[[float, float], float], seed: int = 1
) -> tuple[float, float]:
    """Where a ratio or a difference of two medians lies in 95 of 100 resamples of both."""
    if not first or not second:
        return (NAN, NAN)
    chance = random.Random(seed)
    return _middle(
        [
            combined(median(chance.choices(first, k=len(first))), median(chance.choices(second, k=len(second))))
            for _ in range(RESAMPLES)
        ]
    )


def quotient(one: float, other: float) -> float:
    return one / other


def difference(one: float, other: float) -> float:
    return one - other


def _middle(values: list[float]) -> tuple[float, float]:
    return (percentile(values, 0.025), percentile(values, 0.975))
