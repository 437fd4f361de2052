"""Symbols: the outline of a file, and names across the workspace.

Three shapes are read: a tree of `DocumentSymbol`, a flat list of `SymbolInformation`, and `WorkspaceSymbol`, whose
location may lack its range. Out comes one flat list, parents before children, with depth and container.

The place of a symbol is that of its name, because that is where a further question can be asked. The older shapes say
only where all of the declaration is, so the name is looked for in there, as a whole word; where it is not found, or the
text is not at hand, the place is where the declaration starts.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import asdict, replace

from pilotfish.api.answers import Location, Symbol, SymbolText, Use
from pilotfish.api.questions import Question
from pilotfish.errors import Code, Refused
from pilotfish.model import Position, Range
from pilotfish.operations.names import bare_name, first_occurrence, names_of
from pilotfish.operations.results import NOWHERE, Reading, RequestContext, ServerResult, Spot, View
from pilotfish.protocol.codec import Malformed, decode_items
from pilotfish.protocol.positions import Text
from pilotfish.protocol.wire import Raw, UnsetType, WireRange, WireSymbol

ANONYMOUS = "(anonymous)"

MAX_DEPTH = 64
"""No program nests deeper; an answer that does is not believed below this."""

EMPTY = b"[]"
"""Most symbols have no others in them: that needs no decoder."""

_DEPRECATED = 1
"""The one tag that symbols have."""

KINDS = (
    "symbol", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor",
    "enum", "interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key",
    "null", "enum-member", "struct", "event", "operator", "type-parameter",
)  # fmt: skip
"""The words for the numbers of the protocol; 0 is not one of them."""


def kind_word(kind: int) -> str:
    return KINDS[kind] if 0 <= kind < len(KINDS) else KINDS[0]


class FoundSymbol(ServerResult, frozen=True):
    """A symbol; its spot is its name if `named`, else its whole declaration, or else its file."""

    kind: int
    named: bool
    body: WireRange | None
    detail: str | None = None
    container: str | None = None
    depth: int = 0
    deprecated: bool = False

    def resolved(self, view: View) -> Symbol:
        spot = self.spots[0]
        at = view.location(spot, self._name_in(view, spot))
        first, last = (None, None) if self.body is None else view.lines(spot, self.body)
        return Symbol(
            **asdict(at),
            name=self.name,
            kind=kind_word(self.kind),
            detail=self.detail,
            container=self.container,
            depth=self.depth,
            first_line=None if first is None else first + 1,
            last_line=None if last is None else last + 1,
            deprecated=self.deprecated,
        )

    def _name_in(self, view: View, spot: Spot) -> Range | None:
        text = view.text(spot)
        if self.named or text is None:
            return None
        body = Range(Position(0, 0), text.end) if self.body is None else view.place(spot)
        return first_occurrence(text, bare_name(self.name), body)


def read_document_symbols(raw: Raw, asked: RequestContext) -> Reading[FoundSymbol]:
    """Read `DocumentSymbol[] | SymbolInformation[] | null`, also when a list mixes the two."""
    return _level(raw, asked.document, parent=None, depth=0)


def read_workspace_symbols(raw: Raw, _asked: RequestContext) -> Reading[FoundSymbol]:
    """Read `SymbolInformation[] | WorkspaceSymbol[] | null`."""
    items = decode_items(raw, WireSymbol)
    found = [symbol for symbol in map(_located, items.items) if symbol is not None]
    return Reading(tuple(found), items.skipped + len(items.items) - len(found))


def _level(raw: Raw, uri: str, *, parent: str | None, depth: int) -> Reading[FoundSymbol]:
    items = decode_items(raw, WireSymbol)
    skipped = items.skipped
    found: list[FoundSymbol] = []
    for item in sorted(items.items, key=_start):
        symbol = _located(item) or _nested(item, uri, parent, depth)
        if symbol is None:
            skipped += 1
            continue
        found.append(symbol)
        below = _children(item, uri, symbol, depth)
        found += below.found
        skipped += below.skipped
    return Reading(tuple(found), skipped)


def _children(item: WireSymbol, uri: str, parent: FoundSymbol, depth: int) -> Reading[FoundSymbol]:
    if isinstance(item.children, UnsetType) or bytes(item.children) == EMPTY:
        return Reading()
    try:
        if depth < MAX_DEPTH:
            return _level(item.children, uri, parent=parent.name, depth=depth + 1)
    except Malformed:
        pass
    return Reading(skipped=1)


def _nested(item: WireSymbol, uri: str, parent: str | None, depth: int) -> FoundSymbol | None:
    """A `DocumentSymbol`."""
    name = item.selection_range or item.range
    if name is None:
        return None
    named = item.selection_range is not None
    return _symbol(item, Spot(uri, name), named=named, body=item.range, container=parent, depth=depth)


def _located(item: WireSymbol) -> FoundSymbol | None:
    """A `SymbolInformation` or a `WorkspaceSymbol`."""
    place = item.location
    if place is None or place.uri is None:
        return None
    spot = Spot(place.uri, place.range or NOWHERE)
    return _symbol(item, spot, named=False, body=place.range, container=item.container_name or None, depth=0)


def _symbol(
    item: WireSymbol, spot: Spot, *, named: bool, body: WireRange | None, container: str | None, depth: int
) -> FoundSymbol:
    return FoundSymbol(
        name=item.name or ANONYMOUS,
        kind=item.kind,
        spots=(spot,),
        named=named,
        body=body,
        detail=item.detail or None,
        container=container,
        depth=depth,
        deprecated=bool(item.deprecated) or _DEPRECATED in (item.tags or ()),
    )


def _start(item: WireSymbol) -> tuple[int, int]:
    """Servers give siblings in any order; a reader wants the file's."""
    place = item.range or (item.location.range if item.location else None) or NOWHERE
    return place.start.line, place.start.character


# --- Which symbols are worth reading ----------------------------------------------------------------------------------

# By default everything but what is local to a function: parameters and variables are most of what some servers list.
# `depth` keeps that many levels, `kinds` only these kinds, and `all` among them keeps locals too.

ALL = "all"

_LOCAL = frozenset({"variable", "constant", "property", "field", "type-parameter", "symbol"})
"""Kinds that mean nothing outside the function in which they stand."""

_SEPARATOR = re.compile(r"[,\s]+")


def kinds_of(question: Question) -> frozenset[str] | None:
    """The kinds that are asked for; None for all but locals. Raises `Refused` for one that does not exist."""
    words = frozenset(word.lower() for word in _SEPARATOR.split(question.kinds or "") if word)
    unknown = sorted(words - set(KINDS) - {ALL})
    if unknown:
        known = f"One of: {', '.join(KINDS[1:])}; or all."
        raise Refused(Code.INVALID_INPUT, f"There is no kind {unknown[0]}.", hint=known)
    return words or None


def outline(question: Question, found: Sequence[ServerResult]) -> Sequence[ServerResult]:
    """The symbols of a file that a question asks for; parents stand before their children."""
    kinds, around, kept = kinds_of(question), list[FoundSymbol](), list[ServerResult]()
    for symbol in found:
        if not isinstance(symbol, FoundSymbol):
            continue
        del around[symbol.depth :]
        kind = kind_word(symbol.kind)
        is_local = kind in _LOCAL and any(kind_word(outer.kind) in FUNCTIONS for outer in around)
        around.append(symbol)
        is_asked_for = not is_local if kinds is None else ALL in kinds or kind in kinds
        if is_asked_for and (question.depth is None or symbol.depth < question.depth):
            kept.append(symbol)
    return kept


def of_kinds(question: Question, found: Sequence[ServerResult]) -> Sequence[ServerResult]:
    """The symbols of the workspace that a question asks for."""
    kinds = kinds_of(question)
    if kinds is None or ALL in kinds:
        return found
    return [symbol for symbol in found if isinstance(symbol, FoundSymbol) and kind_word(symbol.kind) in kinds]


# --- The symbol around a place, by the outline of its file ----------------------------------------------------------

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
