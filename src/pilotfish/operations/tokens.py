"""Identifiers in a text, found without knowing its language.

A word is whole where no letter, digit, `_` or `$` stands next to it. Places are in code points.
"""

import builtins
import keyword
import re
from functools import lru_cache

from pilotfish.errors import Code, Refused
from pilotfish.model import Position, Range
from pilotfish.protocol.positions import Text

_NO_CODE = re.compile(r"""(["'`]).*?\1|(?:#|//).*""")
_WORD = re.compile(r"[\w$]+")
_NO_NAME = re.compile(r"[\s\"'()\[\]{},;]")

KEYWORDS = frozenset({
    "abstract", "and", "as", "assert", "async", "await", "break", "case", "catch", "class", "const", "continue", "def",
    "defer", "del", "do", "elif", "else", "end", "enum", "except", "export", "extends", "extern", "final", "finally",
    "fn", "for", "from", "fun", "func", "function", "global", "go", "goto", "if", "impl", "implements", "import", "in",
    "interface", "internal", "is", "let", "local", "match", "mod", "module", "mut", "namespace", "new", "not", "of",
    "or", "override", "package", "pass", "private", "protected", "pub", "public", "raise", "readonly", "record",
    "ref", "return", "static", "struct", "switch", "then", "throw", "trait", "try", "type", "typeof", "union", "unsafe",
    "use", "using", "val", "var", "virtual", "void", "where", "while", "with", "yield",
})  # fmt: skip
"""What stands before names in many languages. A name that is called so is found where it is the only word."""


RECEIVERS = frozenset({"cls", "self", "super", "this"})
"""The object itself, which nobody asks about."""


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


def main_name(text: Text, line: int, *, called: bool) -> Position | None:
    """Where the name begins that a line is about: with `called`, the first that is called or declared with parameters,
    else the first at all. A number is no name; a keyword or a word for the object itself is one if no other is there.
    """
    said = text.line(line)
    words = [word for word in _WORD.finditer(said) if not word[0][0].isdigit()]
    names = [word for word in words if word[0] not in KEYWORDS] or words
    own = [word for word in names if word[0] not in RECEIVERS] or names
    calls = [word for word in own if said.startswith("(", word.end())] if called else []
    chosen = calls or own
    return Position(line, chosen[0].start()) if chosen else None


def refuse_bad_name(new: str, old: str, language: str = "") -> None:
    """Raise `Refused` for what is no name in the language: some servers write anything into the code, others do not say
    why they write nothing.
    """
    if language == "python" and keyword.iskeyword(new):
        raise Refused(Code.INVALID_INPUT, f"{new!r} is a keyword of Python, and no name.")
    if _NO_NAME.search(new):
        message = f"{new!r} is no name: a name has no spaces, quotes, brackets, commas or semicolons."
        raise Refused(Code.INVALID_INPUT, message)
    if new[:1].isdigit() and not old[:1].isdigit():
        raise Refused(Code.INVALID_INPUT, f"{new!r} is no name: a name does not begin with a digit.")


def hidden_builtin(new: str, language: str) -> tuple[str, ...]:
    """A warning for a name that the language has already, without any declaration."""
    if language != "python" or new not in dir(builtins):
        return ()
    return (f"{new} is a builtin of Python, which the new name hides wherever both could be meant",)


def taken_line(text: str, old: str, new: str) -> int | None:
    """The first line, from 1, of a file that uses the old name by itself and the new one, too: there they may collide.

    Members, arguments by name, comments and strings do not count.
    """
    lines = [_NO_CODE.sub("", line) for line in text.splitlines()]
    bare = {name: re.compile(rf"(?<!\.){_pattern(name).pattern}(?!=[^=])") for name in (old, new)}
    if not any(bare[old].search(line) for line in lines):
        return None
    return next((number for number, line in enumerate(lines, 1) if bare[new].search(line)), None)


def lines_with(text: str, word: str) -> list[int]:
    """The lines, from 1, that have it as a whole word."""
    return [number for number, line in enumerate(text.split("\n"), 1) if _pattern(word).search(line)]


@lru_cache(maxsize=256)
def _pattern(word: str) -> re.Pattern[str]:
    before = r"(?<![\w$])" if _WORD.match(word) else ""
    after = r"(?![\w$])" if _WORD.fullmatch(word[-1:]) else ""
    return re.compile(before + re.escape(word) + after)
