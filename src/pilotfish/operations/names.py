"""Names: identifiers in a text, found without knowing its language, and bare names out of the labels of servers.

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


# --- Bare names out of labels -----------------------------------------------------------------------------------------

# Servers decorate the names of symbols, each in its own way: `(method) greet`, `greet(int)`, `Box<T>`,
# `(*Server).Start`, `Widget::draw`, `impl Display for Point`, `def greet(name)`, `greet/2`. `names_of` takes all of
# that off by rule and leaves the path of names, outermost first; a caller's `Class.method` goes through the same rules,
# so the two meet.

_KIND_WORDS = frozenset({
    "accessor", "alias", "class", "constant", "constructor", "enum", "field", "function", "getter", "interface",
    "local", "method", "module", "namespace", "parameter", "property", "setter", "type", "variable",
})  # fmt: skip
_DECLARING = frozenset({
    "abstract", "async", "class", "const", "def", "defmacro", "defmodule", "defp", "enum", "export", "extern",
    "final", "fn", "func", "function", "fun", "get", "global", "impl", "interface", "let", "local", "macro", "mod",
    "module", "namespace", "object", "override", "package", "private", "procedure", "protected", "protocol", "pub",
    "public", "record", "set", "static", "struct", "sub", "trait", "type", "union", "val", "var", "virtual",
})  # fmt: skip
"""What may stand before a name. A symbol that is itself called so keeps its name: it is the last word."""

_KIND_PREFIX = re.compile(r"\(([a-z ]+)\)\s+")
_RECEIVER = re.compile(r"(?:func\s+)?\(\s*(?:\w+\s+)?\*?\s*([\w.]+)[^)]*\)\s*\.?\s*(?=\w)")
_POINTER = re.compile(r"\(\*\s*([\w.]+)[^)]*\)")
_OPERATOR = re.compile(r"\boperator(?:\s*(?P<sign>\(\)|\[\]|[^\w\s(]+)|\s+(?P<type>\w+))")
_TYPE_SUFFIX = re.compile(r"\s*(?:->|=>|(?<!:):(?!:)).*", re.DOTALL)
_ARITY = re.compile(r"/\d+$")
_SEPARATOR = re.compile(r"::|[.#/\\]")
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_SIGILS = "$@&*%+-`'\" "


def bare_name(label: str) -> str:
    """The name alone, as it stands in the source."""
    return names_of(label)[-1]


@lru_cache(maxsize=8192)
def names_of(label: str) -> tuple[str, ...]:
    """The bare names in a label, outermost first; the label itself where nothing in it looks like a name."""
    if label.isidentifier():
        return (label,)
    return tuple(_names(label.strip())) or (label,)


def _names(label: str) -> list[str]:
    kind = _KIND_PREFIX.match(label)
    if kind and _KIND_WORDS.issuperset(kind[1].split()):
        label = label[kind.end() :]
    if operator := _OPERATOR.search(label):
        own = f"operator{operator['sign']}" if operator["sign"] else f"operator {operator['type']}"
        return [*_names(label[: operator.start()].rstrip(":. ")), own]
    if receiver := _RECEIVER.match(label):
        return [*_split(receiver[1]), *_names(label[receiver.end() :])]
    if pointer := _POINTER.fullmatch(label):
        return _split(pointer[1])
    words = _TYPE_SUFFIX.sub("", _without_brackets(label)).split()
    return _split(_named(words)) if words else []


def _named(words: list[str]) -> str:
    """Of the words of a declaration, the one that is the name."""
    if words[0] == "impl" and "for" in words[:-1]:
        return words[words.index("for") + 1]
    for word in words[:-1]:
        if word not in _DECLARING:
            return word
    return words[-1]


def _split(name: str) -> list[str]:
    parts = (part.strip(_SIGILS) for part in _SEPARATOR.split(_ARITY.sub("", name)))
    return [part for part in parts if part]


def _without_brackets(label: str) -> str:
    """`label` without what stands in brackets; an arrow is not a bracket, and one that never closes stays."""
    kept: list[str] = []
    open_at: list[tuple[str, int]] = []
    for index, character in enumerate(label):
        if character in _CLOSING:
            open_at.append((_CLOSING[character], len(kept)))
        elif open_at and character == open_at[-1][0] and label[index - 1 : index + 1] not in {"->", "=>"}:
            del kept[open_at.pop()[1] :]
            continue
        kept.append(character)
    return "".join(kept)
