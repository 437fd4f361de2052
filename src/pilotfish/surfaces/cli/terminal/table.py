"""Tables for people, and a source line with carets below a part of it: columns, memory and times as people read them.

A terminal counts columns, not characters: wide characters and most emoji take two, marks that combine take none, a tab
goes to the next stop. What is printed holds no tab and no control character, so the mark is always where it belongs.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from pilotfish.sanitise import ELLIPSIS, sanitised_lines

TAB = 4
"""Columns from one tab stop to the next."""

JOINER = "\u200d"
EMOJI_STYLE = "\ufe0f"
SKIN_TONES = range(0x1F3FB, 0x1F400)


@dataclass(frozen=True, slots=True)
class Pointed:
    """A line in three parts, and the carets for the line below it."""

    before: str
    marked: str
    after: str

    @property
    def source(self) -> str:
        return self.before + self.marked + self.after

    @property
    def carets(self) -> str:
        return " " * columns(self.before) + "^" * max(1, columns(self.marked))


def pointed(line: str, start: int, end: int, room: int) -> Pointed:
    """The part from `start` to `end` (code points) of a line, in at most `room` columns, without its indentation."""
    indentation = len(line) - len(line.lstrip())
    first, last = min(max(start, 0), len(line)), min(max(end, start), len(line))
    parts = (line[min(indentation, first) : first], line[first:last], line[last:].rstrip())
    column, shown = 0, list[str]()
    for part in parts:
        clean = _expanded(sanitised_lines(part, 4 * room).replace("\n", " "), column)
        column += columns(clean)
        shown.append(clean)
    before, marked, after = shown
    before = _tail(before, max(room - columns(marked), room // 2))
    marked = _head(marked, room - columns(before))
    return Pointed(before, marked, _head(after, room - columns(before) - columns(marked)))


def columns(text: str) -> int:
    total, before = 0, ""
    for character in text:
        total += _own_width(character, before)
        before = character
    return total


def _own_width(character: str, before: str) -> int:
    if character.isascii():
        return 1
    if character == EMOJI_STYLE:
        # A character that is shown as an emoji is as wide as one.
        return 1 if before and _own_width(before, "") == 1 else 0
    belongs = before == JOINER or (ord(character) in SKIN_TONES and before != "")
    if belongs or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _expanded(text: str, column: int) -> str:
    """The text with its tabs expanded, starting at a column."""
    shown, *others = text.split("\t")
    for piece in others:
        shown += " " * (TAB - (column + columns(shown)) % TAB) + piece
    return shown


def _head(text: str, room: int) -> str:
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 1:
        text = text[:-1]
    return text + ELLIPSIS if room > 0 else ""


def _tail(text: str, room: int) -> str:
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 1:
        text = text[1:]
    return ELLIPSIS + text


SECONDS = 60
MINUTES = 60
HOURS = 48
"""Up to two days are given in hours: `30 h` is more exact than `1 d`."""

GIB = 1024


def memory(mib: float | None) -> str:
    if mib is None:
        return "–"
    return f"{mib:.0f} MiB" if mib < GIB else f"{mib / GIB:.1f} GiB"


def duration(milliseconds: int | None) -> str:
    """How long something has lasted, in its largest unit."""
    if milliseconds is None:
        return "–"
    seconds = milliseconds / 1000
    if seconds < SECONDS:
        return f"{seconds:.0f} s"
    minutes = seconds / SECONDS
    if minutes < MINUTES:
        return f"{minutes:.0f} min"
    hours = minutes / MINUTES
    return f"{hours:.0f} h" if hours < HOURS else f"{hours / 24:.0f} d"


def latency(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "–"
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def table(lines: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """A line for each row, its cells below those of the others; the last column is not padded."""
    sizes = [max(map(columns, cells)) for cells in zip(*lines, strict=True)][:-1]
    padded = (
        [*(cell + " " * (size - columns(cell)) for cell, size in zip(line, sizes, strict=False)), line[-1]]
        for line in lines
    )
    return [cut("  ".join(line).rstrip(), width) for line in padded]


def cut(line: str, width: int | None) -> str:
    """`line`, and `…` for what does not fit."""
    if width is None or columns(line) <= width:
        return line
    while line and columns(line) > width - 1:
        line = line[:-1]
    return line.rstrip() + "…" if width > 0 else ""
