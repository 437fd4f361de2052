"""Outlines of the files in an answer: which symbol is around a place, and which symbols are only locals."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
from msgspec.structs import replace

from pilotfish.api.answers import Location, Symbol
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.operations.outlines.enclosing import Around, around, bodies, is_local
from pilotfish.operations.results import ServerResult
from pilotfish.operations.symbols import FoundSymbol, kind_word
from pilotfish.paths import is_inside
from pilotfish.system.tasks import side_by_side

MAX_FILES = 40
"""Files of one answer whose outline is asked for: the first ones."""

SECONDS = 10.0
"""How long an answer may wait for them; what is not there then is left out."""

_VARIABLES = frozenset({"variable", "constant"})

Outline = Callable[[str], Awaitable[Sequence[Symbol]]]
"""The outline of a file with all that is in it; raises a `Failure`."""


async def with_enclosing(places: Sequence[Location], outline: Outline) -> tuple[Location, ...]:
    """The same places, each with the symbol around it."""
    paths = list(dict.fromkeys(place.path for place in places if not place.external))
    known = {path: bodies(found) for path, found in (await outlines_of(paths, outline)).items()}
    return tuple(_placed(place, known.get(place.path, ())) for place in places)


async def without_locals(
    found: Sequence[ServerResult], workspace: AbsPath, outline: Outline
) -> tuple[ServerResult, ...]:
    """Symbols of the workspace without parameters and variables of functions, as far as their outlines are known."""
    doubtful = [one for one in found if _may_be_local(one, workspace)]
    paths = list(dict.fromkeys(path for one in doubtful if (path := one.spots[0].path) is not None))
    known = await outlines_of(paths, outline)
    dropped = {id(one) for one in doubtful if _is_local(one, known)}
    return tuple(one for one in found if id(one) not in dropped)


def _may_be_local(found: ServerResult, workspace: AbsPath) -> bool:
    if not isinstance(found, FoundSymbol) or found.container is None or kind_word(found.kind) not in _VARIABLES:
        return False
    return found.spot.path is not None and is_inside(found.spot.path, workspace)


def _is_local(found: ServerResult, known: Mapping[str, Sequence[Symbol]]) -> bool:
    spot = found.spots[0]
    return is_local(found.name, spot.range.start.line + 1, known.get(spot.path or "", ()))


async def outlines_of(files: Sequence[str], outline: Outline) -> dict[str, Sequence[Symbol]]:
    paths = files[:MAX_FILES]
    found: dict[str, Sequence[Symbol]] = {}

    async def look(path: str) -> None:
        try:
            found[path] = await outline(path)
        except Failure:
            # The place stands without it.
            found[path] = ()

    with anyio.move_on_after(SECONDS):
        await side_by_side(look, paths)
    return found


def _placed(place: Location, known: Sequence[Around]) -> Location:
    found = around(place, known)
    return place if found is None else replace(place, within=found.name)
