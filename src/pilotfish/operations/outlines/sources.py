"""The text of a symbol: which lines are its own."""

import hashlib
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from pilotfish.api.answers import Location, Symbol, SymbolText, Use
from pilotfish.protocol.positions import Text

_DECORATOR = re.compile(r"\s*(?:@\w|#\[)")
"""What stands on a line of its own before a declaration and belongs to it."""

DIGEST_LENGTH = 8


class Lines(Struct, frozen=True):
    """From a line to another, both included, counted from 0."""

    first: int
    last: int


def lines_of(symbol: Symbol, text: Text) -> Lines:
    """The lines of a symbol, with the decorators above."""
    first = (symbol.first_line or symbol.line) - 1
    last = min((symbol.last_line or symbol.line) - 1, text.line_count - 1)
    while first > 0 and _DECORATOR.match(text.line(first - 1)):
        first -= 1
    return Lines(first, max(first, last))


def text_of_lines(lines: Lines, text: Text) -> str:
    """The text of these lines, without the last end of line."""
    return "\n".join(text.line(number) for number in range(lines.first, lines.last + 1))


def source_of(symbol: Symbol, text: Text) -> SymbolText:
    lines = lines_of(symbol, text)
    source = text_of_lines(lines, text)
    known = asdict(replace(symbol, first_line=lines.first + 1, last_line=lines.last + 1))
    return SymbolText(**known, source=source, digest=digest_of(source))


def digest_of(source: str) -> str:
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()[:DIGEST_LENGTH]


def grouped(places: Iterable[Location]) -> tuple[Use, ...]:
    """One row for each file and symbol, in the order of the places."""
    rows: dict[tuple[str, str | None], list[Location]] = {}
    for place in places:
        rows.setdefault((place.path, place.within), []).append(place)
    return tuple(_row(path, within, found) for (path, within), found in rows.items())


def _row(path: str, within: str | None, places: Sequence[Location]) -> Use:
    lines = tuple(dict.fromkeys(place.line for place in places))
    return Use(path=path, lines=lines, within=within, text=places[0].text)
