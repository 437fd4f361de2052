"""From several servers' readings to one answer, in two steps.

`selected` puts all that was found into one order, drops what two servers found alike, and cuts to the row's cap: only
then is it known which files are shown, and so which texts are needed (`ResultSelection.paths`).
`resolved` takes those texts and gives the data of the answer.

Order: what is in the workspace before what is not, then by file and place; symbols of the workspace by how well they
match; an outline and signatures as the server gave them; actions too, the preferred ones first.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Action, Data, HierarchyItem, Hover, Item, Location, Symbol
from pilotfish.api.questions import Question
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.actions import FoundAction
from pilotfish.operations.names import bare_name
from pilotfish.operations.results import Reading, ServerResult, View, joined
from pilotfish.operations.rows import OperationRow
from pilotfish.paths import is_inside
from pilotfish.protocol.positions import Text

MAX_LIMIT = 5_000
"""Results of one answer, whatever the caller says."""


class ResultSelection(Struct, frozen=True):
    """What will be shown, each with the server that found it."""

    chosen: tuple[tuple[str, ServerResult], ...]
    total: int
    """How much there was before the cut."""
    skipped: int
    """Items that could not be read: the answer is then partial."""
    paths: tuple[AbsPath, ...]
    """The files of the workspace that it speaks of: give `resolved` their texts."""
    offset: int = 0
    """How many were left out before the first."""

    @property
    def truncated(self) -> bool:
        return self.total > len(self.chosen)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why an answer with this in it is partial."""
        return (f"{self.skipped} items of the answer could not be read",) if self.skipped else ()


class Backdrop(Struct, frozen=True):
    """What all places are looked at with."""

    workspace: AbsPath
    texts: Mapping[AbsPath, Text]
    encodings: Mapping[str, Encoding]
    """Of each server that found something."""
    outside: frozenset[AbsPath] = frozenset()


def selected(
    row: OperationRow, question: Question, readings: Mapping[str, Reading[ServerResult]], workspace: AbsPath
) -> ResultSelection:
    """What to show of all servers' readings."""
    distinct: dict[object, tuple[str, ServerResult]] = {}
    for server, reading in readings.items():
        for found in row.keep(question, reading.found):
            distinct.setdefault(_identity(server, found), (server, found))
    ordered = list(distinct.values())
    if len(ordered) > 1 and row.is_sorted:
        ordered.sort(key=lambda pair: _rank(question, pair[1], workspace))
    offset = question.offset or 0
    chosen = tuple(ordered[offset : offset + min(question.limit or row.cap, MAX_LIMIT)])
    places = dict.fromkeys(spot.path for _, found in chosen for spot in found.spots)
    paths = tuple(path for path in places if path is not None and is_inside(path, workspace))
    skipped = sum(reading.skipped for reading in readings.values())
    return ResultSelection(chosen, len(ordered), skipped, paths, offset)


def best_first(found: Sequence[ServerResult], question: Question) -> list[ServerResult]:
    """Symbols of the workspace by how well they match."""
    return sorted(found, key=lambda one: _match(one.name, question.query or ""))


def resolved(row: OperationRow, selection: ResultSelection, backdrop: Backdrop) -> Data:
    """The data of the answer, its places counted in code points as far as the texts are there."""
    views = {
        server: View(backdrop.workspace, server, encoding, backdrop.texts, backdrop.outside)
        for server, encoding in backdrop.encodings.items()
    }
    items = _distinct(found.resolved(views[server]) for server, found in selection.chosen)
    if row.data is Hover:
        return joined(tuple(item for item in items if isinstance(item, Hover)))
    # Actions that can be done get the number by which they are asked for, from 1; the others stand behind them.
    return tuple(
        replace(item, number=number) if isinstance(item, Action) and item.disabled is None else item
        for number, item in enumerate(items, 1)
    )


def _identity(server: str, found: ServerResult) -> object:
    """Two results with the same places and name are one; what has no place is only ever the same as itself."""
    spots = found.spots
    if len(spots) == 1:
        # As nearly everything has, in lists of a thousand.
        return spots[0].order, found.name
    return (*(spot.order for spot in spots), found.name) if spots else (server, id(found))


def _rank(question: Question, found: ServerResult, workspace: AbsPath) -> tuple[object, ...]:
    if isinstance(found, FoundAction):
        return found.disabled is not None, not found.preferred
    spot = found.spots[0]
    path = spot.path
    external = path is None or not is_inside(path, workspace)
    match = _match(found.name, question.query) if question.query else 0
    return match, external, spot.order


def _match(name: str, query: str) -> int:
    """How well a name fits a query: the name itself, but for case, its beginning, anything else."""
    bare, wanted = bare_name(name), bare_name(query)
    if bare == wanted:
        return 0
    if bare.lower() == wanted.lower():
        return 1
    return 2 if bare.lower().startswith(wanted.lower()) else 3


def _distinct(items: Iterable[Item]) -> list[Item]:
    """Servers that count in different units name one place differently until here."""
    seen: set[object] = set()
    kept: list[Item] = []
    for item in items:
        key = _key(item)
        if key is None or key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _key(item: Item) -> tuple[str, int, int, str] | None:
    match item:
        case Symbol():
            return item.path, item.line, item.character, item.name
        case Location():
            return item.path, item.line, item.character, ""
        case HierarchyItem():
            return item.location.path, item.location.line, item.location.character, item.name
        case _:
            return None
