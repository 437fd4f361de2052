"""Newline framing: any chunking gives the same lines, and one that is too long costs nothing but itself."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.protocol.frames import LineDecoder
from pilotfish.surfaces.mcp.streams import MAX_LINE


def lines(*chunks: bytes) -> list[bytes | None]:
    decoder = LineDecoder(MAX_LINE)
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


@pytest.mark.proves("F84", "T26")
def test_a_line_that_is_too_long_is_passed_over() -> None:
    message = b"x" * (MAX_LINE + 1)
    assert lines(message + b"\nnext\n") == [None, b"next"]
    assert lines(message[:10], message[10:99], message[99:], b"\nnext\n") == [None, b"next"]
    assert lines(message[1:] + b"\n") == [message[1:]]


@pytest.mark.proves("F84")
def test_of_a_line_that_is_too_long_nothing_is_kept() -> None:
    decoder, chunk = LineDecoder(MAX_LINE), b"x" * (MAX_LINE // 4)
    tracemalloc.start()
    try:
        for _ in range(40):
            decoder.feed(chunk)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
    assert most < 4 * MAX_LINE
