"""Expectations in comments: `#@ loc(greet, "greet")`, `//@ definition("greet", greet), hover("greet", @greet)`.

An expectation speaks of its own line, or of the line above when the comment has a line to itself. The comments are no
part of the file that is tested: they are taken out, and lines are counted without them.

A string names a place: where that text first stands on the line. `"len(«name»)"` names a part of it by what stands
around. A bare word is a label made by `loc`; `@name` is a golden of the case. What each word means is decided in
`support.markers.expectations`.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

COMMENT = re.compile(r"(?P<space>\s*)(?:#|//|/\*|<!--)@\s*(?P<markers>.*?)\s*(?:-->|\*/)?$")
CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>(?:[^\"()]|\"(?:[^\"\\]|\\.)*\")*)\)\s*,?\s*")
ARGUMENT = re.compile(r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\")|@(?P<golden>\w+)|(?P<label>\w+))\s*(?:,|$)")


class Label(NamedTuple):
    name: str


class Golden(NamedTuple):
    name: str


Argument = str | Label | Golden


class Place(NamedTuple):
    """A range on one line of a file, 0-based, in code points."""

    file: str
    line: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line + 1}:{self.start + 1}-{self.end + 1}"


@dataclass(frozen=True)
class Marker:
    name: str
    arguments: tuple[Argument, ...]
    file: str
    line: int
    text: str
    """The line that it speaks of."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line + 1}: {self.name}{self.arguments}"

    def place(self, text: str) -> Place:
        """Where `text`, or the part of it in guillemets, stands on the line."""
        before, opened, rest = text.partition("«")
        inside, _, after = rest.partition("»") if opened else (text, "", "")
        before = before if opened else ""
        start = self.text.find(before + inside + after)
        assert start >= 0, f"{self}: the line does not hold {text!r}"
        return Place(self.file, self.line, start + len(before), start + len(before) + len(inside))


@dataclass(frozen=True)
class Marked:
    """A file without its markers, and the markers."""

    text: str
    markers: tuple[Marker, ...]


def marked(file: str, body: str) -> Marked:
    lines: list[str] = []
    found: list[Marker] = []
    for line in body.split("\n"):
        comment = COMMENT.search(line)
        if comment is None:
            lines.append(line)
            continue
        if comment.start():
            lines.append(line[: comment.start()])
        assert lines, f"{file}: there is no line above {line!r}"
        calls = _calls(comment["markers"], line)
        found += [Marker(name, arguments, file, len(lines) - 1, lines[-1]) for name, arguments in calls]
    return Marked("\n".join(lines), tuple(found))


def labels_of(markers: tuple[Marker, ...]) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for marker in markers:
        if marker.name == "loc":
            label, text = marker.arguments
            assert isinstance(label, Label), f"{marker}: loc(label, text)"
            assert isinstance(text, str), f"{marker}: loc(label, text)"
            assert label.name not in places, f"the label {label.name} is made twice"
            places[label.name] = marker.place(text)
    return places


def _calls(text: str, line: str) -> list[tuple[str, tuple[Argument, ...]]]:
    calls: list[tuple[str, tuple[Argument, ...]]] = []
    at = 0
    while at < len(text):
        call = CALL.match(text, at)
        assert call is not None, f"cannot read the marker {text[at:]!r} in {line!r}"
        calls.append((call["name"], _arguments(call["arguments"], line)))
        at = call.end()
    assert calls, f"no marker in {line!r}"
    return calls


def _arguments(text: str, line: str) -> tuple[Argument, ...]:
    values: list[Argument] = []
    at = 0
    while at < len(text):
        argument = ARGUMENT.match(text, at)
        assert argument is not None, f"cannot read the argument {text[at:]!r} in {line!r}"
        values.append(_value(argument))
        at = argument.end()
    return tuple(values)


def _value(argument: re.Match[str]) -> Argument:
    if argument["text"]:
        # A raw string: only a quotation mark needs its backslash, so that patterns read as they are.
        return argument["text"][1:-1].replace(r"\"", '"')
    return Golden(argument["golden"]) if argument["golden"] else Label(argument["label"])
