"""The names that an edit may have changed the meaning of, found without knowing the language. Pure.

A file that an edit breaks mentions something that the edit touched: a name that it removed, added or spelt anew, or
one whose definition stands on a changed line (`def f(` with another parameter) or around one (the body of `f` returns
another type). Which of the files that mention such a name are broken, only a check can tell.

Comments and documentation affect nobody. A string may be a type: the definition that it stands in counts as changed,
the words in it do not.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from pilotfish.feedback.linemap import line_map, lines_of

WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]+")

MAX_LINES = 20_000
"""Lines of a text that is looked at; what is longer was generated, and is matched by all of its names."""

MAX_KEPT = 200_000
"""Characters of a text whose lines are kept: one edit after the other is compared with the same one."""

MAX_ENCLOSING = 3
"""Definitions around a changed line: a method, its class, a class around that."""

KEYWORDS = frozenset({
    "abstract", "and", "any", "as", "assert", "async", "await", "bool", "boolean", "break", "case", "catch",
    "char", "class", "cls", "const", "constructor", "continue", "declare", "def", "default", "del", "delete",
    "do", "double", "elif", "else", "end", "enum", "except", "export", "extends", "extern", "false", "False",
    "final", "finally", "float", "fn", "for", "from", "func", "function", "get", "global", "go", "goto", "if",
    "impl", "implements", "import", "in", "inline", "instanceof", "int", "interface", "internal", "is", "keyof",
    "lambda", "let", "long", "loop", "match", "mod", "module", "mut", "namespace", "new", "nil", "None", "nonlocal",
    "not", "null", "number", "object", "of", "operator", "or", "override", "package", "pass", "private", "protected",
    "pub", "public", "raise", "readonly", "return", "self", "set", "short", "signed", "sizeof", "static", "str",
    "string", "struct", "super", "switch", "template", "then", "this", "throw", "throws", "trait", "True", "true",
    "try", "type", "typedef", "typeof", "undefined", "union", "unknown", "unsafe", "unsigned", "use", "using",
    "var", "virtual", "void", "volatile", "when", "where", "while", "with", "yield",
})  # fmt: skip
"""Of the languages that we know: no file is affected because it says `return`."""

_DEFINED = re.compile(
    r"\b(?:def|class|function|func|fn|const|let|var|type|interface|enum|struct|trait|union|module|namespace|macro|"
    r"static|typedef|define|mod|object|record|protocol|val|data)\b\s*(?:\([^)]*\)\s*)?[*&\s]*([^\W\d][\w$]*)"
)
"""What a keyword introduces; Go has the receiver between `func` and the name."""

_LEADING = re.compile(r"^\s*(?:[\w$<>\[\],.?*&:]+\s+)*?[*&]*([^\W\d][\w$]*)\s*(?:\??:|=(?!=)|\(|\{$)")
"""A field, an assignment, a method without a keyword, or the C way: the name before `:`, `=` or `(`."""


_RETURNED = re.compile(r"return\((.*)\)(;?)")

_HASH = re.compile(r'''("""|\'\'\')(?:\\.|.)*?\1|#[^\n]*|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')''', re.DOTALL)
_SLASHES = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""", re.DOTALL)
_LIFETIMES = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])')""", re.DOTALL)
"""Comments, and strings as the last group, as languages write them in three ways; Rust has `'a` without an end."""

HASHES = (".py", ".pyi", ".rb", ".sh", ".bash", ".pl", ".r", ".jl", ".ex", ".exs", ".nim")
SLASHES = (
    ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".vue", ".svelte", ".go", ".c", ".h", ".cc", ".hh",
    ".cpp", ".hpp", ".cxx", ".m", ".java", ".kt", ".kts", ".scala", ".swift", ".dart", ".cs", ".php", ".zig",
)  # fmt: skip

STYLES = {**dict.fromkeys(HASHES, _HASH), **dict.fromkeys(SLASHES, _SLASHES), ".rs": _LIFETIMES}
"""By extension; a language that is not here has its comments compared like code."""


class ChangedNames(Struct, frozen=True):
    """`changed` differ between the two texts; `defined` are defined on or around changed lines."""

    changed: frozenset[str]
    defined: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.changed | self.defined


def changed_names(old: str, new: str, extension: str = "") -> ChangedNames:
    """What may mean something else after the edit; nothing when only comments, blanks or line ends differ."""
    before, after = _code(old, extension), _code(new, extension)
    if len(before.lines) > MAX_LINES or len(after.lines) > MAX_LINES:
        return ChangedNames(_names(old) ^ _names(new) or _names(new), frozenset())
    moved = line_map(before.lines, after.lines)
    gone = [number for number, gap in enumerate(moved.old_gaps) if gap is not None]
    come = [number for number, gap in enumerate(moved.new_gaps) if gap is not None]
    if _pressed(before, gone) == _pressed(after, come):
        return ChangedNames(frozenset(), frozenset())
    lost, gained = before.words(gone), after.words(come)
    changed = frozenset((lost - gained).keys() | (gained - lost).keys())
    defined = {*_around(before.bare, gone), *_around(after.bare, come)}
    return ChangedNames(changed - KEYWORDS, frozenset(defined - KEYWORDS))


def defined_names(text: str) -> frozenset[str]:
    """Every name that a text seems to define: what a file that is moved or deleted takes with it."""
    return frozenset(name for line in lines_of(text)[:MAX_LINES] for name in definitions(line)) - KEYWORDS


def without_comments(text: str, extension: str) -> list[str]:
    """The lines of a text, with neither comments nor strings."""
    return [*_code(text, extension).bare]


def without_remarks(text: str, extension: str) -> str:
    """A text with its strings, but neither comments nor documentation."""
    style = STYLES.get(extension)
    return text if style is None else style.sub(_without_comments, text)


class _Code:
    """A text without its comments (`lines`), and without its strings as well (`bare`), line by line."""

    def __init__(self, text: str, style: re.Pattern[str] | None) -> None:
        self.lines = lines_of(text if style is None else style.sub(_without_comments, text))
        self.bare = lines_of(text if style is None else style.sub(_blank, text))

    def words(self, numbers: Sequence[int]) -> Counter[str]:
        return Counter(found[0] for number in numbers for found in WORD.finditer(self.bare[number]))


def _code(text: str, extension: str) -> _Code:
    return _kept_code(text, extension) if len(text) <= MAX_KEPT else _Code(text, STYLES.get(extension))


@lru_cache(maxsize=8)
def _kept_code(text: str, extension: str) -> _Code:
    return _Code(text, STYLES.get(extension))


def _without_comments(found: re.Match[str]) -> str:
    return found[0] if found[found.re.groups] else _blank(found)


def _blank(found: re.Match[str]) -> str:
    """As many lines as before."""
    return "\n" * found[0].count("\n")


def _pressed(code: _Code, numbers: Sequence[int]) -> str:
    """What stands on these lines but for blanks: where it is the same, the edit was one of form."""
    pressed = _joined(code.lines, numbers)
    bracketed = _RETURNED.fullmatch(pressed.replace("\n", ""))
    without_strings = _RETURNED.fullmatch(_joined(code.bare, numbers).replace("\n", ""))
    if bracketed is None or without_strings is None or not _is_balanced(without_strings[1]):
        return pressed
    # A formatter puts brackets around what is returned when it breaks the line, and takes them away again.
    return f"return{bracketed[1]}{bracketed[2]}"


def _joined(lines: Sequence[str], numbers: Sequence[int]) -> str:
    return "\n".join(filter(None, ("".join(lines[number].split()) for number in numbers)))


def _is_balanced(code: str) -> bool:
    depth = 0
    for character in code:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _around(lines: Sequence[str], changed: Sequence[int]) -> Iterator[str]:
    """What is defined on the changed lines, and what they lie in by their indentation."""
    for number in changed:
        yield from definitions(lines[number])
        yield from _enclosing(lines, number)


def _enclosing(lines: Sequence[str], number: int) -> Iterator[str]:
    depth, left = _indentation(lines[number]), MAX_ENCLOSING
    if lines[number].lstrip().startswith((")", "]", "}")):
        # The end of a signature of several lines: it belongs to the line that begins it, which is as deep.
        depth += 1
    for line in reversed(lines[max(0, number - 2_000) : number]):
        if not left or not depth:
            return
        indentation = _indentation(line)
        if not line.strip() or indentation >= depth:
            continue
        depth = indentation
        names = tuple(definitions(line))
        left -= bool(names)
        yield from names


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def definitions(line: str) -> Iterator[str]:
    """What a line seems to define."""
    yield from (found[1] for found in _DEFINED.finditer(line))
    if leading := _LEADING.match(line):
        yield leading[1]


def _names(text: str) -> frozenset[str]:
    return frozenset(found[0] for found in WORD.finditer(text)) - KEYWORDS
