"""JSON as people write it: with `//` and `/* */` comments and trailing commas. No I/O.

Comments and trailing commas are overwritten with spaces, so every offset stays what it was, and the standard decoder
reads the rest: there is no second JSON grammar here. Refused besides bad syntax, always with line and column:
a key that appears twice (two readers of one file would disagree), `NaN` and infinities, numbers of more than
`MAX_DIGITS` digits, lone surrogates (they cannot be written back), nesting deeper than `MAX_DEPTH` (everything above
may recurse).
"""

import json
import math
import re
from collections.abc import Iterator
from typing import NoReturn

from msgspec import Struct

from pilotfish.protocol.wire import Json

JsonPath = tuple[str | int, ...]  # Where a value is in a JSON document: keys and 0-based indices from the top
MAX_DEPTH = 64  # No settings tree of a language server comes near this; the interpreter's own recursion limit is 1000
MAX_DIGITS = 18  # A 64-bit integer holds any number of 18 digits; `int` itself turns quadratic on long ones

TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<open>[\[{])|(?P<close>[\]}])
    |(?P<comma>,)|(?P<colon>:)|(?P<scalar>[^\s"/,:\[\]{}]+)|(?P<stray>"(?:[^"\\\n]|\\.)*+|/\*.*|/)""",
    re.DOTALL | re.VERBOSE,
)
"""What is not closed is one stray token: to look for its end again from every quote in it would take the square."""


class LineColumn(Struct, frozen=True, order=True):
    """1-based line and column, as editors count them."""

    line: int
    column: int


class BadJson(ValueError):
    """The text is not JSON; `place` says where the first error is."""

    def __init__(self, message: str, place: LineColumn) -> None:
        super().__init__(f"{message} (line {place.line}, column {place.column})")
        self.message = message
        self.place = place


class Node(Struct):
    start: int  # Of its key, if it has one
    value: int
    end: int = 0
    comma: int | None = None  # The one that follows it
    is_object: bool = False
    is_array: bool = False
    children: "dict[str | int, Node]" = {}


class Document(Struct, frozen=True):
    value: Json
    text: str
    top: Node

    def place(self, path: JsonPath) -> LineColumn:
        """The place of `path`, or of the nearest value around it that has one."""
        node = self.top
        for step in path:
            if step not in node.children:
                break
            node = node.children[step]
        return _place(self.text, node.start)


def parse(content: bytes) -> Document:
    """Read one document; raises `BadJson`."""
    text = _decoded(content)
    value = _loaded(_blanked(text))
    return Document(value, text, tree(text))


def without_comments(text: str) -> Json:
    """The value alone, in half of the time; raises `BadJson`."""
    return _loaded(_blanked(text.removeprefix("\ufeff")))


def tree(text: str) -> Node:
    """The nodes of a text that is known to be JSON with comments; raises `BadJson` for a key that appears twice."""
    tokens = (token for token in TOKEN.finditer(text) if token.lastgroup != "comment")
    return _node(text, tokens, next(tokens))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        raise BadJson("the text is not UTF-8", _place(before, len(before))) from None


def _blanked(text: str) -> str:
    """The same text with comments and trailing commas as spaces; line ends stay."""
    blanks: list[tuple[int, int]] = []
    before, comma, depth = "", -1, 0
    for token in TOKEN.finditer(text):
        kind = token.lastgroup or ""
        if kind == "comment":
            blanks.append(token.span())
            continue
        if kind == "close" and before == "comma":
            blanks.append((comma, comma + 1))
        if kind == "open":
            depth += 1
            if depth > MAX_DEPTH:
                raise BadJson(f"nested deeper than {MAX_DEPTH} levels", _place(text, token.start()))
        depth -= kind == "close"
        # A comma that follows nothing (`[,]`) is not a trailing comma: the decoder must see it.
        before = "stray" if kind == "comma" and before not in {"string", "scalar", "close"} else kind
        comma = token.start()
    pieces: list[str] = []
    end = 0
    for start, stop in sorted(blanks):
        pieces += text[end:start], re.sub(r"[^\r\n]", " ", text[start:stop])
        end = stop
    return "".join([*pieces, text[end:]])


def _loaded(plain: str) -> Json:
    def refuse(message: str, literal: str) -> NoReturn:
        raise BadJson(message, _place(plain, max(plain.find(literal), 0)))

    def whole(literal: str) -> int:
        return int(literal) if len(literal) <= MAX_DIGITS else refuse("the number is too long", literal)

    def real(literal: str) -> float:
        number = float(literal)
        return number if math.isfinite(number) else refuse("the number is too large", literal)

    def constant(literal: str) -> float:
        return refuse(f"{literal} is not JSON", literal)

    try:
        value: Json = json.loads(plain, parse_int=whole, parse_float=real, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise BadJson(error.msg, _place(plain, error.pos)) from None
    except UnicodeEncodeError:
        lone = re.search(r"\\u[dD][89a-fA-F]", plain)
        raise BadJson("a lone surrogate is not text", _place(plain, lone.start() if lone else 0)) from None
    return value


def _node(text: str, tokens: Iterator[re.Match[str]], first: re.Match[str], start: int | None = None) -> Node:
    opening = first.group()
    node = Node(first.start() if start is None else start, first.start(), first.end())
    node.is_object, node.is_array = opening == "{", opening == "["
    if not node.is_object and not node.is_array:
        return node
    last: Node | None = None
    for token in tokens:
        if token.lastgroup == "close":
            node.end = token.end()
            break
        if token.lastgroup == "comma":
            if last is not None:
                last.comma = token.start()
            continue
        key: str | int = len(node.children)
        begin = token
        if node.is_object:
            key = json.loads(token.group())
            if key in node.children:
                raise BadJson(f"the key {token.group()} appears twice in one object", _place(text, token.start()))
            next(tokens)
            begin = next(tokens)
        last = node.children[key] = _node(text, tokens, begin, token.start())
    return node


def _place(text: str, offset: int) -> LineColumn:
    return LineColumn(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
