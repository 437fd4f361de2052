"""Positions: any place of a server in any text is the place that the slow implementation finds, and comes back."""

from fuzz.pieces import Pieces
from pilotfish.model import Encoding, Position
from pilotfish.protocol.positions import Text, position_from_wire, position_to_wire, range_from_wire
from pilotfish.protocol.wire import WirePosition, WireRange
from support.oracles import naive_text

WORDS = ("😀".encode(), "👩‍👩‍👧".encode(), "é".encode(), b"\r\n", b"\r", b"\n", "\u2028".encode(), b"\xff")
SEEDS = (b"\x00\x00\x02\x06a\xf0\x9f\x98\x80b", b"\x01\x02\x09\x05a\r\nb\r", b"\x02\xff\xff\x03\xc3\xa9\n")


def run(data: bytes) -> None:
    pieces = Pieces(data)
    encoding = pieces.choice(tuple(Encoding))
    line, character = pieces.number(), pieces.number()
    string = pieces.text() + pieces.text()
    text = Text(string)
    place = position_from_wire(WirePosition(line, character), text, encoding)
    assert place == Position(*naive_text.place_from_units(string, line, character, encoding))
    assert text.position_at(text.offset(place)) == place
    assert text.offset(place) == naive_text.offset(string, place.line, place.character)
    assert position_from_wire(position_to_wire(place, text, encoding), text, encoding) == place
    backwards = WireRange(WirePosition(line, character), WirePosition(pieces.number(), pieces.number()))
    found = range_from_wire(backwards, text, encoding)
    assert text.offset(found.start) <= text.offset(found.end) <= len(string)
