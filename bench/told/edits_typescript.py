"""Edits of TypeScript files."""

import random
import re
from collections.abc import Mapping

from told.edits_braces import anything, chosen, inserted, renamed_everywhere, replaced, unbalanced
from told.source import Made, Maker, Source, blank_lines, comments, line_of, renamed, renamed_member, spliced

TOP = r"^()(?:export |import |const |function |class |interface |type )"
ANY = r"^([ ]*)(?:return|if \(|const|let|for \(|export|interface|type)\b"
FUNCTION = r"^(?:export )?(?:default )?(?:async )?function \w+[^\n;]*\{$"
EXPORT = r"^export (?:declare )?(?:abstract )?(?:async )?(?:function|class|const|let|interface|type|enum) (?P<name>\w+)"
RESULT = r"^export function (?P<name>\w+)\([^\n]*\): (?!void|any|unknown|asserts)[^\n]* \{\n"
MEMBER = r"^  (?:public |protected |readonly )*(?P<name>[a-z]\w+)(?:\??: [^\n=(]+;$|\([^\n]*\)(?:: [^\n]+)? \{$)"


def rename_local(source: Source, chance: random.Random) -> Made:
    """A constant that is only ever used as a plain name: no key, no shorthand, no member of that name."""

    def fits(place: re.Match[str]) -> bool:
        odd = rf"[.'\"`#]{place[1]}\b|\b{place[1]}\s*[:?]|[{{,]\s*{place[1]}\s*[,}}]"
        return re.search(odd, source.text) is None and f"{place[1]}Value" not in source.text

    place = chosen(r"^ +const ([a-z]\w{2,}) = ", source, chance, fits)
    if place is None:
        return None
    text = renamed(source.text, place[1], f"{place[1]}Value")
    return text, f"local {place[1]} renamed to {place[1]}Value (line {line_of(source.text, place.start())})"


def reformat(source: Source, chance: random.Random) -> Made:
    place = chosen(r"^( +)return ([\w.]+\([^\n`'\"/]*\));$", source, chance, anything)
    if place is None:
        return None
    new = f"{place[1]}return (\n{place[1]}  {place[2]}\n{place[1]});"
    text = spliced(source.text, place.start(), place.end(), new)
    return text, f"return of line {line_of(source.text, place.start())} in brackets"


def new_parameter(source: Source, chance: random.Random) -> Made:
    """In every overload, so that the file itself stays in one piece."""
    pattern = r"^export (?:async )?function (?P<name>\w+)(?:<[^\n(]*>)?\((?!this\b)"
    place = chosen(pattern, source, chance, lambda place: source.used(place["name"]))
    if place is None:
        return None
    name = place["name"]
    all_of_it = re.compile(rf"^(export (?:async )?function {name}(?:<[^\n(]*>)?\()(?!this\b)(\s*\))?", re.MULTILINE)
    text = all_of_it.sub(lambda one: f"{one[1]}requiredExtra: number{one[2] or ', '}", source.text)
    return text, f"{name} takes one more argument (line {line_of(source.text, place.start())})"


MAKERS: Mapping[str, Maker] = {
    "comment": comments("//", ANY),
    "blank-line": blank_lines(TOP),
    "rename-local": rename_local,
    "reformat": reformat,
    "wrong-argument": inserted(FUNCTION, "parseInt();"),
    "wrong-type": inserted(FUNCTION, 'const checkedCount: number = "many";'),
    "undefined-name": inserted(FUNCTION, "undefinedHelper();"),
    "syntax": unbalanced,
    "missing-return": replaced(
        RESULT + r"(?:(?!\}).*\n)*?  (?P<here>return [^\n]+;)\n\}",
        lambda _place: "",
        "its return lost",
    ),
    "break-import": replaced(
        r"^import (?:type )?[^\n'\"]*from ['\"]\.[^\n'\"]*?(?P<here>(?:\.js|\.ts)?)['\"];?$",
        lambda place: f"_missing{place['here']}",
        "import of a file that is not there",
    ),
    "rename-export": renamed_everywhere(EXPORT, renamed, "Renamed"),
    "remove-export": replaced(
        EXPORT.replace("^export ", "^(?P<here>export )"), lambda _place: "", "no longer exported", used=True
    ),
    "new-parameter": new_parameter,
    "return-type": replaced(
        r"^export function (?P<name>\w+)(?:<[^\n(]*>)?\([^\n]*\): (?P<here>[^\n{]+?) \{$",
        lambda _place: "symbol",
        "returns a symbol",
        used=True,
    ),
    "field-type": replaced(
        r"^  (?:readonly |public )?(?P<name>[a-z]\w+)\??: (?P<here>[^\n=(]+);$",
        lambda _place: "symbol",
        "is a symbol",
        used=True,
    ),
    "rename-member": renamed_everywhere(MEMBER, renamed_member, "Renamed"),
}
