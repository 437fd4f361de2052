"""The second implementation of everything about text: slow, one character at a time, and easy to believe.

It shares no code with `pilotfish.protocol` and no idea either: no index, no codec tricks, no sorting of edits.
Offsets count code points; `units` are those of the encoding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pilotfish.model import Encoding


@dataclass(frozen=True)
class NaiveEdit:
    """Replace the code points from `start` up to `end` of the original."""

    start: int
    end: int
    new_text: str


def lines(text: str) -> list[tuple[str, str]]:
    """Every line as (content, line ending); the last has none."""
    found: list[tuple[str, str]] = []
    content = ""
    index = 0
    while index < len(text):
        character = text[index]
        if character == "\r" and text[index + 1 : index + 2] == "\n":
            found.append((content, "\r\n"))
            content = ""
            index += 2
        elif character in {"\r", "\n"}:
            found.append((content, character))
            content = ""
            index += 1
        else:
            content += character
            index += 1
    return [*found, (content, "")]


def width(character: str, encoding: Encoding) -> int:
    """How many units one character takes, by the tables of the Unicode standard."""
    code = ord(character)
    match encoding:
        case Encoding.UTF8:
            return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        case Encoding.UTF16:
            return 1 if code < 0x10000 else 2
        case Encoding.UTF32:
            return 1


def units(string: str, encoding: Encoding) -> int:
    return sum(width(character, encoding) for character in string)


def place_from_units(text: str, line: int, character: int, encoding: Encoding) -> tuple[int, int]:
    """Line and code point of a server's position, brought inside the text and down to the start of a character."""
    all_lines = lines(text)
    if line >= len(all_lines):
        return len(all_lines) - 1, len(all_lines[-1][0])
    line = max(line, 0)
    passed = 0
    for index, candidate in enumerate(all_lines[line][0]):
        passed += width(candidate, encoding)
        if passed > character:
            return line, index
    return line, len(all_lines[line][0])


def offset(text: str, line: int, character: int) -> int:
    """How many code points stand before an existing place."""
    return sum(len(content) + len(ending) for content, ending in lines(text)[:line]) + character


def apply(text: str, edits: Sequence[NaiveEdit]) -> str | None:
    """Apply all edits to the original at once; None when two of them want the same character or the same gap's inside.

    Every character of the original remembers who removed it, every gap between characters what was put there.
    """
    removed_by: list[int | None] = [None] * len(text)
    put: list[list[str]] = [[] for _ in range(len(text) + 1)]
    for edit in edits:
        if edit.start == edit.end:
            put[edit.start].append(edit.new_text)
    for number, edit in enumerate(edits):
        for index in range(edit.start, edit.end):
            if removed_by[index] is not None:
                return None
            removed_by[index] = number
        if edit.start < edit.end:
            put[edit.start].append(edit.new_text)
    for edit in edits:
        inside = 0 < edit.start == edit.end < len(text)
        if inside and removed_by[edit.start] is not None and removed_by[edit.start - 1] == removed_by[edit.start]:
            return None
    kept = ["" if remover is not None else text[index] for index, remover in enumerate(removed_by)]
    return "".join("".join(put[index]) + kept[index] for index in range(len(text))) + "".join(put[len(text)])


def with_line_endings_of(text: str, inserted: str) -> str:
    """`inserted` with the line endings of `text`, where those are all of one kind; a lone carriage return stays."""
    kinds = {ending for _, ending in lines(text) if ending}
    if len(kinds) != 1:
        return inserted
    ours = kinds.pop()
    return "".join(content + (ours if ending in {"\n", "\r\n"} else ending) for content, ending in lines(inserted))
