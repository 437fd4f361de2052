"""Parses texts of Python, however they were written, while others have their turns. Pure."""

import ast
import gc
import io
import re
import threading
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import ContextDecorator, suppress
from itertools import islice

_NAME = "<a text that pilotfish reads>"

# Of a string with `\d` in it the parser complains on standard error; it is the project's, and nobody asked us.
warnings.filterwarnings("ignore", module=re.escape(_NAME))

_TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore)")

MAX_CHARACTERS = 256 * 1024
"""Of a text that is parsed."""

MAX_TOKENS = 100_000
"""Of such a text: a tree takes 1 KB for each. Of 614 long files of packages, the longest by hand has 94,000."""

MAX_PIECE_TOKENS = 12_000
"""Of what is parsed at once: the parser of Python lets nothing else run meanwhile, for 4 µs a token at worst."""

MAX_LINE = 4_000
"""Characters of a line whose tokens are counted: for each, some tokenizers begin at the start of the line."""

MAX_BRACED = 50_000_000
"""Before Python 3.12, a string with expressions takes as many nanoseconds as their number times its length."""

MAX_MARKS = 1_000
"""In a row. The parser takes the square of their number to bring those of an identifier into order."""

_MARKS = re.compile(r"[^\x00-\x7f\w]+")

_TOKEN = re.compile(r"\w+|[^\w \t]")

_EXPRESSIONS = re.compile(r"[fF][rR]?['\"]")

STATEMENT = re.compile(r"(?!(?:elif|else|except|finally)\b)(?:[^\W\d]|@)")
"""How one begins at the start of a line. If that is inside of a string or of brackets, what is before cannot be
parsed."""


class _WithoutCollections(ContextDecorator):
    """While a tree lives, no garbage is looked for: it has none, and everybody waits while a large one is searched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trees = 0
        self._collects = True

    def __enter__(self) -> None:
        with self._lock:
            self._collects = self._collects if self._trees else gc.isenabled()
            self._trees += 1
            gc.disable()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._trees -= 1
            if self._collects and not self._trees:
                gc.enable()


without_collections = _WithoutCollections()


def is_short(text: str) -> bool:
    """Whether it can be parsed while everybody waits."""
    return not _has_more_tokens(text, MAX_PIECE_TOKENS // 2)


def _has_more_tokens(text: str, number: int) -> bool:
    return next(islice(_TOKEN.finditer(text), number, None), None) is not None


def parsed(text: str) -> ast.Module | None:
    """None where it cannot be read, or would take too long. Statement by statement: others have their turns between."""
    if len(text) > MAX_CHARACTERS or _has_more_tokens(text, MAX_TOKENS):
        return None
    if max((len(run) for run in _MARKS.findall(text)), default=0) > MAX_MARKS:
        return None
    is_typed, body, start = _TYPE_COMMENT.search(text) is not None, list[ast.stmt](), 0
    while start < len(text):
        for end in _ends_of_piece(text, start):
            piece = _parsed_at_once(text[start:end], is_typed=is_typed)
            if piece is not None:
                break
        else:
            return None
        body += piece.body
        start = end
    return ast.Module(body, [])


def _parsed_at_once(text: str, *, is_typed: bool) -> ast.Module | None:
    try:
        return ast.parse(text, _NAME, type_comments=is_typed)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):  # the last: two threads parse at once
        return None


def _ends_of_piece(text: str, start: int) -> Iterator[int]:
    """Where what is parsed at once may end, best first."""
    for end in _ends_by_words(text, start):
        is_slow = text.count("{", start, end) * (end - start) > MAX_BRACED
        if end > start and not (is_slow and _EXPRESSIONS.search(text, start, end)):
            yield end


def _ends_by_words(text: str, start: int) -> Iterator[int]:
    """The last two lines within the bounds that may begin a statement, of which one may follow a decorator, and those
    within a half and a quarter of the bounds; at last by what the parser takes for a token."""
    for share in (1, 2, 4):
        beyond = next(islice(_TOKEN.finditer(text, start), MAX_PIECE_TOKENS // share, None), None)
        end = len(text) if beyond is None else _statement_before(text, start, beyond.start())
        yield from (end, _statement_before(text, start, end))
    yield start + _end_by_tokens(text[start:])


def _end_by_tokens(text: str) -> int:
    """Documentation is one token, and most of a large class is that; the tokenizer lets others run meanwhile."""
    lines, line, follows_decorator = text.split("\n"), 0, False
    if max(map(len, lines)) > MAX_LINE:
        return 0
    with suppress(tokenize.TokenError, SyntaxError):
        for token in islice(tokenize.generate_tokens(io.StringIO(text).readline), MAX_PIECE_TOKENS):
            if token.type == tokenize.ENDMARKER:
                return len(text)
            if token.start[1] == 0 and STATEMENT.match(token.string):
                line = line if follows_decorator else token.start[0] - 1
                follows_decorator = token.string == "@"
    return sum(len(one) + 1 for one in lines[:line])


def _statement_before(text: str, start: int, end: int) -> int:
    while (line := text.rfind("\n", start, end - 1) + 1) > start and not STATEMENT.match(text, line):
        end = line
    return line
