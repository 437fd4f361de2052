"""Locations: definitions, declarations, types, implementations, references.

Every shape that servers have ever sent is read: nothing, one location, a list of locations, a list of links, and lists
that mix the two. Of a link, the place is that of the name, which is where a further question can be asked.
"""

from msgspec import Struct

from pilotfish.api.answers import Location
from pilotfish.operations.lenient import one_or_many
from pilotfish.operations.request_context import RequestContext
from pilotfish.operations.results import Reading, Spot, View
from pilotfish.protocol.wire import Raw, WirePlace


class FoundLocation(Struct, frozen=True):
    """A place that answers the question."""

    spot: Spot

    @property
    def spots(self) -> tuple[Spot, ...]:
        return (self.spot,)

    @property
    def name(self) -> str:
        return ""

    def resolved(self, view: View) -> Location:
        return view.location(self.spot)


def read_locations(raw: Raw, _asked: RequestContext) -> Reading[FoundLocation]:
    """Read `Location | Location[] | LocationLink[] | null`; raises `Malformed` when it is none of these."""
    items = one_or_many(raw, WirePlace)
    spots = [spot for spot in map(_spot, items.items) if spot is not None]
    skipped = items.skipped + len(items.items) - len(spots)
    return Reading(tuple(FoundLocation(spot) for spot in spots), skipped)


def _spot(place: WirePlace) -> Spot | None:
    if place.target_uri is not None:
        name = place.target_selection_range or place.target_range
        return None if name is None else Spot(place.target_uri, name)
    if place.uri is None or place.range is None:
        return None
    return Spot(place.uri, place.range)
