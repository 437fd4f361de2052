"""Where things are in a text: lines, offsets, and a server's units against ours.

Lines end at `\\n`, `\\r\\n` and `\\r`, nowhere else: `str.splitlines` also cuts at form feeds and U+2028, and would
shift every line below.
A server counts bytes, UTF-16 units or code points; we count code points. The conversion needs the text of the line, and
happens here only.

Nothing a server or a caller says about a place can fail: a character beyond its line means the end of that line, before
its line ending; a line beyond the last means the end of the text; negative numbers mean 0; a reversed range is turned
round; a place inside a surrogate pair or a multi-byte character is the start of that character.
A text is taken without its byte-order mark; a U+FEFF inside it is a character like any other.
"""

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from pilotfish.model import Encoding, Position, Range
from pilotfish.protocol.codec import REPLACEMENT
from pilotfish.protocol.wire import WirePosition, WireRange

STRIDE = 1024
"""A line longer than this many code points is measured once, mark by mark, so that a place in a minified file of one
line costs no more than one in a line of this length."""

_LINE_ENDING = re.compile(r"\r\n?|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


class UnknownEncoding(Exception):
    """The server counts characters in an unknown unit: none of its positions could be trusted."""


def negotiated(server_value: object) -> Encoding:
    """The encoding the server picked from those offered; a server that says nothing counts UTF-16 units."""
    if server_value is None:
        return Encoding.UTF16
    if server_value not in tuple(Encoding):
        raise UnknownEncoding(f"the server chose the position encoding {server_value!r}, which does not exist")
    return Encoding(server_value)


class Text:
    """An immutable text and, built on first use, the index of its lines."""

    def __init__(self, string: str) -> None:
        self.string = string
        self._marks: dict[tuple[int, Encoding], list[int]] = {}

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line starts; there is always at least one line."""
        # Splitting takes a third of the time of a regular expression, and nearly all texts allow it.
        if "\r" not in self.string or self.eol == "\r\n":
            starts = [0, *accumulate([len(line) + 1 for line in self.string.split("\n")])]
            starts.pop()
            return starts
        return [0, *(ending.end() for ending in _LINE_ENDING.finditer(self.string))]

    @cached_property
    def widths(self) -> list[int]:
        """How many code points each line has, its line ending left out."""
        lines = _LINE_ENDING.split(self.string) if "\r" in self.string else self.string.split("\n")
        return [len(line) for line in lines]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all encodings count this text alike."""
        return self.string.isascii()

    @cached_property
    def eol(self) -> str | None:
        """The line ending, if the text has any and they are all the same."""
        pairs, feeds, returns = (self.string.count(ending) for ending in ("\r\n", "\n", "\r"))
        if pairs == feeds == returns:
            return "\r\n" if pairs else None
        if not returns:
            return "\n"
        return None if feeds else "\r"

    @property
    def line_count(self) -> int:
        return len(self.starts)

    @property
    def end(self) -> Position:
        last = self.line_count - 1
        return Position(last, len(self.string) - self.starts[last])

    def line(self, number: int) -> str:
        """The text of a line without its line ending."""
        start, end = self.bounds(number)
        return self.string[start:end]

    def bounds(self, line: int) -> tuple[int, int]:
        """The offsets between which an existing line stands, its line ending left out."""
        start = self.starts[line]
        return start, start + self.widths[line]

    def marks(self, line: int, encoding: Encoding) -> list[int]:
        """How many units stand in a line before its code points 0, `STRIDE`, 2 × `STRIDE` and so on."""
        start, end = self.bounds(line)
        if end - start < STRIDE:
            return [0]
        known = self._marks.get((line, encoding))
        if known is None:
            strides = (self.string[mark : mark + STRIDE] for mark in range(start, end - STRIDE + 1, STRIDE))
            known = [0, *accumulate(_units(stride, encoding) for stride in strides)]
            self._marks[line, encoding] = known
        return known

    def offset(self, position: Position) -> int:
        """How many code points stand before `position`, brought inside the text."""
        if position.line >= self.line_count:
            return len(self.string)
        start, end = self.bounds(max(0, position.line))
        return min(start + max(0, position.character), end)

    def position_at(self, offset: int) -> Position:
        """The position of an offset, brought inside the text; between `\\r` and `\\n` is the end of that line."""
        offset = min(max(0, offset), len(self.string))
        line = bisect_right(self.starts, offset) - 1
        start, end = self.bounds(line)
        return Position(line, min(offset, end) - start)


def position_from_wire(wire: WirePosition, text: Text, encoding: Encoding) -> Position:
    line, units, widths = wire.line, wire.character, text.widths
    if text.is_ascii and 0 <= line < len(widths) and 0 <= units <= widths[line]:
        # Nearly all: a list of a thousand places asks two thousand times.
        return Position(line, units)
    if line >= len(widths):
        return text.end
    line, units = max(0, line), max(0, units)
    start, end = text.bounds(line)
    if text.is_ascii:
        return Position(line, min(units, end - start))
    marks = text.marks(line, encoding)
    stride = bisect_right(marks, units) - 1
    first = start + stride * STRIDE
    passed = _code_points(text.string[first : min(first + STRIDE, end)], units - marks[stride], encoding)
    return Position(line, first - start + passed)


def position_to_wire(position: Position, text: Text, encoding: Encoding) -> WirePosition:
    return _wire_at(text.offset(position), text, encoding)


def range_from_wire(wire: WireRange, text: Text, encoding: Encoding) -> Range:
    start = position_from_wire(wire.start, text, encoding)
    end = position_from_wire(wire.end, text, encoding)
    in_order = start.line < end.line or (start.line == end.line and start.character <= end.character)
    return Range(start, end) if in_order else Range(end, start)


def range_to_wire(range_: Range, text: Text, encoding: Encoding) -> WireRange:
    start, end = sorted((text.offset(range_.start), text.offset(range_.end)))
    return WireRange(_wire_at(start, text, encoding), _wire_at(end, text, encoding))


def _wire_at(offset: int, text: Text, encoding: Encoding) -> WirePosition:
    place = text.position_at(offset)
    if text.is_ascii:
        return WirePosition(place.line, place.character)
    stride = place.character // STRIDE
    start = text.starts[place.line]
    passed = _units(text.string[start + stride * STRIDE : start + place.character], encoding)
    return WirePosition(place.line, text.marks(place.line, encoding)[stride] + passed)


_CODECS = {Encoding.UTF8: ("utf-8", 1), Encoding.UTF16: ("utf-16-le", 2), Encoding.UTF32: ("utf-32-le", 4)}
"""Python's name of each encoding, and how many bytes one unit takes."""


def _units(string: str, encoding: Encoding) -> int:
    """How many units a server counts for `string`."""
    if string.isascii():
        return len(string)
    codec, width = _CODECS[encoding]
    return len(_encoded(string, codec)) // width


def _code_points(string: str, units: int, encoding: Encoding) -> int:
    """How many whole characters of `string` fit into `units`: the inverse of `_units`, rounded down."""
    if string.isascii():
        return min(units, len(string))
    codec, width = _CODECS[encoding]
    return len(_encoded(string, codec)[: units * width].decode(codec, "ignore"))


def _encoded(string: str, codec: str) -> bytes:
    try:
        return string.encode(codec)
    except UnicodeEncodeError:
        # The server was sent this in place of half of a surrogate pair, and counts it.
        return _SURROGATE.sub(REPLACEMENT, string).encode(codec)
