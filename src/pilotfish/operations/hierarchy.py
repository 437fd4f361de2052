"""Call and type hierarchies: items, and the calls between them.

An item is opaque: what a server gave is handed back to it member by member, `data` word for word. An item prepared in
the same run goes back as the very bytes that came.
"""

from msgspec import convert
from msgspec.structs import asdict, replace

from pilotfish.api.answers import Edge, HierarchyItem, ItemReference
from pilotfish.operations.results import Reading, RequestContext, ServerResult, Spot, View, one_or_many
from pilotfish.protocol.codec import Items, Malformed, decode, decode_items
from pilotfish.protocol.wire import Raw, UnsetType, WireCall, WireHierarchyItem, WireRange


class FoundItem(ServerResult, frozen=True):
    """An item; the spot is its name."""

    raw: Raw
    item: WireHierarchyItem

    def resolved(self, view: View) -> HierarchyItem:
        item = replace(convert(self.item, ItemReference, from_attributes=True), server=view.server)
        return HierarchyItem(**asdict(item), location=view.location(self.spots[0]))


class FoundEdge(ServerResult, frozen=True):
    """A caller or a callee; the spots are its name and where the calls are written."""

    item: FoundItem
    incoming: bool

    def resolved(self, view: View) -> Edge:
        item, calls = self.item.resolved(view), tuple(view.location(spot) for spot in self.spots[1:])
        return Edge(calls, caller=item) if self.incoming else Edge(calls, callee=item)


def read_items(raw: Raw, _asked: RequestContext) -> Reading[FoundItem]:
    """Read a list of items of a hierarchy, or null."""
    raws = one_or_many(raw, Raw)
    found = [item for item in map(_item, raws.items) if item is not None]
    return Reading(tuple(found), len(raws.items) - len(found))


def read_incoming(raw: Raw, _asked: RequestContext) -> Reading[FoundEdge]:
    """Read `CallHierarchyIncomingCall[] | null`: the calls are written in the document of the caller."""
    return _edges(raw, None)


def read_outgoing(raw: Raw, asked: RequestContext) -> Reading[FoundEdge]:
    """Read `CallHierarchyOutgoingCall[] | null`: the calls are written in the document of the item asked about."""
    item = asked.hierarchy_item
    return _edges(raw, item.uri if isinstance(item, ItemReference) else decode(item, WireHierarchyItem).uri)


def protocol_item(item: Raw | ItemReference) -> object:
    """The item as the protocol has it: what the server gave, and nothing of ours."""
    return convert(item, WireHierarchyItem, from_attributes=True) if isinstance(item, ItemReference) else item


def _edges(raw: Raw, uri: str | None) -> Reading[FoundEdge]:
    """`uri`: the document of the callers; None where the edges lead to these."""
    calls = decode_items(raw, WireCall)
    skipped = calls.skipped
    found: list[FoundEdge] = []
    for call in calls.items:
        end = call.caller if uri is None else call.callee
        item = None if isinstance(end, UnsetType) else _item(end)
        if item is None:
            skipped += 1
            continue
        ranges = Items[WireRange](())
        try:
            if not isinstance(call.from_ranges, UnsetType):
                ranges = decode_items(call.from_ranges, WireRange)
        except Malformed:
            skipped += 1
        skipped += ranges.skipped
        # Some servers name a call twice when a function is declared twice.
        calls_at = dict.fromkeys(Spot(uri or item.item.uri, one) for one in ranges.items)
        found.append(FoundEdge(item, uri is None, name=item.name, spots=(*item.spots, *calls_at)))
    return Reading(tuple(found), skipped)


def _item(raw: Raw) -> FoundItem | None:
    try:
        item = decode(raw, WireHierarchyItem)
        return FoundItem(raw, item, name=item.name, spots=(Spot(item.uri, item.selection_range),))
    except Malformed:
        return None
