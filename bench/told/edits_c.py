"""Edits of C files. What a header loses breaks the files that include it."""

import random
import re
from collections.abc import Mapping

from told.edits_braces import anything, chosen, inserted, renamed_everywhere, replaced, unbalanced
from told.source import Made, Maker, Source, blank_lines, comments, line_of, renamed, renamed_member, spliced

TOP = r"^()(?:static |int |void |char |struct |typedef |#include )"
ANY = r"^([ ]*)(?:return|if \(|for \(|while \(|static|int|void)\b"
FUNCTION = r"^[a-z][\w *]+\([^\n;]*\) \{$"
PROTOTYPE = r"^(?!typedef|return|static|else)[a-z][\w ]*[ *](?P<name>[a-z]\w+)\("
MEMBER = r"^    (?!return|else|goto|break|case)(?P<here>[a-z][\w ]*[ *]+)(?P<name>[a-z]\w+);"


def rename_local(source: Source, chance: random.Random) -> Made:
    """A variable that is only ever used as a plain name."""

    def fits(place: re.Match[str]) -> bool:
        odd = rf"(?:\.|->|[\"'#]){place[1]}\b"
        return re.search(odd, source.text) is None and not source.used(place[1])

    place = chosen(r"^ +(?:int|size_t|char \*) ?(\w{2,})(?: = [^\n,]+)?;", source, chance, fits)
    if place is None:
        return None
    text = renamed(source.text, place[1], f"{place[1]}_value")
    return text, f"local {place[1]} renamed to {place[1]}_value (line {line_of(source.text, place.start())})"


def reformat(source: Source, chance: random.Random) -> Made:
    place = chosen(r"^( +)return ([\w]+(?:\([^\n`'\"/]*\))?);$", source, chance, anything)
    if place is None:
        return None
    new = f"{place[1]}return (\n{place[1]}    {place[2]}\n{place[1]});"
    text = spliced(source.text, place.start(), place.end(), new)
    return text, f"return of line {line_of(source.text, place.start())} in brackets"


MAKERS: Mapping[str, Maker] = {
    "comment": comments("//", ANY),
    "blank-line": blank_lines(TOP),
    "rename-local": rename_local,
    "reformat": reformat,
    "wrong-argument": inserted(FUNCTION, "(void)strlen();"),
    "wrong-type": inserted(FUNCTION, "struct { int one; } checked = 1.5;"),
    "undefined-name": inserted(FUNCTION, "undefined_helper = 1;"),
    "syntax": unbalanced,
    "break-import": replaced(r"^#include \"\w+(?P<here>)\.h\"$", lambda _place: "_missing", "include of no file"),
    "rename-export": renamed_everywhere(PROTOTYPE, renamed, "_renamed"),
    "new-parameter": replaced(
        PROTOTYPE + r"(?P<here>)(?=[^\n)]*\);)",
        lambda place: "int extra" + ("" if re.match(r"void\)|\)", place.string[place.end() :]) else ", "),
        "takes one more argument",
        used=True,
    ),
    "remove-export": replaced(
        r"^(?P<here>(?!typedef|return|static|else)[a-z][\w ]*[ *](?P<name>[a-z]\w+)\([^\n]*\);)$",
        lambda _place: "",
        "no longer declared",
        used=True,
    ),
    "field-type": replaced(MEMBER, lambda _place: "struct unknown_type ", "of a type that is not known", used=True),
    "rename-member": renamed_everywhere(MEMBER, renamed_member, "_renamed"),
}
