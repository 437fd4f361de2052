"""The symbol around a place, by the outline of its file, and the text of a symbol."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import asdict, replace

from pilotfish.api.answers import Location, Symbol, SymbolText, Use
from pilotfish.operations.symbol_names import names_of
from pilotfish.protocol.positions import Text

FUNCTIONS = frozenset({"function", "method", "constructor"})
_BODIES = FUNCTIONS | {"class", "interface", "struct", "enum", "namespace", "module"}
"""What something can be within. A variable that holds a function counts by its own lines."""


class Around(Struct, frozen=True):
    """A symbol with a body."""

    name: str
    """With its containers: `Class.method`."""
    symbol: Symbol
    is_local: bool
    """It stands inside a function."""

    def holds(self, line: int) -> bool:
        """Whether a line (from 1) is one of its own."""
        return (self.symbol.first_line or self.symbol.line) <= line <= (self.symbol.last_line or self.symbol.line)


def with_containers(outline: Iterable[Symbol]) -> Iterator[tuple[Symbol, tuple[Symbol, ...]]]:
    """Each symbol of an outline (parents first), and those that it stands in, the outermost first."""
    around: list[Symbol] = []
    for symbol in outline:
        del around[symbol.depth :]
        yield symbol, tuple(around)
        around.append(symbol)


def is_within_function(around: Iterable[Symbol]) -> bool:
    return any(outer.kind in FUNCTIONS for outer in around)


def bodies(outline: Sequence[Symbol]) -> list[Around]:
    """The symbols of an outline (parents first) that something can be within, each before what is inside it."""
    found: list[Around] = []
    for symbol, around in with_containers(outline):
        first, last = symbol.first_line or symbol.line, symbol.last_line or symbol.line
        if symbol.kind in _BODIES or last > first:
            labels = [*(outer.name for outer in around), symbol.name]
            parts = [part for label in labels for part in names_of(label)]
            found.append(Around(".".join(parts), symbol, is_within_function(around)))
    return found


class Body(Struct, frozen=True):
    """Where a symbol that is not local to a function stands, by lines from 1, and where its name does."""

    first_line: int
    last_line: int
    line: int
    character: int
    name: str


def bodies_by_line(outline: Sequence[Symbol]) -> tuple[Body, ...]:
    """The symbols of an outline that a place can be shown within, by their first lines."""
    found = [
        Body(
            one.symbol.first_line or one.symbol.line,
            one.symbol.last_line or one.symbol.line,
            one.symbol.line,
            one.symbol.character,
            one.name,
        )
        for one in bodies(outline)
        if not one.is_local
    ]
    return tuple(sorted(found, key=_first_line))


def around(place: Location, known: Sequence[Body]) -> Body | None:
    """The innermost symbol around a place; none for its own name."""
    line = place.line
    for index in range(bisect_right(known, line, key=_first_line) - 1, -1, -1):
        one = known[index]
        if one.last_line >= line and (one.line, one.character) != (line, place.character):
            return one
    return None


_first_line = attrgetter("first_line")


def is_local(name: str, line: int, outline: Sequence[Symbol]) -> bool:
    """Whether a name on a line (from 1) is a variable or a parameter of a function, by the outline of its file."""
    for symbol, outer in with_containers(outline):
        if (symbol.name, symbol.line) == (name, line):
            return symbol.kind not in _BODIES and is_within_function(outer)
    return False


# --- The text of a symbol: which lines are its own --------------------------------------------------------------------

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
