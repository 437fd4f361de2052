"""Tables, what they were measured on, and bars as SVG: what every report is made of."""

import argparse
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from harness.servers import CLONE

WIDTH, LEFT, ROW, TOP = 860, 400, 26, 58
RIGHT = 110
"""Room for the number behind a bar."""

MIDDLE, HIGH = "#2b6cb0", "#a3bfdb"


def line(cells: Iterable[object]) -> str:
    """One row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def head(names: Sequence[str]) -> str:
    """The first two lines of a table."""
    return line(names) + "\n|" + "---|" * len(names)


def table(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    return "\n".join([head(names), *map(line, rows)])


def listed(about: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in about.items())


def circumstances(command: str, loads: Sequence[float]) -> dict[str, str]:
    """What was measured, when, and on what."""
    argv = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(argv, cwd=CLONE, capture_output=True, text=True, check=False)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "commit": commit.stdout.strip(),
        "machine": f"{platform.system()}, {platform.machine()}, {os.cpu_count()} cores",
        "load (1 minute) before each project and at the end": " ".join(f"{load:.1f}" for load in loads),
    }


def options(about: str | None, **defaults: object) -> argparse.Namespace:
    """The options of a program whose docstring says what they do, each with its default: `--name VALUE`, or a flag for
    False; a tuple is what the words without an option stand for.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, tuple):
            parser.add_argument(name, nargs="*", default=default)
        elif default is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, default=default, type=type(default))
    return parser.parse_args()


# --- Bars -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    name: str
    parts: tuple[tuple[float, str], ...]
    """Lengths and colours, from the left."""
    said: str


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
