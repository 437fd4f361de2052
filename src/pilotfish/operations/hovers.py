"""What is known about the thing at a position: hover texts."""

from msgspec import Struct

from pilotfish.api.answers import Hover
from pilotfish.operations.lenient import one_or_none, texts_of
from pilotfish.operations.request_context import RequestContext
from pilotfish.operations.results import Reading, Spot, View
from pilotfish.protocol.wire import Raw, WireHover


class FoundHover(Struct, frozen=True):
    """One server's words; the spot is what they are about, if it says so."""

    contents: tuple[str, ...]
    spot: Spot | None

    @property
    def spots(self) -> tuple[Spot, ...]:
        return () if self.spot is None else (self.spot,)

    @property
    def name(self) -> str:
        return "\n".join(self.contents)

    def resolved(self, view: View) -> Hover:
        return Hover(self.contents, None if self.spot is None else view.extent(self.spot))


def read_hover(raw: Raw, asked: RequestContext) -> Reading[FoundHover]:
    """Read `Hover | null`. A hover without a word in it is none."""
    hover = one_or_none(raw, WireHover)
    contents = () if hover is None else texts_of(hover.contents)
    if hover is None or not contents:
        return Reading()
    return Reading((FoundHover(contents, None if hover.range is None else Spot(asked.document, hover.range)),))


def joined(hovers: tuple[Hover, ...]) -> Hover | None:
    """All servers' words as one hover, what two of them say alike said once."""
    contents = tuple(dict.fromkeys(text for hover in hovers for text in hover.contents))
    extents = [hover.range for hover in hovers if hover.range is not None]
    return Hover(contents, extents[0] if extents else None) if contents else None
