"""One file that is to be edited, what all languages share in editing it, and the makers of those with braces.

The latter are rows of `edits.toml`. Whether an edit does what it means to is not known here: the checker says so.
"""

import random
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


# --- Languages with braces ------------------------------------------------------------------------------------------


def by_braces() -> dict[str, dict[str, Maker]]:
    """The makers of each language of `edits.toml`."""
    rows = tomllib.loads(Path(__file__).with_name("edits.toml").read_text())
    found = {language: _makers(row) for language, row in rows.items()}
    return {language: _beside(found, language, row.get("beside", {})) for language, row in rows.items()}


def _beside(found: Mapping[str, dict[str, Maker]], language: str, others: Mapping[str, str]) -> dict[str, Maker]:
    """The kinds of a language, made as another one makes them in files with the suffixes of that."""

    def chosen(kind: str) -> Maker:
        def maker(source: Source, chance: random.Random) -> Made:
            of_the_file = found[others.get(Path(source.path).suffix, language)].get(kind)
            return of_the_file(source, chance) if of_the_file else None

        return maker

    return {kind: chosen(kind) for kind in found[language]}


def _makers(row: Mapping[str, Any]) -> dict[str, Maker]:
    found = {
        "comment": comments("//", row["any"]),
        "blank-line": blank_lines(row["top"]),
        "rename-local": _locals(**row["local"]),
        "reformat": _reformatted(**row["reformat"]),
        **{kind: _inserted(row["function"], statement) for kind, statement in row["inserted"].items()},
        **{kind: _replaced(**one) for kind, one in row["replaced"].items()},
        **{kind: _renamed(**one) for kind, one in row["renamed"].items()},
    }
    if row.get("unbalanced"):
        found["syntax"] = _unbalanced
    if "overloads" in row:
        found["new-parameter"] = _overloads(row["overloads"])
    return found


def _chosen(
    pattern: str,
    fits: Callable[[Source, re.Match[str]], bool],
    make: Callable[[Source, re.Match[str]], tuple[str, str]],
) -> Maker:
    """What is made of a random place that fits."""

    def maker(source: Source, chance: random.Random) -> Made:
        places = list(re.finditer(pattern, source.text, re.MULTILINE))
        chance.shuffle(places)
        place = next((place for place in places if fits(source, place)), None)
        return None if place is None else make(source, place)

    return maker


def _anything(_source: Source, _place: re.Match[str]) -> bool:
    return True


def _is_used(source: Source, place: re.Match[str]) -> bool:
    return source.used(place["name"])


def _locals(pattern: str, odd: str, suffix: str, *, is_new: bool = False, is_unused: bool = False) -> Maker:
    """A variable that is only ever used as a plain name; its new name `is_new` or the old one `is_unused` elsewhere."""

    def fits(source: Source, place: re.Match[str]) -> bool:
        is_plain = re.search(odd.replace("NAME", place[1]), source.text) is None
        taken = (is_new and f"{place[1]}{suffix}" in source.text) or (is_unused and source.used(place[1]))
        return is_plain and not taken

    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        name, new = place[1], f"{place[1]}{suffix}"
        note = f"local {name} renamed to {new} (line {line_of(source.text, place.start())})"
        return _names_replaced(source.text, name, new), note

    return _chosen(pattern, fits, make)


def _reformatted(pattern: str, new: str, words: str = "in brackets") -> Maker:
    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        text = spliced(source.text, place.start(), place.end(), place.expand(new))
        return text, f"return of line {line_of(source.text, place.start())} {words}"

    return _chosen(pattern, _anything, make)


def _inserted(function: str, statement: str) -> Maker:
    """A statement at the head of a function's body; `function` matches the line with its brace."""

    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        line = source.text[source.text.rfind("\n", 0, place.end()) + 1 : place.end()]
        indent = line[: len(line) - len(line.lstrip())]
        step = "\t" if "\n\t" in source.text else "  "
        end = source.text.index("\n", place.start()) if "\n" not in place[0] else place.end()
        text = spliced(source.text, end, end, f"\n{indent}{step}{statement}")
        return text, f"`{statement}` after line {line_of(source.text, place.start())}"

    return _chosen(function, _anything, make)


def _replaced(pattern: str, words: str, new: str = "", *, used: bool = False, parameter: bool = False) -> Maker:
    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        made = place.expand(new)
        if parameter:
            comma = "" if re.match(r"(?:void)?\)", place.string[place.end() :]) else ", "
            made = f"{', ' if place[0].endswith('self') else ''}{made}{comma}"
        text = spliced(source.text, place.start("here"), place.end("here"), made)
        name = place.groupdict().get("name")
        return text, f"{name + ': ' if name else ''}{words} (line {line_of(source.text, place.start('here'))})"

    return _chosen(pattern, _is_used if used else _anything, make)


def _renamed(pattern: str, suffix: str, *, members: bool = False) -> Maker:
    """A name that other files use, renamed in this file only."""

    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        name, where = place["name"], line_of(source.text, place.start("name"))
        text = _names_replaced(source.text, name, f"{name}{suffix}", members=members)
        return text, f"{name} renamed to {name}{suffix} (line {where})"

    return _chosen(pattern, _is_used, make)


def _names_replaced(text: str, name: str, new: str, *, members: bool = False) -> str:
    """Every occurrence of the name; members of something only if asked for."""
    return re.sub(rf"(?<![{'' if members else '.'}\w$]){re.escape(name)}(?![\w$])", new, text)


def _unbalanced(source: Source, chance: random.Random) -> Made:
    """A closing bracket at the end of a line lost."""

    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        text = spliced(source.text, place.start("here"), place.end("here"), "")
        return text, f"bracket lost (line {line_of(source.text, place.start())})"

    return _chosen(r"^[^\n'\"`/]*[\w)](?P<here>\))[;,]?$", _anything, make)(source, chance)


def _overloads(pattern: str) -> Maker:
    """One more parameter in every overload, so that the file itself stays in one piece."""

    def make(source: Source, place: re.Match[str]) -> tuple[str, str]:
        name = place["name"]
        everywhere = re.compile(pattern.replace(r"\w+", name, 1), re.MULTILINE)
        text = everywhere.sub(lambda one: f"{one[1]}requiredExtra: number{one[3] or ', '}", source.text)
        return text, f"{name} takes one more argument (line {line_of(source.text, place.start())})"

    return _chosen(pattern, _is_used, make)
