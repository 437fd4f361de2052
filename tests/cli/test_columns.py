"""Source lines with a mark below: right for tabs, wide characters and emoji."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.surfaces.cli.terminal.table import TAB, Pointed, columns, pointed

pytestmark = pytest.mark.proves("CLI-1")

ROOM = 60


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        pytest.param("abc", 3, id="letters"),
        pytest.param("é", 1, id="one letter"),
        pytest.param("e\u0301", 1, id="letter and combining mark"),
        pytest.param("漢字", 4, id="wide"),
        pytest.param("ｶﾅ", 2, id="half width"),
        pytest.param("😀", 2, id="emoji"),
        pytest.param("❤", 1, id="a heart as text"),
        pytest.param("❤\ufe0f", 2, id="a heart as emoji"),
        pytest.param("👍🏽", 2, id="skin tone"),
        pytest.param("👩‍👩‍👧", 2, id="family"),
        pytest.param("🇫🇷", 2, id="flag"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_a_text_takes_as_many_columns_as_a_terminal_gives_it(text: str, taken: int) -> None:
    assert columns(text) == taken


@pytest.mark.parametrize(
    ("line", "start", "end", "source", "carets"),
    [
        pytest.param("x = greet(1)", 4, 9, "x = greet(1)", "    ^^^^^", id="plain"),
        pytest.param("    return x", 11, 12, "return x", "       ^", id="indented"),
        pytest.param("\treturn x", 8, 9, "return x", "       ^", id="indented with a tab"),
        pytest.param("a\tb\tc", 4, 5, "a   b   c", "        ^", id="tabs"),
        pytest.param("漢\tb", 2, 3, "漢  b", "    ^", id="a tab behind a wide character"),
        pytest.param('"😀", x', 5, 6, '"😀", x', "      ^", id="emoji before"),
        pytest.param('f("漢字")', 2, 6, 'f("漢字")', "  ^^^^^^", id="wide inside"),
        pytest.param("x = 1", 5, 5, "x = 1", "     ^", id="behind the end"),
        pytest.param("x = 1", 90, 95, "x = 1", "     ^", id="far behind the end"),
        pytest.param("", 0, 0, "", "^", id="empty line"),
        pytest.param("x\x1b[31m = y", 9, 10, "x = y", "    ^", id="terminal sequence before"),
    ],
)
def test_the_mark_stands_below_what_it_means(line: str, start: int, end: int, source: str, carets: str) -> None:
    mark = pointed(line, start, end, ROOM)
    assert (mark.source, mark.carets) == (source, carets)


def test_a_long_line_is_cut_around_the_mark() -> None:
    line = "a" * 100 + "XYZ" + "b" * 100
    mark = pointed(line, 100, 103, 30)
    assert mark == Pointed("…" + "a" * 26, "XYZ", "")
    mark = pointed(line, 10, 13, 30)
    assert mark.marked == "aaa"
    assert mark.source == "a" * 29 + "…"


CHARACTERS = st.sampled_from("ab \t漢😀e\u0301\x1b\x07\u202e;👩\u200d")


@given(st.text(CHARACTERS, max_size=40), st.integers(0, 45), st.integers(0, 45), st.integers(8, 50))
def test_whatever_the_line_it_fits_and_moves_no_cursor(line: str, one: int, other: int, room: int) -> None:
    mark = pointed(line, min(one, other), max(one, other), room)
    assert columns(mark.source) <= room
    assert not set(mark.source) & set("\t\x1b\x07\u202e\r\n")
    assert mark.carets.lstrip(" ") == "^" * max(1, columns(mark.marked))
    assert len(mark.carets) - len(mark.carets.lstrip(" ")) == columns(mark.before)


@given(st.text(st.sampled_from("ab\t"), max_size=30), st.integers(0, 30))
def test_tabs_go_where_a_terminal_puts_them(line: str, start: int) -> None:
    """A second opinion, by the standard library, for lines whose indentation cannot be in the way."""
    line = "x" + line
    start = min(start, len(line))
    mark = pointed(line, start, start + 1, 500)
    assert mark.before == line[:start].expandtabs(TAB)
