"""One file that is to be edited, and the little that all languages share in editing it."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

Made = tuple[str, str] | None
"""The new text and what was done, in words; None where this file offers nothing of the kind."""


@dataclass(frozen=True)
class Source:
    path: str
    text: str
    used: Callable[[str], bool]
    """Whether a name is a word of any other file."""


Maker = Callable[[Source, random.Random], Made]


def line_of(text: str, offset: int) -> int:
    """1-based."""
    return text.count("\n", 0, offset) + 1


def spliced(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def comments(mark: str, anchor: str) -> Maker:
    """Add a comment of one line above a line that matches; `anchor` has one group, the indentation."""

    def comment(source: Source, chance: random.Random) -> Made:
        places = list(re.finditer(anchor, source.text, re.MULTILINE))
        if not places:
            return None
        place = chance.choice(places)
        new = f"{place[1]}{mark} Checked by hand, revision {chance.randrange(1000)}.\n"
        start = place.start()
        return spliced(source.text, start, start, new), f"comment at line {line_of(source.text, start)}"

    return comment


def blank_lines(anchor: str) -> Maker:
    """Add an empty line above a line that matches."""

    def blank(source: Source, chance: random.Random) -> Made:
        places = list(re.finditer(anchor, source.text, re.MULTILINE))
        if not places:
            return None
        start = chance.choice(places).start()
        return spliced(source.text, start, start, "\n"), f"blank line at line {line_of(source.text, start)}"

    return blank


def renamed(text: str, name: str, new: str) -> str:
    """Every occurrence of the name that is not a member of something."""
    return re.sub(rf"(?<![.\w$]){re.escape(name)}(?![\w$])", new, text)


def renamed_member(text: str, name: str, new: str) -> str:
    """Every occurrence of the name, members too."""
    return re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", new, text)
