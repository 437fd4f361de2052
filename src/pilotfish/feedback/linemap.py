"""Where each line of an old text went in the new one.

Equal lines at both ends are paired first; what lies between is anchored on lines that occur once on each side
(the longest run of them that keeps its order), and the gaps between anchors are treated the same way.
This pairs blank lines and lone brackets by their surroundings, not with the nearest twin, and it is bounded:
n log n per level and `MAX_DEPTH` levels, however long or repetitive the texts are.

Invariant: pairs rise on both sides, and paired lines are equal.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct

MAX_DEPTH = 12
"""How deep gaps are searched for anchors. Real edits need two or three levels; a deeper gap counts as changed."""

_LINE_END = re.compile(r"\r\n|\r|\n")

Pair = tuple[int, int]


class LineMap(Struct, frozen=True):
    """`moved[i]` is the new number of old line `i`, None when it was changed or removed.

    `old_gaps` and `new_gaps` number the stretches between paired lines: a changed line of the old text and one of the
    new text belong to the same change when their gap is the same. None for a line that has a pair.
    """

    moved: tuple[int | None, ...]
    old_gaps: tuple[int | None, ...]
    new_gaps: tuple[int | None, ...]

    def new_line(self, line: int) -> int | None:
        """A line past the old end is as far past the new one."""
        if line < len(self.moved):
            return self.moved[line]
        return line - len(self.moved) + len(self.new_gaps)


def lines_of(text: str) -> list[str]:
    """The lines without their ends; LSP has three line ends."""
    return _LINE_END.split(text)


def line_map(old: Sequence[str], new: Sequence[str]) -> LineMap:
    moved: list[int | None] = [None] * len(old)
    unpaired: list[bool] = [True] * len(new)
    for before, after in _pairs(old, new):
        moved[before] = after
        unpaired[after] = False
    return LineMap(tuple(moved), _gaps([line is None for line in moved]), _gaps(unpaired))


def _gaps(unpaired: Sequence[bool]) -> tuple[int | None, ...]:
    """The number of paired lines before an unpaired one: the same on both sides, because pairs keep their order."""
    gaps: list[int | None] = []
    paired = 0
    for alone in unpaired:
        gaps.append(paired if alone else None)
        paired += not alone
    return tuple(gaps)


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[Pair]:
    waiting = [(0, len(old), 0, len(new), 0)]
    while waiting:
        old_start, old_end, new_start, new_end, depth = waiting.pop()
        while old_start < old_end and new_start < new_end and old[old_start] == new[new_start]:
            yield old_start, new_start
            old_start, new_start = old_start + 1, new_start + 1
        while old_start < old_end and new_start < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
            yield old_end, new_end
        if depth == MAX_DEPTH or old_start == old_end or new_start == new_end:
            continue
        anchors = _anchors(_once(old, old_start, old_end), _once(new, new_start, new_end))
        for anchor_old, anchor_new in anchors:
            waiting.append((old_start, anchor_old, new_start, anchor_new, depth + 1))
            yield anchor_old, anchor_new
            old_start, new_start = anchor_old + 1, anchor_new + 1
        if anchors:
            waiting.append((old_start, old_end, new_start, new_end, depth + 1))


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    """The lines that occur exactly once in the range, with their numbers, in order."""
    places: dict[str, int] = {}
    twice: set[str] = set()
    for number in range(start, end):
        line = lines[number]
        if line in places:
            twice.add(line)
        places[line] = number
    return {line: number for line, number in places.items() if line not in twice}


def _anchors(old: dict[str, int], new: dict[str, int]) -> list[Pair]:
    """The longest increasing sequence of pairs of lines that occur once on both sides."""
    tails: list[int] = []
    tail_pairs: list[int] = []
    pairs = [(number, new[line]) for line, number in old.items() if line in new]
    previous: list[int] = []
    for index, (_, number) in enumerate(pairs):
        place = bisect_left(tails, number)
        previous.append(tail_pairs[place - 1] if place else -1)
        tails[place : place + 1] = [number]
        tail_pairs[place : place + 1] = [index]
    longest: list[Pair] = []
    index = tail_pairs[-1] if tail_pairs else -1
    while index >= 0:
        longest.append(pairs[index])
        index = previous[index]
    return longest[::-1]
