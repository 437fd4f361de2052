"""Lines, offsets and the three encodings, by example and against the naive implementation."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish.model import Encoding, Position, Range
from pilotfish.protocol.codec import encode
from pilotfish.protocol.positions import (
    STRIDE,
    Text,
    UnknownEncoding,
    negotiated,
    position_from_wire,
    position_to_wire,
    range_from_wire,
    range_to_wire,
)
from pilotfish.protocol.wire import WirePosition, WireRange
from support.oracles import naive_text

UTF8, UTF16, UTF32 = Encoding.UTF8, Encoding.UTF16, Encoding.UTF32

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
"""One emoji on the screen, five code points, three of them outside the basic plane."""

ENCODINGS = st.sampled_from(Encoding)
TEXTS = st.text(alphabet="ab\r\n\té\u0301\u2028\x0b\x0c\x1c\x85\ufeff漢😀𝒳", max_size=40)
ANYWHERE = st.integers(-3, 50) | st.sampled_from([2**31 - 1, -(2**31), 2**53])


@pytest.mark.proves("C74", "F49")
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("", [""], id="empty"),
        pytest.param("a", ["a"], id="no line ending at the end"),
        pytest.param("a\n", ["a", ""], id="line feed"),
        pytest.param("a\r\nb\r\n", ["a", "b", ""], id="carriage return and line feed"),
        pytest.param("a\rb\r", ["a", "b", ""], id="carriage return alone"),
        pytest.param("a\rb\r\nc\nd", ["a", "b", "c", "d"], id="mixed"),
        pytest.param("\r\r\n\n", ["", "", "", ""], id="only line endings"),
        pytest.param("a\n\rb", ["a", "", "b"], id="line feed before carriage return is two endings"),
        pytest.param("a\x0bb\x0cc\x1cd\x85e\u2028f", ["a\x0bb\x0cc\x1cd\x85e\u2028f"], id="what splitlines would cut"),
    ],
)
def test_lines_end_at_the_three_line_endings_of_the_protocol_only(text: str, lines: list[str]) -> None:
    indexed = Text(text)
    assert [indexed.line(number) for number in range(indexed.line_count)] == lines


@pytest.mark.proves("C74", "F49")
@given(TEXTS)
def test_lines_are_those_of_the_naive_implementation(text: str) -> None:
    indexed = Text(text)
    expected = naive_text.lines(text)
    assert [indexed.line(number) for number in range(indexed.line_count)] == [content for content, _ in expected]
    kinds = {ending for _, ending in expected if ending}
    assert indexed.eol == (kinds.pop() if len(kinds) == 1 else None)
    assert indexed.end == Position(len(expected) - 1, len(expected[-1][0]))


@pytest.mark.proves("C75", "RPC-5")
@pytest.mark.parametrize(
    ("server_value", "encoding"),
    [
        pytest.param(None, UTF16, id="absent or null"),
        pytest.param("utf-8", UTF8, id="utf-8"),
        pytest.param("utf-16", UTF16, id="utf-16"),
        pytest.param("utf-32", UTF32, id="utf-32"),
    ],
)
def test_the_encoding_is_the_one_the_server_picked(server_value: object, encoding: Encoding) -> None:
    assert negotiated(server_value) is encoding


@pytest.mark.proves("C75")
@pytest.mark.parametrize("server_value", ["utf-7", "UTF-8", "", 8, [], {}, True, ["utf-8"]], ids=repr)
def test_a_server_with_an_unknown_encoding_is_refused(server_value: object) -> None:
    with pytest.raises(UnknownEncoding, match="position encoding"):
        negotiated(server_value)


@pytest.mark.proves("C75", "F51", "RPC-5", "OPS-2")
@pytest.mark.parametrize(
    ("line", "needle", "columns"),
    [
        pytest.param('x = "😀é𝒳"; y = undefined_name', "undefined_name", (22, 17, 15), id="astral and accented"),
        pytest.param(f'x = "{FAMILY}"; y', "y", (26, 16, 13), id="emoji joined from several"),
        pytest.param("e\u0301 = y", "y", (6, 5, 5), id="combining mark is a code point of its own"),
        pytest.param("\ufeffy", "y", (3, 1, 1), id="U+FEFF inside a text is a character"),
        pytest.param("x = y", "y", (4, 4, 4), id="ASCII"),
    ],
)
def test_columns_are_exact_in_every_encoding(line: str, needle: str, columns: tuple[int, int, int]) -> None:
    text = Text(f"é\r\n{line}\r\n")
    place = Position(1, line.index(needle))
    for encoding, column in zip((UTF8, UTF16, UTF32), columns, strict=True):
        assert position_to_wire(place, text, encoding) == WirePosition(1, column)
        assert position_from_wire(WirePosition(1, column), text, encoding) == place


@pytest.mark.proves("C78", "F51")
@pytest.mark.parametrize(
    ("encoding", "inside"),
    [
        pytest.param(UTF8, (2, 3, 4), id="utf-8"),
        pytest.param(UTF16, (2,), id="utf-16"),
    ],
)
def test_a_place_inside_a_character_is_the_start_of_it(encoding: Encoding, inside: tuple[int, ...]) -> None:
    text = Text("a😀b")
    for character in inside:
        assert position_from_wire(WirePosition(0, character), text, encoding) == Position(0, 1)


@pytest.mark.proves("C77", "C82", "F53")
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("first", ["ab", "a😀"], ids=["ASCII", "not ASCII"])
@pytest.mark.parametrize(
    ("line", "character", "place"),
    [
        pytest.param(0, 99, Position(0, 2), id="beyond the line is its end, before the line ending"),
        pytest.param(1, 2**31 - 1, Position(1, 1), id="the largest character there is"),
        pytest.param(2, 0, Position(1, 1), id="beyond the last line is the end of the text"),
        pytest.param(2**31 - 1, 2**31 - 1, Position(1, 1), id="the largest line there is"),
        pytest.param(-1, 1, Position(0, 1), id="negative line"),
        pytest.param(1, -1, Position(1, 0), id="negative character"),
        pytest.param(-7, -7, Position(0, 0), id="both negative"),
    ],
)
def test_a_place_outside_the_text_is_brought_inside(
    eol: str, first: str, line: int, character: int, place: Position
) -> None:
    text = Text(f"{first}{eol}c")
    assert position_from_wire(WirePosition(line, character), text, UTF16) == place
    assert text.position_at(text.offset(Position(line, character))) == place


@pytest.mark.proves("C77", "C82")
@pytest.mark.parametrize("encoding", Encoding)
def test_an_empty_text_has_one_place(encoding: Encoding) -> None:
    text = Text("")
    assert position_from_wire(WirePosition(5, 5), text, encoding) == Position(0, 0)
    assert position_to_wire(Position(5, 5), text, encoding) == WirePosition(0, 0)
    assert text.position_at(9) == Position(0, 0)


@pytest.mark.proves("F53")
def test_a_reversed_range_is_turned_round() -> None:
    text = Text("abc\ndef\n")
    backwards = WireRange(WirePosition(1, 2), WirePosition(0, 1))
    assert range_from_wire(backwards, text, UTF16) == Range(Position(0, 1), Position(1, 2))
    ours = Range(Position(1, 2), Position(0, 1))
    assert range_to_wire(ours, text, UTF16) == WireRange(WirePosition(0, 1), WirePosition(1, 2))


@pytest.mark.proves("F53")
def test_a_range_that_turns_round_only_once_it_is_inside_is_still_a_range() -> None:
    text = Text("abcdef\n")
    assert range_to_wire(Range(Position(-1, 4), Position(0, 2)), text, UTF8) == WireRange(
        WirePosition(0, 2), WirePosition(0, 4)
    )


@pytest.mark.proves("F49")
def test_an_offset_between_carriage_return_and_line_feed_is_the_end_of_the_line() -> None:
    text = Text("ab\r\ncd")
    assert text.position_at(3) == Position(0, 2)
    assert text.position_at(4) == Position(1, 0)
    assert text.position_at(-1) == Position(0, 0)


@pytest.mark.proves("C25")
@pytest.mark.parametrize("encoding", Encoding)
def test_half_of_a_surrogate_pair_counts_as_what_the_server_was_sent_for_it(encoding: Encoding) -> None:
    ours, theirs = "é\ud83d\ude00b", msgspec.json.decode(encode("é\ud83d\ude00b"), type=str)
    for character in range(5):
        wire = WirePosition(0, naive_text.units(theirs[:character], encoding))
        assert position_to_wire(Position(0, character), Text(ours), encoding) == wire
        assert position_from_wire(wire, Text(ours), encoding) == Position(0, character)


@pytest.mark.proves("C75", "C77", "C78", "F51", "F53", "P11", "RPC-5")
@given(TEXTS, ANYWHERE, ANYWHERE, ENCODINGS)
@example("a😀b", 0, 2, UTF16)
def test_a_server_position_is_read_as_the_naive_implementation_reads_it(
    text: str, line: int, character: int, encoding: Encoding
) -> None:
    expected = naive_text.place_from_units(text, line, character, encoding)
    assert position_from_wire(WirePosition(line, character), Text(text), encoding) == Position(*expected)


@pytest.mark.proves("C75", "F51", "P11", "RPC-5")
@given(TEXTS, ENCODINGS)
def test_every_place_of_a_text_survives_the_way_out_and_back(text: str, encoding: Encoding) -> None:
    indexed = Text(text)
    for line, (content, _) in enumerate(naive_text.lines(text)):
        for character in range(len(content) + 1):
            place = Position(line, character)
            wire = position_to_wire(place, indexed, encoding)
            assert wire == WirePosition(line, naive_text.units(content[:character], encoding))
            assert position_from_wire(wire, indexed, encoding) == place
            offset = naive_text.offset(text, line, character)
            assert indexed.offset(place) == offset
            assert indexed.position_at(offset) == place


@pytest.mark.proves("F51", "P11", "RPC-5")
@pytest.mark.parametrize("length", [STRIDE - 1, STRIDE, STRIDE + 1, 2 * STRIDE, 2 * STRIDE + 3])
@pytest.mark.parametrize("encoding", Encoding)
def test_places_in_a_long_line_are_as_exact_as_in_a_short_one(length: int, encoding: Encoding) -> None:
    line = ("a😀é" * length)[:length]
    text = Text(f"é\n{line}\nb")
    near_marks = {0, 1, *(mark + step for mark in (STRIDE, 2 * STRIDE, length) for step in (-2, -1, 0, 1, 2))}
    for character in sorted(near_marks):
        inside = min(character, length)
        units = naive_text.units(line[:inside], encoding)
        assert position_to_wire(Position(1, character), text, encoding) == WirePosition(1, units)
        assert position_from_wire(WirePosition(1, units), text, encoding) == Position(1, inside)
        within = naive_text.place_from_units(text.string, 1, units + 1, encoding)
        assert position_from_wire(WirePosition(1, units + 1), text, encoding) == Position(*within)
    assert position_from_wire(WirePosition(1, 2**31 - 1), text, encoding) == Position(1, length)


def test_a_long_line_is_measured_once_per_encoding() -> None:
    text = Text("é" * (3 * STRIDE))
    assert text.marks(0, UTF8) == [0, 2 * STRIDE, 4 * STRIDE, 6 * STRIDE]
    assert text.marks(0, UTF8) is text.marks(0, UTF8)
    assert text.marks(0, UTF16) == [0, STRIDE, 2 * STRIDE, 3 * STRIDE]


@pytest.mark.proves("F53")
@given(TEXTS, st.tuples(ANYWHERE, ANYWHERE), st.tuples(ANYWHERE, ANYWHERE), ENCODINGS)
def test_any_range_becomes_one_inside_the_text_and_in_order(
    text: str, start: tuple[int, int], end: tuple[int, int], encoding: Encoding
) -> None:
    indexed = Text(text)
    found = range_from_wire(WireRange(WirePosition(*start), WirePosition(*end)), indexed, encoding)
    assert Position(0, 0) <= found.start <= found.end <= indexed.end
    assert range_from_wire(range_to_wire(found, indexed, encoding), indexed, encoding) == found
