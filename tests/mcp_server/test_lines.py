"""Newline framing: any chunking gives the same lines, and one that is too long costs nothing but itself."""

import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.surfaces.mcp.lines import MAX_LINE, LineDecoder, TooLong


def lines(*chunks: bytes) -> list[bytes | TooLong]:
    decoder = LineDecoder()
    return [line for chunk in chunks for line in decoder.feed(chunk)]


@pytest.mark.proves("F84")
@settings(max_examples=200)
@given(st.binary(max_size=200).map(lambda data: data.replace(b"x", b"\n")), st.lists(st.integers(0, 200), max_size=8))
def test_any_chunking_gives_the_lines_that_splitting_gives(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(places)]
    assert lines(*chunks) == [line.strip() for line in data.split(b"\n")[:-1] if line.strip()]


def test_a_line_that_has_not_ended_is_no_line_yet() -> None:
    assert lines(b'{"half": ', b"true") == []


def long(**members: object) -> bytes:
    """A message of more than the limit, its members in the order given."""
    filled = {name: "x" * MAX_LINE if value is ... else value for name, value in members.items()}
    return json.dumps(filled).encode()


@pytest.mark.proves("F84", "T26")
@pytest.mark.parametrize(
    ("message", "identifier"),
    [
        pytest.param(long(jsonrpc="2.0", id=7, method="a", params=...), 7, id="id first"),
        pytest.param(long(id="seven", jsonrpc="2.0", method="a", params=...), "seven", id="text id first"),
        pytest.param(long(method="a", params=..., jsonrpc="2.0", id=8), 8, id="id last"),
        pytest.param(long(method="a", params=..., id=-9, jsonrpc="2.0"), -9, id="id before the version at the end"),
        pytest.param(long(method="a", params=..., more={"id": 5}), None, id="only a deeper id"),
        pytest.param(long(jsonrpc="2.0", method="a", params=...), None, id="a notification"),
        pytest.param(b"x" * (MAX_LINE + 1), None, id="no JSON"),
        pytest.param(b'{"id":"\\q",' + b"x" * MAX_LINE, None, id="an escape that is none"),
        pytest.param(b'{"id":"\xff",' + b"x" * MAX_LINE, None, id="bytes that are no text"),
    ],
)
def test_a_line_that_is_too_long_is_passed_over_and_its_id_made_out(message: bytes, identifier: object) -> None:
    middle = len(message) // 2
    told = TooLong(identifier)  # pyright: ignore[reportArgumentType] -- rows of a table
    assert lines(message + b"\nnext\n") == [told, b"next"]
    assert lines(message[:10], message[10:middle], message[middle:], b"\nnext\n") == [told, b"next"]


@pytest.mark.proves("F84")
def test_of_a_line_that_is_too_long_only_the_ends_are_kept() -> None:
    decoder, chunk = LineDecoder(), b"x" * (MAX_LINE // 4)
    tracemalloc.start()
    try:
        for _ in range(40):
            decoder.feed(chunk)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
    assert most < 4 * MAX_LINE
