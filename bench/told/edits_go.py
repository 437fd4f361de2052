"""Edits of Go files. The files of a package share its names, so an error in another file is the usual case."""

import random
import re
from collections.abc import Mapping

from told.edits_braces import anything, chosen, inserted, renamed_everywhere, replaced
from told.source import Made, Maker, Source, blank_lines, comments, line_of, renamed, renamed_member, spliced

TOP = r"^()(?:func |type |var |const )"
ANY = r"^(\t*)(?:return|if|for|switch|func|type)\b"
FUNCTION = r"^func [^\n]*\{$"
EXPORT = r"^(?:func|type) (?P<name>(?!Test|Benchmark|Example|main\b|init\b)\w+)"
METHOD = r"^func \(\w+ \*?\w+\) (?P<name>\w+)\("
NO_FIELD = "(?!return|package|import|var|const|type|goto|break|continue|go|defer)"
FIELD = rf"^\t(?P<name>{NO_FIELD}[a-zA-Z]\w+)[ ]+(?P<here>(?:\[\]|\*|map\[\w+\])?[\w.]+)$"


def rename_local(source: Source, chance: random.Random) -> Made:
    """A variable that is only ever used as a plain name."""

    def fits(place: re.Match[str]) -> bool:
        odd = rf"[.'\"`]{place[1]}\b|\b{place[1]}:[^=]"
        plain = re.search(odd, source.text) is None and f"{place[1]}Value" not in source.text
        return plain and not source.used(place[1])

    place = chosen(r"^\t+([a-z]\w{2,}) := ", source, chance, fits)
    if place is None:
        return None
    text = renamed(source.text, place[1], f"{place[1]}Value")
    return text, f"local {place[1]} renamed to {place[1]}Value (line {line_of(source.text, place.start())})"


def reformat(source: Source, chance: random.Random) -> Made:
    place = chosen(r"^(\t+)return ([\w.]+\([^\n`'\"/,]*\))$", source, chance, anything)
    if place is None:
        return None
    text = spliced(source.text, place.start(), place.end(), f"{place[1]}return ({place[2]})")
    return text, f"return of line {line_of(source.text, place.start())} in brackets"


MAKERS: Mapping[str, Maker] = {
    "comment": comments("//", ANY),
    "blank-line": blank_lines(TOP),
    "rename-local": rename_local,
    "reformat": reformat,
    "wrong-argument": inserted(FUNCTION, "_ = len()"),
    "wrong-type": inserted(FUNCTION, 'var checkedCount int = "many"; _ = checkedCount'),
    "undefined-name": inserted(FUNCTION, "undefinedHelper()"),
    "missing-return": replaced(
        r"^func [^\n]*\) [\w*.\[\]]+ \{\n(?:(?!\}).*\n)*?\t(?P<here>return [^\n]+)\n\}",
        lambda _place: "",
        "return lost",
    ),
    "break-import": replaced(
        r"^\t(?:\w+ )?\"[\w./]+(?P<here>)\"$", lambda _place: "_missing", "import of a package that is not there"
    ),
    "rename-export": renamed_everywhere(EXPORT, renamed, "Renamed"),
    "remove-export": replaced(
        r"^(?P<here>func (?P<name>(?!Test|Benchmark|Example|main\b|init\b)\w+)\((?:.*\n)+?\}\n)",
        lambda _place: "",
        "removed",
        used=True,
    ),
    "new-parameter": replaced(
        r"^func (?:\(\w+ \*?\w+\) )?(?P<name>(?!Test|Benchmark|Example|main\b|init\b)\w+)\((?P<here>)",
        lambda place: "requiredExtra int" + ("" if place.string[place.end() :].startswith(")") else ", "),
        "takes one more argument",
        used=True,
    ),
    "return-type": replaced(
        r"^func (?:\(\w+ \*?\w+\) )?(?P<name>\w+)\([^\n]*\) (?P<here>[\w*.\[\]]+) \{$",
        lambda _place: "complex128",
        "returns a complex128",
        used=True,
    ),
    "field-type": replaced(FIELD, lambda _place: "complex128", "is a complex128", used=True),
    "rename-member": renamed_everywhere(METHOD, renamed_member, "Renamed"),
}
