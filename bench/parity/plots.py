"""A bar for each median and the end of its interval, as SVG."""

from collections.abc import Sequence

from told.plots import HIGH, MIDDLE, Bar, chart

from parity.numbers import interval, median
from parity.records import Record

PLOTTED = {
    "warm definition": "warm-definition",
    "cold definition": "cold-definition",
    "edit: introduce": "edit-introduce",
    "edit: fix": "edit-fix",
    "edit in the agent loop": "agent-loop-edit",
    "definition in the agent loop": "agent-loop-definition",
}
"""Measure → the name of its plot."""


def bars(title: str, records: Sequence[Record]) -> str:
    """Milliseconds on a line from 0, up to the end of the interval; subjects without an answer have no bar."""
    shown = sorted((one for one in records if one.milliseconds), key=lambda one: (one.language, one.subject))
    drawn = [
        Bar(f"{one.subject} ({one.language})", ((middle, MIDDLE), (high - middle, HIGH)), f"{middle:.2f} ms")
        for one in shown
        for middle, high in [(median(one.milliseconds), interval(one.milliseconds)[1])]
    ]
    return chart(title, (("median", MIDDLE), ("end of its 95 % interval", HIGH)), drawn)
