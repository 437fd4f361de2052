"""The symbol around a place, by the outline of its file."""

from collections.abc import Sequence

from msgspec import Struct

from pilotfish.api.answers import Location, Symbol
from pilotfish.operations.symbol_names import names_of

_FUNCTIONS = frozenset({"function", "method", "constructor"})
_BODIES = _FUNCTIONS | {"class", "interface", "struct", "enum", "namespace", "module"}
"""What something can be within. A variable that holds a function counts by its own lines."""


class Around(Struct, frozen=True):
    """A symbol with a body."""

    name: str
    """With its containers: `Class.method`."""
    symbol: Symbol
    is_local: bool
    """It stands inside a function."""


def bodies(outline: Sequence[Symbol]) -> list[Around]:
    """The symbols of an outline (parents first) that something can be within, each before what is inside it."""
    around: list[Symbol] = []
    found: list[Around] = []
    for symbol in outline:
        del around[symbol.depth :]
        first, last = symbol.first_line or symbol.line, symbol.last_line or symbol.line
        if symbol.kind in _BODIES or last > first:
            labels = [*(outer.name for outer in around), symbol.name]
            parts = [part for label in labels for part in names_of(label)]
            found.append(Around(".".join(parts), symbol, any(outer.kind in _FUNCTIONS for outer in around)))
        around.append(symbol)
    return found


def around(place: Location, known: Sequence[Around]) -> Around | None:
    """The innermost symbol around a place that is not itself local to a function; none for its own name."""
    fitting = [one for one in known if not one.is_local and _holds(one.symbol, place)]
    return fitting[-1] if fitting else None


def _holds(symbol: Symbol, place: Location) -> bool:
    if (symbol.line, symbol.character) == (place.line, place.character):
        return False
    return (symbol.first_line or symbol.line) <= place.line <= (symbol.last_line or symbol.line)


def is_local(name: str, line: int, outline: Sequence[Symbol]) -> bool:
    """Whether a name on a line (from 1) is a variable or a parameter of a function, by the outline of its file."""
    around_it: list[Symbol] = []
    for symbol in outline:
        del around_it[symbol.depth :]
        if (symbol.name, symbol.line) == (name, line):
            return symbol.kind not in _BODIES and any(outer.kind in _FUNCTIONS for outer in around_it)
        around_it.append(symbol)
    return False
