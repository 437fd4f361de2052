"""A bar for each median, with its interval, as SVG."""

from collections.abc import Sequence
from html import escape

from parity.numbers import interval, median
from parity.records import Record

WIDTH, LEFT, ROW = 720, 230, 24

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
    """Milliseconds on a line from 0; subjects without an answer have no bar."""
    shown = sorted((one for one in records if one.milliseconds), key=lambda one: (one.language, one.subject))
    longest = max([interval(one.milliseconds)[1] for one in shown], default=1.0) or 1.0
    scale = (WIDTH - LEFT - 90) / longest
    height = ROW * (len(shown) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="17" font-weight="bold">{escape(title)}, ms (median, 95 % interval)</text>',
    ]
    for number, one in enumerate(shown, start=1):
        middle, (low, high) = median(one.milliseconds), interval(one.milliseconds)
        top = number * ROW + 8
        name = escape(f"{one.subject} ({one.language})")
        parts += [
            f'<text x="{LEFT - 8}" y="{top + 12}" text-anchor="end">{name}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{max(1.0, middle * scale):.1f}" height="14" fill="#4a7fb5"/>',
            f'<line x1="{LEFT + low * scale:.1f}" x2="{LEFT + high * scale:.1f}" y1="{top + 7}" y2="{top + 7}"',
            ' stroke="#222" stroke-width="2"/>',
            f'<text x="{LEFT + high * scale + 8:.1f}" y="{top + 12}">{middle:.2f}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])
