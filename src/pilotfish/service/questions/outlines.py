"""Outlines of the files in an answer: which symbol is around a place, and which symbols are only locals."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

import anyio
from msgspec.structs import replace

from pilotfish.api.answers import Location, Symbol
from pilotfish.errors import Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.operations.results import ServerResult
from pilotfish.operations.symbols import Body, FoundSymbol, around, bodies_by_line, is_local, kind_word
from pilotfish.paths import is_inside, shown_path
from pilotfish.protocol.positions import Text
from pilotfish.service.texts import Texts
from pilotfish.system.tasks import side_by_side

MAX_FILES = 40
"""Files of one answer whose outline is asked for: the first ones."""

SECONDS = 10.0
"""How long an answer may wait for them; what is not there then is left out."""

_VARIABLES = frozenset({"variable", "constant"})

Outline = Callable[[str], Awaitable[Sequence[Symbol]]]
"""The outline of a file with all that is in it; raises a `Failure`."""


class EnclosingSymbols:
    """The symbols around places. What is known of a text is kept as long as the text is: an outline asks a server."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._known: WeakKeyDictionary[Text, tuple[Body, ...]] = WeakKeyDictionary()

    async def added(
        self, places: Sequence[Location], texts: Mapping[AbsPath, Text], workspace: AbsPath, outline: Outline
    ) -> tuple[Location, ...]:
        """The same places, each with the symbol around it. `texts` are those that the places were found in."""
        files = {shown_path(path, workspace): path for path in texts}
        paths = dict.fromkeys(place.path for place in places if not place.external)
        known = {path: self._known[texts[at]] for path in paths if (at := files.get(path)) and texts[at] in self._known}
        found = await outlines_of([path for path in paths if path not in known], outline)
        for path, symbols in found.items():
            known[path] = bodies_by_line(symbols)
            at = files.get(path)
            if symbols and at is not None and await self._is_still(at, texts[at]):
                self._known[texts[at]] = known[path]
        within = [around(place, known.get(place.path, ())) for place in places]
        return tuple(
            place if body is None else replace(place, within=body.name)
            for place, body in zip(places, within, strict=True)
        )

    async def _is_still(self, path: AbsPath, text: Text) -> bool:
        try:
            return await self._texts.text(path) is text
        except Refused:
            return False


async def without_locals(
    found: Sequence[ServerResult], workspace: AbsPath, outline: Outline
) -> tuple[ServerResult, ...]:
    """Symbols of the workspace without parameters and variables of functions, as far as their outlines are known."""
    doubtful = [one for one in found if _may_be_local(one, workspace)]
    paths = list(dict.fromkeys(path for one in doubtful if (path := one.spots[0].path) is not None))
    known = await outlines_of(paths, outline)
    dropped = {
        id(one)
        for one in doubtful
        for spot in one.spots[:1]
        if is_local(one.name, spot.range.start.line + 1, known.get(spot.path or "", ()))
    }
    return tuple(one for one in found if id(one) not in dropped)


def _may_be_local(found: ServerResult, workspace: AbsPath) -> bool:
    if not isinstance(found, FoundSymbol) or found.container is None or kind_word(found.kind) not in _VARIABLES:
        return False
    path = found.spots[0].path
    return path is not None and is_inside(path, workspace)


async def outlines_of(files: Sequence[str], outline: Outline) -> dict[str, Sequence[Symbol]]:
    paths = files[:MAX_FILES]
    found: dict[str, Sequence[Symbol]] = {}

    async def look(path: str) -> None:
        try:
            found[path] = await outline(path)
        except Failure:
            # The place stands without it.
            found[path] = ()

    if paths:
        with anyio.move_on_after(SECONDS):
            await side_by_side(look, paths)
    return found
