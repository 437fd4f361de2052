"""Identifiers in a text, found without knowing its language.

A word is whole where no letter, digit, `_` or `$` stands next to it. Places are in code points.
"""

import re
from functools import lru_cache

from pilotfish.model import Position, Range
from pilotfish.protocol.positions import Text

_WORD = re.compile(r"[\w$]+")


def first_occurrence(text: Text, word: str, within: Range) -> Range | None:
    """Where `word` first stands as a whole word in that part of the text."""
    found = _pattern(word).search(text.string, text.offset(within.start), text.offset(within.end))
    return None if found is None else Range(text.position_at(found.start()), text.position_at(found.end()))


def occurrences(text: Text, line: int, word: str) -> tuple[Range, ...]:
    """Every place where `word` stands as a whole word in a line; none when there is no such line."""
    if not 0 <= line < text.line_count:
        return ()
    return tuple(
        Range(Position(line, found.start()), Position(line, found.end()))
        for found in _pattern(word).finditer(text.line(line))
    )


def word_at(text: Text, position: Position) -> str | None:
    """The word that a position is in or right behind."""
    if not 0 <= position.line < text.line_count:
        return None
    for word in _WORD.finditer(text.line(position.line)):
        if word.start() <= position.character <= word.end():
            return word[0]
    return None


@lru_cache(maxsize=256)
def _pattern(word: str) -> re.Pattern[str]:
    before = r"(?<![\w$])" if _WORD.match(word) else ""
    after = r"(?![\w$])" if _WORD.fullmatch(word[-1:]) else ""
    return re.compile(before + re.escape(word) + after)
