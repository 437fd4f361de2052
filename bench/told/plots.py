"""Plots of kept results as SVG: a bar for each subject, told in the same turn, told later, never told; and delays."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from told import figures, tables
from told.figures import Figures, Row, percentile

WIDTH, LEFT, ROW, TOP = 860, 400, 26, 58
RIGHT = 110
"""Room for the number behind a bar."""

TOLD, LATER, NEVER = "#2f855a", "#d69e2e", "#c53030"
MIDDLE, HIGH = "#2b6cb0", "#a3bfdb"


@dataclass(frozen=True)
class Bar:
    name: str
    parts: tuple[tuple[float, str], ...]
    """Lengths and colours, from the left."""
    said: str


def others(rows: Sequence[Row]) -> str:
    bars = [
        Bar(name, ((one.told, TOLD), (one.late, LATER), (one.never, NEVER)), f"{one.told} of {one.broken}")
        for name, one in _subjects(rows)
    ]
    return chart("Other files that an edit broke", _SHARES, bars)


def own(rows: Sequence[Row]) -> str:
    bars = [
        Bar(name, ((one.own_told, TOLD), (one.own_new - one.own_told, NEVER)), f"{one.own_told} of {one.own_new}")
        for name, one in _subjects(rows)
    ]
    return chart("Errors in the edited file", (("told in the same turn", TOLD), ("not then", NEVER)), bars)


def delay(rows: Sequence[Row]) -> str:
    bars = list[Bar]()
    for name, one in _subjects(rows):
        middle, high = percentile(one.times, 0.5), percentile(one.times, 0.95)
        if high:
            bars.append(Bar(name, ((middle, MIDDLE), (high - middle, HIGH)), f"{middle:.0f} / {high:.0f} ms"))
    return chart("From the edit to what the model reads next", (("median", MIDDLE), ("95 of 100 edits", HIGH)), bars)


_SHARES = (("told in the same turn", TOLD), ("told later", LATER), ("never told", NEVER))


def _subjects(rows: Sequence[Row]) -> list[tuple[str, Figures]]:
    return [(tables.title(key[2]), figures.figures(found)) for key, found in figures.runs(rows).items()]


def chart(title: str, legend: Sequence[tuple[str, str]], bars: Sequence[Bar]) -> str:
    longest = max((sum(length for length, _ in bar.parts) for bar in bars), default=1.0) or 1.0
    scale, height = (WIDTH - LEFT - RIGHT) / longest, TOP + ROW * len(bars) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"',
        f' font-size="13" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="10" y="20" font-weight="bold" font-size="15">{escape(title)}</text>',
    ]
    place = LEFT
    for name, colour in legend:
        lines.append(f'<rect x="{place}" y="33" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{place + 17}" y="44">{escape(name)}</text>')
        place += 28 + 7 * len(name)
    for number, bar in enumerate(bars):
        lines += _drawn(bar, TOP + number * ROW, scale)
    return "\n".join([*lines, "</svg>\n"])


def _drawn(bar: Bar, top: int, scale: float) -> list[str]:
    lines = [f'<text x="{LEFT - 8}" y="{top + 14}" text-anchor="end">{escape(bar.name.replace("`", ""))}</text>']
    place = float(LEFT)
    for length, colour in bar.parts:
        if length:
            lines.append(
                f'<rect x="{place:.1f}" y="{top + 2}" width="{length * scale:.1f}" height="16" fill="{colour}"/>'
            )
        place += length * scale
    return [*lines, f'<text x="{place + 6:.1f}" y="{top + 14}">{escape(bar.said)}</text>']
