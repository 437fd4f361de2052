"""Lines carried from an old text to a new one."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.feedback.linemap import MAX_DEPTH, LineMap, line_map, lines_of

FEW_LINES = st.lists(st.sampled_from(["", "}", "x", "return", "y"]), max_size=14)


def mapped(old: str, new: str) -> list[int | None]:
    """One letter is one line."""
    return list(line_map(list(old), list(new)).moved)


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        pytest.param("abc", "abc", [0, 1, 2], id="unchanged"),
        pytest.param("abc", "xabc", [1, 2, 3], id="inserted above"),
        pytest.param("abc", "abxc", [0, 1, 3], id="inserted between"),
        pytest.param("abc", "ac", [0, None, 1], id="removed"),
        pytest.param("abc", "axc", [0, None, 2], id="changed"),
        pytest.param("abcde", "xbydz", [None, 1, None, 3, None], id="changed in three places"),
        pytest.param("abcdefz", "aefbcdz", [0, 3, 4, 5, None, None, 6], id="of two blocks the longer stays"),
        pytest.param("a}b}c}", "a}x}b}c}", [0, 1, 4, 5, 6, 7], id="lone brackets follow their surroundings"),
        pytest.param("", "ab", [], id="from nothing"),
        pytest.param("ab", "", [None, None], id="to nothing"),
    ],
)
def test_lines_are_found_again(old: str, new: str, moved: list[int | None]) -> None:
    assert mapped(old, new) == moved


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("", [""], id="empty"),
        pytest.param("a\r\nb\rc\nd", ["a", "b", "c", "d"], id="the three line ends"),
        pytest.param("a\x0bb\x0c\x85\u2028c\n", ["a\x0bb\x0c\x85\u2028c", ""], id="no others"),
    ],
)
def test_lines_end_as_the_protocol_says(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


def test_a_line_past_the_end_stays_as_far_past_it() -> None:
    lines = line_map(list("ab"), list("axb"))
    assert (lines.new_line(1), lines.new_line(2), lines.new_line(5)) == (2, 3, 6)


def test_changed_lines_of_one_change_share_a_gap() -> None:
    lines = line_map(list("abcde"), list("aXcYYe"))
    assert lines == LineMap((0, None, 2, None, 5), (None, 1, None, 2, None), (None, 1, None, 2, 2, None))


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        pytest.param(MAX_DEPTH, True, id="as deep as the bound"),
        pytest.param(MAX_DEPTH + 1, False, id="deeper stays a changed gap"),
    ],
)
def test_the_search_for_anchors_is_bounded(levels: int, found: bool) -> None:
    old, new = nested(0, levels, "o"), nested(0, levels, "n")
    assert (line_map(old, new).moved[old.index(str(levels - 1))] is not None) is found


def nested(level: int, levels: int, end: str) -> list[str]:
    """Lines of which only number `level` occurs once, and in the part before it only the next, and so on."""
    if level == levels:
        return [end]
    twins = [str(number) for number in range(level + 1, levels)]
    return [end, *nested(level + 1, levels, end), str(level), end, *twins, end]


@given(FEW_LINES, FEW_LINES)
def test_pairs_rise_and_are_equal(old: list[str], new: list[str]) -> None:
    assert rising_and_equal(old, new)


@given(FEW_LINES, FEW_LINES, FEW_LINES, FEW_LINES)
def test_one_change_leaves_all_lines_around_it_paired(
    head: list[str], gone: list[str], come: list[str], tail: list[str]
) -> None:
    lines = line_map([*head, *gone, *tail], [*head, *come, *tail])
    assert sum(line is not None for line in lines.moved) >= len(head) + len(tail)


@given(st.permutations(range(9)), st.sets(st.integers(0, 8)), st.sets(st.integers(9, 12)))
def test_of_lines_that_occur_once_as_many_are_paired_as_can_be(
    order: list[int], removed: set[int], added: set[int]
) -> None:
    old = [str(number) for number in range(9)]
    new = [str(number) for number in [*order, *added] if number not in removed]
    paired = sum(line is not None for line in line_map(old, new).moved)
    assert paired == longest_common(old, new)


def rising_and_equal(old: Sequence[str], new: Sequence[str]) -> bool:
    lines = line_map(old, new)
    pairs = [(number, line) for number, line in enumerate(lines.moved) if line is not None]
    unpaired = len(new) - len(pairs)
    return (
        all(old[before] == new[after] for before, after in pairs)
        and [after for _, after in pairs] == sorted({after for _, after in pairs})
        and sum(gap is not None for gap in lines.new_gaps) == unpaired
    )


def longest_common(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the longest common subsequence, by the textbook."""
    row = [0] * (len(new) + 1)
    for before in old:
        above = row
        row = [0]
        for number, after in enumerate(new):
            row.append(above[number] + 1 if before == after else max(above[number + 1], row[number]))
    return row[-1]
