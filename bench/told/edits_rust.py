"""Edits of Rust files. The modules of a crate use each other by path, and the compiler names every use that broke."""

import random
import re
from collections.abc import Mapping

from told.edits_braces import anything, chosen, inserted, renamed_everywhere, replaced, unbalanced
from told.source import Made, Maker, Source, blank_lines, comments, line_of, renamed, renamed_member, spliced

VISIBLE = r"pub(?:\([^)\n]*\))? "
TOP = r"^()(?:pub |fn |impl |struct |enum |use )"
ANY = r"^([ ]*)(?:return|if|for|match|let|fn|pub fn)\b"
FUNCTION = r"^ *(?:pub(?:\([^)\n]*\))? )?fn [^\n]*\{$"
EXPORT = rf"^ *{VISIBLE}(?:fn|struct|enum|type|const) (?P<name>\w+)"
METHOD = rf"^    {VISIBLE}fn (?P<name>\w+)\(&"
FIELD = rf"^    {VISIBLE}(?P<name>\w+): (?P<here>[\w<>]+),$"


def rename_local(source: Source, chance: random.Random) -> Made:
    """A variable that is only ever used as a plain name."""

    def fits(place: re.Match[str]) -> bool:
        odd = rf"[.'\"]{place[1]}\b|\b{place[1]}(?:\s*:|!|\()|[{{,] *{place[1]} *[,}}]"
        return re.search(odd, source.text) is None and not source.used(place[1])

    place = chosen(r"^ +let (?:mut )?([a-z]\w{2,}) = ", source, chance, fits)
    if place is None:
        return None
    text = renamed(source.text, place[1], f"{place[1]}_value")
    return text, f"local {place[1]} renamed to {place[1]}_value (line {line_of(source.text, place.start())})"


def reformat(source: Source, chance: random.Random) -> Made:
    place = chosen(r"^( +)return ([\w.]+\([^\n`'\"/,]*\));$", source, chance, anything)
    if place is None:
        return None
    new = f"{place[1]}return {{\n{place[1]}    {place[2]}\n{place[1]}}};"
    text = spliced(source.text, place.start(), place.end(), new)
    return text, f"return of line {line_of(source.text, place.start())} in a block"


MAKERS: Mapping[str, Maker] = {
    "comment": comments("//", ANY),
    "blank-line": blank_lines(TOP),
    "rename-local": rename_local,
    "reformat": reformat,
    "wrong-argument": inserted(FUNCTION, "let _ = char::from_u32();"),
    "wrong-type": inserted(FUNCTION, 'let _checked_count: u32 = "many";'),
    "undefined-name": inserted(FUNCTION, "undefined_helper();"),
    "syntax": unbalanced,
    "break-import": replaced(r"^use crate::\w+(?P<here>)::", lambda _place: "_missing", "use of a missing module"),
    "rename-export": renamed_everywhere(EXPORT, renamed, "_renamed"),
    "remove-export": replaced(
        rf"^(?P<here>{VISIBLE}fn (?P<name>\w+)[<(](?:.*\n)+?\}}\n)", lambda _place: "", "removed", used=True
    ),
    "new-parameter": replaced(
        rf"^ *{VISIBLE}fn (?P<name>\w+)\((?:&(?:mut )?self(?:, )?)?(?P<here>)(?=[^&\n]*\))",
        lambda place: (
            (", " if place[0].endswith("self") else "")
            + "required_extra: u32"
            + ("" if place.string[place.end() :].startswith(")") else ", ")
        ),
        "takes one more argument",
        used=True,
    ),
    "return-type": replaced(
        rf"^ *{VISIBLE}fn (?P<name>\w+)\([^\n]*\) -> (?P<here>[\w<>&: ]+) \{{$",
        lambda _place: "(u8, u8)",
        "returns a pair",
        used=True,
    ),
    "field-type": replaced(FIELD, lambda _place: "(u8, u8)", "is a pair", used=True),
    "rename-member": renamed_everywhere(METHOD, renamed_member, "_renamed"),
}
