"""From a name to a place.

A name is what people write: `method`, `Class.method`, `package.Class.method`, and `Class.method[1]` for the second of
several that are called the same, counted from 0 in the order of the source. It fits a symbol when its parts are the
last parts of the symbol's own path: file, containers, name, each without the decoration of its server (`names`).

A name that fits several things is never guessed: the candidates are returned, each with its place and a name that means
it alone. Before that, three rules, without which many plain names could not be said at all: a symbol whose containers
and name are all of what was said wins over one deeper down; a declaration wins over a block that only adds to it
(`impl Point`, an extension); what is local to a function yields to everything else.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from pilotfish.api.answers import Location, Symbol, counted_from_one
from pilotfish.errors import Code, Refused
from pilotfish.model import Position, Range
from pilotfish.operations.names import main_name, names_of, occurrences
from pilotfish.operations.symbols import is_within_function, with_containers
from pilotfish.protocol.positions import Text

MAX_CANDIDATES = 10
"""As many as fit into one message; how many there are is said."""

MAX_NEAREST = 5

MAX_CHAIN_LINES = 3
"""Lines before a function in which it may be assigned to further members."""

MAX_COMPARED = 5000
"""Names that are looked at for one near a misspelt one: comparing is slow, and more would be noise."""


class Name(Struct, frozen=True):
    """A symbol as the caller named it."""

    parts: tuple[str, ...]
    index: int | None = None

    def __str__(self) -> str:
        return ".".join(self.parts) + ("" if self.index is None else f"[{self.index}]")


class SymbolMatch(Struct, frozen=True):
    """Something that a name fits, and a name by which it alone is meant."""

    name: str
    location: Location


class LocatedSymbol(Struct, frozen=True):
    location: Location

    @property
    def position(self) -> Position:
        return Position(self.location.line - 1, self.location.character - 1)


class Ambiguous(Struct, frozen=True):
    name: str
    candidates: tuple[SymbolMatch, ...]


class UnknownSymbol(Struct, frozen=True):
    name: str
    nearest: tuple[str, ...]


SymbolLookup = LocatedSymbol | Ambiguous | UnknownSymbol


def name_of(symbol: str) -> Name:
    """Read what a caller wrote."""
    indexed = _INDEXED.fullmatch(symbol.strip())
    return Name(names_of(indexed[1]), int(indexed[2])) if indexed else Name(names_of(symbol))


def located(name: Name, symbols: Sequence[Symbol]) -> SymbolLookup:
    """Find a name among the symbols of a file, in the order of its outline, or among those of the workspace."""
    entries = _entries(symbols)
    fitting = _preferred(name, [entry for entry in entries if entry.path[-len(name.parts) :] == name.parts])
    if not fitting:
        beside = [entry for entry in entries if entry.own[:-1][-len(name.parts) + 1 :] == name.parts[:-1]]
        names = [{entry.own[-1]: ".".join(entry.own) for entry in some} for some in (beside, entries)]
        near = [*_nearest(name.parts[-1], names[0]), *_nearest(name.parts[-1], names[1])]
        return UnknownSymbol(str(name), tuple(dict.fromkeys(near))[:MAX_NEAREST])
    return _chosen(str(name), name.index, [(".".join(entry.own), entry.symbol) for entry in fitting])


def located_on_line(name: Name, text: Text, path: str, line: int, symbols: Sequence[Symbol] = ()) -> SymbolLookup:
    """Find a name on a line (from 1) of a text, declared or used; of several, `symbols` tell which is declared."""
    word, said = name.parts[-1], f"{name} on line {line}"
    ranges = occurrences(text, line - 1, word)
    if not ranges:
        words = _WORD.findall(text.line(line - 1)) if 0 < line <= text.line_count else []
        return UnknownSymbol(said, _nearest(word, {other: other for other in words}))
    if name.index is None:
        declared = {(symbol.line, symbol.character) for symbol in symbols if names_of(symbol.name)[-1] == word}
        ranges = _only(ranges, lambda range_: _is_qualified(range_, text, name.parts[:-1]))
        ranges = _only(ranges, lambda range_: (line, range_.start.character + 1) in declared)
    return _chosen(
        said, name.index, [(str(Name(name.parts)), Location(*counted_from_one(one), path=path)) for one in ranges]
    )


def mentions(text: Text, name: Name) -> list[Position]:
    """Every place of a text where the last part of a name stands as a whole word, the qualified ones first."""
    places = [range_ for line in range(text.line_count) for range_ in occurrences(text, line, name.parts[-1])]
    ordered = sorted(places, key=lambda range_: not _is_qualified(range_, text, name.parts[:-1]))
    return [range_.start for range_ in ordered]


def member_at(text: Text, position: Position, name: Name) -> Position:
    """Of `app.get = function get`, the member, which others use; of anything else, the place itself."""
    first = max(0, position.line - MAX_CHAIN_LINES)
    before = [text.line(line) for line in range(first, position.line)]
    joined = "\n".join([*before, text.line(position.line)[: position.character]])
    found = re.search(_ASSIGNED_FUNCTION.replace("NAME", re.escape(name.parts[-1])), joined)
    if found is None:
        return position
    above = joined[: found.start(1)]
    return Position(first + above.count("\n"), len(above) - (above.rfind("\n") + 1))


def assigned_members(text: Text, path: str, name: Name, symbols: Sequence[Symbol]) -> list[Symbol]:
    """Members that a file adds to an object at its outermost level (`exports.get = ...`), and its outline lacks."""
    known = [Position(one.line - 1, one.character - 1) for one in symbols if names_of(one.name)[-1] == name.parts[-1]]
    listed = {place.line + 1 for at in known for place in (at, member_at(text, at, name))}
    pattern, found = re.compile(_ASSIGNED_MEMBER.replace("NAME", re.escape(name.parts[-1]))), list[Symbol]()
    for line in range(text.line_count):
        match = pattern.match(text.line(line))
        if match is not None and line + 1 not in listed:
            place = Range(Position(line, match.start(1)), Position(line, match.end(1)))
            found.append(Symbol(*counted_from_one(place), path=path, name=name.parts[-1], kind="property"))
    return found


def at_character(finding: Ambiguous, character: int) -> SymbolLookup:
    """Of several places on a line, the one that a character (from 1) is in."""
    for one in finding.candidates:
        if one.location.character <= character <= one.location.end_character:
            return LocatedSymbol(one.location)
    return finding


def line_in(text: Text, path: str, line: int) -> Range:
    """All of a line (from 1) of a text; raises `Refused` when there is no such line."""
    return Range(Position(line - 1, 0), Position(line - 1, _length(text, path, line)))


def main_name_in(text: Text, path: str, line: int, *, called: bool = False) -> Position:
    """The name that a line (from 1) is about; raises `Refused` when there is none, or no such line."""
    if _length(text, path, line) == 0 or (found := main_name(text, line - 1, called=called)) is None:
        raise Refused(Code.NOT_FOUND, f"Line {line} of {path} has no name in it.", hint="Give character, or symbol.")
    return found


def place_in(text: Text, path: str, line: int, character: int) -> Position:
    """The position of a line and character (from 1) of a text; raises `Refused` when there is no such place.

    A server would take the nearest place instead, and answer about something else.
    """
    length = _length(text, path, line)
    if character > length + 1:
        message = f"Line {line} of {path} has {length} characters, so there is no character {character}."
        raise Refused(Code.INVALID_INPUT, message, hint="Tabs count as one character, and so does an emoji.")
    return Position(line - 1, character - 1)


def _length(text: Text, path: str, line: int) -> int:
    """How many characters an existing line (from 1) has; raises `Refused` when there is no such line."""
    if line > text.line_count:
        raise Refused(Code.INVALID_INPUT, f"{path} has {text.line_count} lines, so there is no line {line}.")
    start, end = text.bounds(line - 1)
    return end - start


def refusal(finding: Ambiguous | UnknownSymbol) -> Refused:
    """How to tell the caller."""
    match finding:
        case Ambiguous(name, candidates):
            shown = [f"{one.name} {_shown(one.location)}" for one in candidates[:MAX_CANDIDATES]]
            more = f", and {len(candidates) - MAX_CANDIDATES} more" if len(candidates) > MAX_CANDIDATES else ""
            message = f"{name} could be any of {len(candidates)}: {', '.join(shown)}{more}."
            return Refused(Code.AMBIGUOUS, message, hint="Ask again with one of these names or positions.")
        case UnknownSymbol(name, nearest):
            message = f"There is no symbol {name}."
            return Refused(Code.NOT_FOUND, message, hint=f"Nearest: {', '.join(nearest)}." if nearest else None)


_INDEXED = re.compile(r"(.+)\[(\d+)\]", re.DOTALL)
_WORD = re.compile(r"[\w$]+")
_IMPLEMENTATION = re.compile(r"impl\b")
_SEPARATORS = (".", "::", "->", "?.", "#")

_ASSIGNED_MEMBER = r"[\w$]+(?:\.[\w$]+)*\.(NAME)\s*=(?![=>])"
_ASSIGNED_FUNCTION = r"\.(NAME)\s*=\s*(?:[\w$.]+\s*=\s*)*(?:async\s+)?(?:function\s*\*?|class)\s*$"
"""With the name in the place of `NAME`. Others cannot see the name of such a function."""

_STAND_FOR_FOLDER = frozenset({"__init__", "index", "mod"})
"""Files whose own name is not part of the path of what is in them."""

_ADDITIONS = frozenset({"namespace", "object"})
"""Kinds by which servers show a block that adds to a type."""


class _Entry(Struct, frozen=True):
    symbol: Symbol
    own: tuple[str, ...]
    """Containers and name."""
    path: tuple[str, ...]
    """The same with the file before it."""
    local: bool


def _entries(symbols: Sequence[Symbol]) -> list[_Entry]:
    """Every symbol once, with its path, in the order of the source."""
    entries: dict[tuple[str, int, int, str], _Entry] = {}
    for symbol, around in with_containers(symbols):
        labels = [outer.name for outer in around] or ([symbol.container] if symbol.container else [])
        own = tuple(part for label in (*labels, symbol.name) for part in names_of(label))
        entry = _Entry(symbol, own, (*_file_parts(symbol.path), *own), is_within_function(around))
        entries.setdefault((symbol.path, symbol.line, symbol.character, own[-1]), entry)
    return [entries[key] for key in sorted(entries)]


def _file_parts(path: str) -> tuple[str, ...]:
    *folders, file = path.split("/")
    stem = file.split(".")[0]
    return tuple(folders) if stem in _STAND_FOR_FOLDER else (*folders, stem)


def _preferred(name: Name, fitting: list[_Entry]) -> list[_Entry]:
    fitting = [entry for entry in fitting if entry.own == name.parts] or fitting
    declared = (one for one in fitting if one.symbol.kind not in _ADDITIONS)
    fitting = [one for one in declared if not _IMPLEMENTATION.match(one.symbol.name)] or fitting
    fitting = [entry for entry in fitting if not entry.local] or fitting
    # `app.get = function get` is two symbols to some servers: the member is the one that others use.
    return list({(entry.symbol.path, entry.symbol.line, entry.own): entry for entry in reversed(fitting)}.values())[
        ::-1
    ]


def _chosen(said: str, index: int | None, named: Sequence[tuple[str, Location]]) -> SymbolLookup:
    """The one thing that is meant; else all of them, those with the same name told apart by their index."""
    if index is None and len(named) == 1:
        return LocatedSymbol(named[0][1])
    if index is not None and index < len(named):
        return LocatedSymbol(named[index][1])
    total, before = Counter(name for name, _ in named), Counter[str]()
    candidates: list[SymbolMatch] = []
    for name, location in named:
        candidates.append(SymbolMatch(f"{name}[{before[name]}]" if total[name] > 1 else name, location))
        before[name] += 1
    return Ambiguous(said, tuple(candidates))


def _only(ranges: tuple[Range, ...], rule: Callable[[Range], bool]) -> tuple[Range, ...]:
    return tuple(range_ for range_ in ranges if rule(range_)) or ranges


def _is_qualified(range_: Range, text: Text, outer: tuple[str, ...]) -> bool:
    """Whether the rest of the name stands before it: `Class.` of `Class.method`."""
    before = text.line(range_.start.line)[: range_.start.character]
    return bool(outer) and before.endswith(tuple(outer[-1] + separator for separator in _SEPARATORS))


def _nearest(word: str, names: dict[str, str]) -> tuple[str, ...]:
    """Of bare names and how to say each, those near `word`; such as differ in case alone come first."""
    known = list(names)[:MAX_COMPARED]
    same = [other for other in known if other.lower() == word.lower()]
    near = get_close_matches(word, known, MAX_NEAREST, 0.6)
    return tuple(names[other] for other in list(dict.fromkeys([*same, *near]))[:MAX_NEAREST])


def _shown(location: Location) -> str:
    return f"{location.path}:{location.line}:{location.character}"
