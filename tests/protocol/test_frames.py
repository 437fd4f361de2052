"""Framing: any chunking gives the same messages, and every bad header has its typed fault."""

import tracemalloc
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.errors import Code
from pilotfish.protocol.frames import (
    MAX_HEADER,
    MAX_JUNK,
    MAX_JUNK_LINE,
    MAX_MESSAGE,
    FrameDecoder,
    FrameError,
    frame,
)


@dataclass(frozen=True)
class Outcome:
    """All that a decoder says about a stream."""

    bodies: tuple[bytes, ...]
    fault: tuple[Code, str] | None
    junk_size: int | None
    incomplete: bool


def outcome(*chunks: bytes) -> Outcome:
    decoder = FrameDecoder()
    bodies: list[bytes] = []
    for chunk in chunks:
        try:
            bodies += decoder.feed(chunk)
        except FrameError as error:
            # The junk of a poisoned stream depends on how much of it came before the fault was seen.
            return Outcome((*bodies, *error.bodies), (error.code, error.message), None, incomplete=False)
    return Outcome(tuple(bodies), None, decoder.junk_size, decoder.incomplete)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


# --- Good streams -------------------------------------------------------------------------------------------------


@pytest.mark.proves("RPC-2", "C20")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", b"Content-Length: 0\r\n\r\n"),
        (b"{}", b"Content-Length: 2\r\n\r\n{}"),
        ('"é😀"'.encode(), b"Content-Length: 8\r\n\r\n" + '"é😀"'.encode()),
    ],
)
def test_a_frame_is_one_piece_with_its_length_in_bytes(body: bytes, expected: bytes) -> None:
    assert frame(body) == expected


@pytest.mark.proves("C2", "C3")
@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length:2\r\n\r\n",
        b"CONTENT-LENGTH : 2\r\n\r\n",
        b"Content-Length: \t 2 \t\r\n\r\n",
        b"Content-Length: 0002\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"content-type : application/vscode-jsonrpc;charset=utf8\r\nContent-Length: 2\r\n\r\n",
        b'Content-Type: application/json; charset="UTF-8"\r\nContent-Length: 2\r\n\r\n',
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nX-Unknown: 7\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nX: " + b"x" * (MAX_HEADER - 22) + b"\r\n\r\n",
    ],
)
@pytest.mark.parametrize("before", [b"", frame(b"[1]")], ids=["first", "second"])
def test_these_headers_are_understood(header: bytes, before: bytes) -> None:
    data = before + header + b"{}" + frame(b"[2]")
    expected = Outcome((*([b"[1]"] if before else []), b"{}", b"[2]"), None, 0, incomplete=False)
    assert outcome(data) == expected
    assert outcome(*bytewise(data)) == expected


@pytest.mark.proves("C1", "F30")
def test_a_character_may_be_split_at_every_byte() -> None:
    body = '{"text":"😀é"}'.encode()
    data = frame(body) + frame(b"[]")
    for at in range(len(data) + 1):
        assert outcome(data[:at], data[at:]) == Outcome((body, b"[]"), None, 0, incomplete=False)


@pytest.mark.proves("F29")
def test_a_message_is_incomplete_from_its_first_byte_to_its_last() -> None:
    data = frame(b"{}")
    for at in range(len(data) + 1):
        assert outcome(data[:at]).incomplete == (0 < at < len(data)), data[:at]
    assert not outcome(b"npm WARN without a line end").incomplete


BODIES = st.binary(max_size=80) | st.text(max_size=20).map(str.encode) | st.just(b"\r\n\r\nContent-Length: 3\r\n\r\n")
HEADERS = st.sampled_from(
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\r\n\r\n",
        b"Content-Type: x; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"Content-Length: %d\r\nContent-Type: x\r\n\r\n",
    ]
)
LINES = st.sampled_from(
    [b"\n", b"\r\n", b"npm WARN old\n", b"Starting...\r\n", b"\r\n\r\n", b"Content\n", "é\n".encode()]
)
PLACES = st.lists(st.integers(0, 10_000), max_size=12)


@pytest.mark.proves("C1", "C4", "C5", "F30", "F33", "P10")
@settings(max_examples=300)
@given(st.lists(st.tuples(st.lists(LINES, max_size=3), HEADERS, BODIES), max_size=6), PLACES)
def test_any_chunking_gives_the_messages_that_were_written(
    messages: list[tuple[list[bytes], bytes, bytes]], places: list[int]
) -> None:
    data = b"".join(b"".join(lines) + header % len(body) + body for lines, header, body in messages)
    junk = b"".join(line for lines, _, _ in messages for line in lines)
    read = outcome(*cut(data, places))
    assert read.bodies == tuple(body for _, _, body in messages)
    assert (read.fault, read.incomplete) == (None, False)
    assert read.junk_size == len(junk)


PIECES = st.sampled_from(
    [
        frame(b"{}"),
        frame(b"[1,2,3]")[:-1],
        frame(b"[1,2,3]") + b"]",
        b"Content-Length: ",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Type: x; charset=latin-1\r\n",
        b"Content-Type: x\r\n",
        b"content-type",
        b"5",
        b"\r\n",
        b"\n",
        b"log ",
        b"\r\n\r\n",
    ]
)


@pytest.mark.proves("C4", "P10")
@settings(max_examples=300)
@given(st.lists(PIECES | st.binary(max_size=6), max_size=12).map(b"".join), PLACES)
def test_any_chunking_of_a_broken_stream_gives_the_same_messages_and_the_same_fault(
    data: bytes, places: list[int]
) -> None:
    assert outcome(*cut(data, places)) == outcome(data) == outcome(*bytewise(data))


# --- Log lines between messages -----------------------------------------------------------------------------------


@pytest.mark.proves("C5", "F33")
def test_log_lines_are_skipped_and_counted() -> None:
    decoder = FrameDecoder()
    banner = b"\x1b[1mStarting server\xff\r\n\nnpm WARN deprecated\n"
    assert decoder.feed(banner + frame(b"1") + b"later\n" + frame(b"2")) == [b"1", b"2"]
    assert decoder.junk_size == len(banner) + len(b"later\n")


@pytest.mark.proves("C5", "F33")
def test_a_banner_without_a_line_end_is_skipped_before_the_first_message() -> None:
    data = b"\r 10 %\r 100 %" + frame(b"1") + b"x\n" + frame(b"2")
    expected = Outcome((b"1", b"2"), None, 15, incomplete=False)
    assert outcome(data) == outcome(*bytewise(data)) == expected


@pytest.mark.proves("C5", "F33")
def test_a_log_line_may_speak_of_types() -> None:
    data = frame(b"1") + b"GET / content-type: text/html; charset=latin-1\nnot a field\n" + frame(b"2")
    assert outcome(data).bodies == outcome(*bytewise(data)).bodies == (b"1", b"2")


@pytest.mark.proves("C2")
def test_a_header_field_that_we_do_not_know_is_skipped_before_those_that_we_do() -> None:
    assert outcome(b"X-Trace: 1\r\nContent-Length: 2\r\n\r\n{}").bodies == (b"{}",)


@pytest.mark.proves("C5", "F33")
@pytest.mark.parametrize("step", [64, 65_536, 2 * MAX_JUNK])
def test_too_much_junk_between_two_messages_poisons(step: int) -> None:
    line = b"x" * 511 + b"\n"
    most = frame(b"1") + line * (MAX_JUNK // len(line))
    enough = outcome(*cut(most + frame(b"2"), list(range(0, len(most), step))))
    assert enough.bodies == (b"1", b"2")
    more = most + b"\n" + frame(b"2")
    assert outcome(*cut(more, list(range(0, len(more), step)))) == Outcome(
        (b"1",), (Code.LIMIT_EXCEEDED, too_much_junk()), None, incomplete=False
    )


@pytest.mark.proves("C5", "F28")
@pytest.mark.parametrize("ending", [b"", b"\n", frame(b"1")], ids=["unfinished", "finished", "header"])
@pytest.mark.parametrize("step", [977, MAX_MESSAGE])
def test_a_line_of_junk_has_a_limit(ending: bytes, step: int) -> None:
    longest = b"x" * MAX_JUNK_LINE + (ending or b"\n")
    assert outcome(*cut(longest, list(range(0, len(longest), step)))).fault is None
    assert outcome(*cut(longest, list(range(MAX_JUNK_LINE, len(longest))))).fault is None
    longer = b"x" * (MAX_JUNK_LINE + 100) + ending
    fault = (Code.LIMIT_EXCEEDED, too_much_junk())
    assert outcome(*cut(longer, list(range(0, len(longer), step)))).fault == fault


def too_much_junk() -> str:
    return f"more than {MAX_JUNK} bytes, or one line of more than {MAX_JUNK_LINE}, that are not a message"


# --- Faults -------------------------------------------------------------------------------------------------------

PROTOCOL, LIMIT = Code.PROTOCOL_ERROR, Code.LIMIT_EXCEEDED


@pytest.mark.parametrize("before", [b"", frame(b"[1]")], ids=["first", "second"])
@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        pytest.param(b"Content-Length: %d" % (MAX_MESSAGE + 1), LIMIT, "over the limit", id="one byte too many"),
        pytest.param(b"Content-Length: 1000000000000", LIMIT, "1000000000000 bytes is over", id="10^12"),
        pytest.param(b"Content-Length: 9223372036854775808", LIMIT, "is over the limit of 67108864", id="2^63"),
        pytest.param(b"Content-Length: " + b"9" * 5000, LIMIT, "10^4999 bytes is over", id="5000 digits"),
        pytest.param(b"Content-Type: application/json", PROTOCOL, "no Content-Length", id="missing"),
        pytest.param(b"Content-Length: -5", PROTOCOL, "not a number: b'-5'", id="negative"),
        pytest.param(b"Content-Length: +5", PROTOCOL, "not a number: b'+5'", id="plus"),
        pytest.param(b"Content-Length: NaN", PROTOCOL, "not a number: b'NaN'", id="NaN"),
        pytest.param(b"Content-Length: 5.0", PROTOCOL, "not a number", id="fraction"),
        pytest.param(b"Content-Length: 5 5", PROTOCOL, "not a number", id="two numbers"),
        pytest.param("Content-Length: ٥".encode(), PROTOCOL, "not a number", id="digit of another script"),
        pytest.param(b"Content-Length:", PROTOCOL, "not a number: b''", id="empty"),
        pytest.param(b"Content-Length: x" + b"y" * 99, PROTOCOL, ": b'xyyyyyyyyyyyyyyyyyyy'", id="quoted in brief"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 6", PROTOCOL, "several lengths: [5, 6]", id="conflict"),
        pytest.param(
            b"Content-Type: x; charset=utf-16\r\nContent-Length: 5", PROTOCOL, "not utf-8: b'utf-16'", id="utf-16"
        ),
        pytest.param(b"Content-Length: 5\r\nContent-Type: charset = latin1", PROTOCOL, "latin1", id="latin-1, last"),
        pytest.param(
            b"Content-Length: 5\r\nX: " + b"x" * MAX_HEADER, LIMIT, "longer than 8192 bytes", id="vast header"
        ),
    ],
)
@pytest.mark.proves("C3", "F24", "F25", "F27", "F28")
def test_these_headers_poison_with_this_fault(before: bytes, header: bytes, code: Code, message: str) -> None:
    data = before + header + b"\r\n\r\n{}" + frame(b"[2]")
    expected = (b"[1]",) if before else ()
    with pytest.raises(FrameError) as caught:
        FrameDecoder().feed(data)
    assert message in str(caught.value)
    assert (caught.value.code, caught.value.bodies) == (code, expected)
    assert outcome(*bytewise(data)) == Outcome(expected, (code, caught.value.message), None, incomplete=False)


@pytest.mark.proves("F28")
def test_a_header_that_never_ends_is_refused_at_the_limit() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b"Content-Length: 5\r\nX: ".ljust(MAX_HEADER + 3, b"x")) == []
    with pytest.raises(FrameError, match="a header is longer than 8192 bytes"):
        decoder.feed(b"x")


@pytest.mark.proves("F26")
@pytest.mark.parametrize("error", [-40, -3, -2, -1, 1, 2, 3, 10, 20, 40])
def test_a_length_that_lies_is_found_at_the_next_header(error: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":{"contents":"text"}}'
    lie = b"Content-Length: %d\r\n\r\n%b" % (len(body) + error, body)
    data = frame(b"1") + lie + frame(body) + frame(body)
    fault = (PROTOCOL, "a message was longer or shorter than its Content-Length")
    read = outcome(data)
    assert read.fault == fault
    assert outcome(*bytewise(data)) == read
    assert read.bodies[0] == b"1"
    assert body not in read.bodies


@pytest.mark.proves("F26", "F29")
def test_a_length_that_is_too_large_leaves_the_message_incomplete_when_nothing_follows() -> None:
    assert outcome(b"Content-Length: 3\r\n\r\n{}") == Outcome((), None, 0, incomplete=True)


@pytest.mark.proves("F26", "F27")
def test_after_a_fault_every_feed_raises_the_same() -> None:
    decoder = FrameDecoder()
    with pytest.raises(FrameError) as first:
        decoder.feed(frame(b"1") + b"Content-Length: -1\r\n\r\n")
    assert first.value.bodies == (b"1",)
    for data in (b"", frame(b"2")):
        with pytest.raises(FrameError) as later:
            decoder.feed(data)
        assert (later.value.code, later.value.message, later.value.bodies) == (PROTOCOL, first.value.message, ())


# --- Memory -------------------------------------------------------------------------------------------------------


def peak_of(chunks: list[bytes]) -> int:
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.proves("F24", "F25", "P16")
def test_a_promise_of_the_largest_message_allocates_nothing() -> None:
    assert peak_of([b"Content-Length: %d\r\n\r\n" % MAX_MESSAGE, b"{"]) < 64 * 1024


@pytest.mark.proves("F24", "F30", "P16")
@pytest.mark.parametrize("size", [2, 65_536])
def test_a_body_in_crumbs_costs_about_its_own_size(size: int) -> None:
    body = b"x" * (256 * 1024)
    data = frame(body)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert peak_of(chunks) < 3 * len(body) + 64 * 1024


@pytest.mark.proves("F24", "P16")
def test_the_largest_message_is_read() -> None:
    data = frame(b"x" * MAX_MESSAGE)
    (body,) = outcome(*(data[at : at + 65_536] for at in range(0, len(data), 65_536))).bodies
    assert len(body) == MAX_MESSAGE
