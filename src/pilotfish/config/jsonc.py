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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from msgspec import Struct

from pilotfish.protocol.wire import Json

JsonPath = tuple[str | int, ...]
"""Where a value is in a JSON document: keys and 0-based indices from the top."""

MAX_DEPTH = 64
"""No settings tree of a language server comes near this; the interpreter's own recursion limit is 1000."""

MAX_DIGITS = 18
"""A 64-bit integer holds any number of 18 digits; `int` itself turns quadratic on long ones."""

TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<open>[\[{])|(?P<close>[\]}])
    |(?P<comma>,)|(?P<colon>:)|(?P<scalar>[^\s"/,:\[\]{}]+)|(?P<stray>["/])""",
    re.DOTALL | re.VERBOSE,
)


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


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text, with the place of each value."""

    value: Json
    text: str = field(repr=False)
    offsets: Mapping[JsonPath, int] = field(repr=False)

    def place(self, path: JsonPath) -> LineColumn:
        """The place of `path`, or of the nearest value around it that has one."""
        while path and path not in self.offsets:
            path = path[:-1]
        return _place(self.text, self.offsets.get(path, 0))


def parse(content: bytes) -> Document:
    """Read one document; raises `BadJson`."""
    text = _decoded(content)
    plain = _blanked(text)
    value = _loaded(plain)
    return Document(value, text, _offsets(plain))


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
    return _overwritten(text, blanks)


def _overwritten(text: str, blanks: list[tuple[int, int]]) -> str:
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


def _offsets(plain: str) -> dict[JsonPath, int]:
    """The offset of each member (its key) and each item of a text that is known to be JSON."""
    found: dict[JsonPath, int] = {(): len(plain) - len(plain.lstrip())}
    path: list[str | int | None] = []  # None: an object whose next string is a key
    for token in TOKEN.finditer(plain):
        text, start = token.group(), token.start()
        if path and path[-1] is None and token.lastgroup == "string":
            path[-1] = json.loads(text)
            if _frozen(path) in found:
                raise BadJson(f"the key {text} appears twice in one object", _place(plain, start))
            found[_frozen(path)] = start
            continue
        if token.lastgroup in {"string", "scalar", "open"}:
            found.setdefault(_frozen(path), start)
        match text:
            case "{":
                path.append(None)
            case "[":
                path.append(0)
            case "}" | "]":
                path.pop()
            case ",":
                path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
            case _:
                pass
    return found


def _frozen(path: list[str | int | None]) -> JsonPath:
    return tuple(step for step in path if step is not None)


def _place(text: str, offset: int) -> LineColumn:
    return LineColumn(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
