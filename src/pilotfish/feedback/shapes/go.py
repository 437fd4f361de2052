"""What other files can see of a file of Go: all of it but remarks and the bodies of its functions. Pure.

Go infers nothing from a body: signatures say everything, and what a body declares is its own. A variable without a type
takes it from its value, which is no body. What a body or a remark changes elsewhere are warnings, as of `vet` about
callers of a function that passes a format on, and no errors.
"""

import re
from collections.abc import Iterator

GO = (".go",)

MAX_CHARACTERS = 256 * 1024
"""A longer file counts as a whole."""

# What stays open ends with its line or its file: no text is looked through twice.
_TOKEN = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|`[^`]*`?)|(?P<remark>//[^\n]*|/\*(?:[\s\S]*?\*/|[\s\S]*))"
    r"|(?P<blank>[ \t\r]+)|(?P<other>\w+|\n|.)"
)

_DIRECTIVE = re.compile(r"//(?:go:|export |line )")
"""Remarks that mean something for what follows; those before the package may do so for the whole file."""

_PACKAGE = re.compile(r"^package\b", re.MULTILINE)

_CGO = re.compile(r"^[ \t]*(?:import[ \t]+)?\"C\"", re.MULTILINE)
"""Then the remark before it is C."""


def visible_tokens(text: str) -> tuple[str, ...] | None:
    """In order, with the ends of lines, which may end statements; None where that cannot be told."""
    package = _PACKAGE.search(text)
    if package is None or len(text) > MAX_CHARACTERS or _CGO.search(text):
        return None
    found, brackets, body, is_function = [text[: package.start()], "\n"], 0, 0, False
    for word in _tokens(text, package.start()):
        if body:
            body += (word == "{") - (word == "}")
            continue
        if word == "{" and is_function and not brackets and found[-1] not in ("struct", "interface"):
            body, is_function = 1, False
            continue
        brackets += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        if word == "\n" and not brackets:
            # A function without a body ends with its line.
            is_function = False
        elif word == "func" and not brackets and found[-1] == "\n":
            is_function = True
        if word != "\n" or found[-1] != "\n":
            found.append(word)
    return None if body or brackets else tuple(found)


def _tokens(text: str, start: int) -> Iterator[str]:
    for match in _TOKEN.finditer(text, start):
        said = match[0]
        if match.lastgroup in ("text", "other") or _DIRECTIVE.match(said):
            yield said
        elif match.lastgroup == "remark" and "\n" in said:
            # As if the line ended there.
            yield "\n"
