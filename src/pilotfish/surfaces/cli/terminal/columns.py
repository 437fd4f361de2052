"""A source line with carets below a part of it, for terminals.

A terminal counts columns, not characters: wide characters and most emoji take two, marks that combine take none, a tab
goes to the next stop. What is printed holds no tab and no control character, so the mark is always where it belongs.
"""

import unicodedata
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
        return " " * width(self.before) + "^" * max(1, width(self.marked))


def pointed(line: str, start: int, end: int, room: int) -> Pointed:
    """The part from `start` to `end` (code points) of a line, in at most `room` columns, without its indentation."""
    indentation = len(line) - len(line.lstrip())
    first, last = min(max(start, 0), len(line)), min(max(end, start), len(line))
    parts = (line[min(indentation, first) : first], line[first:last], line[last:].rstrip())
    column, shown = 0, list[str]()
    for part in parts:
        clean = _expanded(sanitised_lines(part, 4 * room).replace("\n", " "), column)
        column += width(clean)
        shown.append(clean)
    before, marked, after = shown
    before = _tail(before, max(room - width(marked), room // 2))
    marked = _head(marked, room - width(before))
    return Pointed(before, marked, _head(after, room - width(before) - width(marked)))


def width(text: str) -> int:
    """The columns that a text takes."""
    total, before = 0, ""
    for character in text:
        total += _own_width(character, before)
        before = character
    return total


def _own_width(character: str, before: str) -> int:
    """The columns that a character adds after another."""
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
        shown += " " * (TAB - (column + width(shown)) % TAB) + piece
    return shown


def _head(text: str, room: int) -> str:
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return text + ELLIPSIS if room > 0 else ""


def _tail(text: str, room: int) -> str:
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[1:]
    return ELLIPSIS + text
