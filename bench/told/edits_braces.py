"""What the makers of languages with braces share. They have no parser here: places are found by how lines look.

Whether an edit does what it means to is not known here: the checker says so.
"""

import random
import re
from collections.abc import Callable

from told.source import Made, Maker, Source, line_of, spliced


def chosen(
    pattern: str, source: Source, chance: random.Random, fits: Callable[[re.Match[str]], bool]
) -> re.Match[str] | None:
    """A random place that fits."""
    places = list(re.finditer(pattern, source.text, re.MULTILINE))
    chance.shuffle(places)
    return next((place for place in places if fits(place)), None)


def anything(place: re.Match[str]) -> bool:
    del place
    return True


def inserted(function: str, statement: str) -> Maker:
    """A statement at the head of a function's body; `function` matches the line with its brace."""

    def insert(source: Source, chance: random.Random) -> Made:
        place = chosen(function, source, chance, anything)
        if place is None:
            return None
        line = source.text[source.text.rfind("\n", 0, place.end()) + 1 : place.end()]
        indent = line[: len(line) - len(line.lstrip())]
        step = "\t" if "\n\t" in source.text else "  "
        end = source.text.index("\n", place.start()) if "\n" not in place[0] else place.end()
        text = spliced(source.text, end, end, f"\n{indent}{step}{statement}")
        return text, f"`{statement}` after line {line_of(source.text, place.start())}"

    return insert


def replaced(pattern: str, new: Callable[[re.Match[str]], str], words: str, *, used: bool = False) -> Maker:
    """The group `here` of a random place made something else; with `used`, only where others use the group `name`."""

    def replace(source: Source, chance: random.Random) -> Made:
        def fits(place: re.Match[str]) -> bool:
            return not used or source.used(place["name"])

        place = chosen(pattern, source, chance, fits)
        if place is None:
            return None
        text = spliced(source.text, place.start("here"), place.end("here"), new(place))
        name = place.groupdict().get("name")
        return text, f"{name + ': ' if name else ''}{words} (line {line_of(source.text, place.start('here'))})"

    return replace


def renamed_everywhere(pattern: str, rename: Callable[[str, str, str], str], suffix: str) -> Maker:
    """A name that other files use, renamed in this file only."""

    def replace(source: Source, chance: random.Random) -> Made:
        place = chosen(pattern, source, chance, lambda place: source.used(place["name"]))
        if place is None:
            return None
        name = place["name"]
        new = f"{name}{suffix}"
        where = line_of(source.text, place.start("name"))
        return rename(source.text, name, new), f"{name} renamed to {new} (line {where})"

    return replace


def unbalanced(source: Source, chance: random.Random) -> Made:
    """A closing bracket at the end of a line lost."""
    place = chosen(r"^[^\n'\"`/]*[\w)](?P<here>\))[;,]?$", source, chance, anything)
    if place is None:
        return None
    text = spliced(source.text, place.start("here"), place.end("here"), "")
    return text, f"bracket lost (line {line_of(source.text, place.start())})"
