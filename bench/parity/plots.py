"""A bar for each median, with its interval, as SVG."""

from collections.abc import Mapping
from html import escape

from parity.measures import Record
from parity.numbers import interval, median

WIDTH, LEFT, ROW = 720, 190, 24


def bars(title: str, records: Mapping[str, Record]) -> str:
    """Milliseconds on a line from 0; subjects without an answer have no bar."""
    shown = {name: one for name, one in records.items() if one.milliseconds}
    longest = max([interval(one.milliseconds)[1] for one in shown.values()], default=1.0) or 1.0
    scale = (WIDTH - LEFT - 90) / longest
    height = ROW * (len(shown) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="17" font-weight="bold">{escape(title)}, ms (median, 95 % interval)</text>',
    ]
    for number, (name, one) in enumerate(shown.items(), start=1):
        middle, (low, high) = median(one.milliseconds), interval(one.milliseconds)
        top = number * ROW + 8
        parts += [
            f'<text x="{LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{max(1.0, middle * scale):.1f}" height="14" fill="#4a7fb5"/>',
            f'<line x1="{LEFT + low * scale:.1f}" x2="{LEFT + high * scale:.1f}" y1="{top + 7}" y2="{top + 7}"',
            ' stroke="#222" stroke-width="2"/>',
            f'<text x="{LEFT + high * scale + 8:.1f}" y="{top + 12}">{middle:.2f}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])
