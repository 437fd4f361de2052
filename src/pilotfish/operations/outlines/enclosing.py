"""The symbol around a place, by the outline of its file."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct

from pilotfish.api.answers import Location, Symbol
from pilotfish.operations.symbol_names import names_of

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
