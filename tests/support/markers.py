"""Expectations in comments: `#@ loc(greet, "greet")`, `//@ definition("greet", greet), hover("greet", @greet)`.

An expectation speaks of its own line, or of the line above when the comment has a line to itself.
A string names a place: where that text first stands on the line. A bare word is a label made by `loc`; `@name` is a
golden of the case. What each word means is decided by whoever checks it (`support.via`).
"""

import ast
import re
from dataclasses import dataclass
from typing import NamedTuple

COMMENT = re.compile(r"(?:#|//|--|;|%|<!--|/\*)@\s*(?P<markers>.*?)\s*(?:-->|\*/)?$")
CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>(?:[^\"()]|\"(?:[^\"\\]|\\.)*\")*)\)\s*,?\s*")
ARGUMENT = re.compile(r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\")|@(?P<golden>\w+)|(?P<label>\w+))\s*,?")


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


@dataclass(frozen=True)
class Marker:
    name: str
    arguments: tuple[Argument, ...]
    file: str
    line: int
    text: str
    """The line that it speaks of."""

    def place(self, text: str) -> Place:
        """Where `text` stands on the line."""
        start = self.text.find(text)
        assert start >= 0, f"{self}: the line does not hold {text!r}"
        return Place(self.file, self.line, start, start + len(text))


def markers_of(file: str, text: str) -> list[Marker]:
    lines = text.split("\n")
    found: list[Marker] = []
    for number, line in enumerate(lines):
        comment = COMMENT.search(line)
        if comment is None:
            continue
        alone = not line[: comment.start()].strip()
        about = number - 1 if alone else number
        found += [
            Marker(name, arguments, file, about, lines[about]) for name, arguments in _calls(comment["markers"], line)
        ]
    return found


def labels_of(markers: list[Marker]) -> dict[str, Place]:
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
        calls.append((call["name"], _arguments(call["arguments"])))
        at = call.end()
    return calls


def _arguments(text: str) -> tuple[Argument, ...]:
    values: list[Argument] = []
    for match in ARGUMENT.finditer(text):
        if match["text"]:
            values.append(str(ast.literal_eval(match["text"])))
        elif match["golden"]:
            values.append(Golden(match["golden"]))
        else:
            values.append(Label(match["label"]))
    return tuple(values)
