"""Answers as people read them on a terminal."""

from collections.abc import Iterable
from typing import Any

import click
import pytest

from pilotfish.api.answers import (
    Action,
    Changes,
    Diagnostic,
    Edge,
    Effort,
    Error,
    Feedback,
    FileChange,
    HierarchyItem,
    Hover,
    Point,
    Span,
    State,
    Symbol,
    answer_from,
)
from pilotfish.api.questions import Operation
from pilotfish.errors import Code
from pilotfish.surfaces.cli.terminal.answers import Screen, answer_lines
from pilotfish.surfaces.cli.terminal.check_text import CheckOptions, check_lines
from support.services.cli_workspace import diagnostic, fresh, place

pytestmark = pytest.mark.proves("CLI-1")

EVERYTHING = CheckOptions(everything=True)

SOURCE = {"a.py": ["import os", '\tx = "😀"; greet(1)'], "b.py": ["\x1b[31mred = 1"]}


def line_of(path: str, line: int) -> str | None:
    lines = SOURCE.get(path, [])
    return lines[line - 1] if line <= len(lines) else None


SCREEN = Screen(80, line_of)


def plain(lines: Iterable[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_places_are_grouped_by_file_with_their_source() -> None:
    found = fresh(
        Operation.REFERENCES,
        (
            place("a.py", 1, 5, text="def greet():"),
            place("a.py", 9, 2, text="\tgreet()"),
            place("lib/b.py", 3, 1, external=True),
        ),
    )
    assert plain(answer_lines(found, SCREEN)) == [
        "a.py",
        "  1:5",
        "    def greet():",
        "        ^^^^^",
        "  9:2",
        "    greet()",
        "    ^^^^^",
        "lib/b.py (external)",
        "  3:1",
    ]


def test_a_person_reads_the_characters_that_a_model_reads_escaped() -> None:
    told = Feedback("ERROR [1:1] wants (int) -&gt; str &amp;lt;", State.FRESH, 3)
    diff = FileChange(path="a.py", kind="edit", edits=1, diff="-a &lt; b\n+a < b\n")
    shown = plain(answer_lines(fresh(Operation.RENAME, Changes(True, (diff,), feedback=told)), SCREEN))
    assert "ERROR [1:1] wants (int) -> str &lt;" in "\n".join(shown)
    assert "-a &lt; b" in "\n".join(shown)


def test_symbols_and_calls_say_what_is_there() -> None:
    symbol = Symbol(
        path="a.py",
        line=1,
        character=7,
        end_line=1,
        end_character=10,
        name="greet",
        kind="method",
        container="Host",
    )
    assert plain(answer_lines(fresh(Operation.WORKSPACE_SYMBOL, (symbol,)), SCREEN)) == [
        "a.py",
        "  1:7  method greet in Host",
    ]
    span = Span(Point(0, 0), Point(0, 1))
    caller = HierarchyItem(
        name="main", uri="file:///w/a.py", range=span, selection_range=span, kind=12, location=place("a.py", 1, 1)
    )
    edge = Edge(calls=(place("a.py", 2, 3, text="  greet()"),), caller=caller)
    assert plain(answer_lines(fresh(Operation.INCOMING_CALLS, (edge,)), SCREEN)) == [
        "a.py",
        "  1:1  function main",
        "  2:3  call",
        "    greet()",
        "    ^^^^^",
    ]


def test_a_cut_source_line_has_no_mark() -> None:
    found = fresh(Operation.DEFINITION, (place(text="…and so on"),))
    assert plain(answer_lines(found, SCREEN)) == ["a.py", "  1:5"]


def test_a_diff_is_shown_as_it_is() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-greet\n+hello\n"
    changes = Changes(applied=False, files=(FileChange("a.py", edits=1, diff=diff),))
    lines = [*answer_lines(fresh(Operation.RENAME, changes), SCREEN)]
    assert plain(lines)[1:] == diff.splitlines()
    assert click.style("+hello", fg="green") in lines
    assert click.style("-greet", fg="red") in lines


def test_a_diagnostic_stands_above_its_source() -> None:
    data = {
        "a.py": (
            diagnostic(2, 11, end_character=16, message="no\n  such name", code="E1"),
            diagnostic(1, 1, severity="warning", end_character=3, introduced=True),
        ),
        "clean.py": (),
    }
    assert plain(check_lines(fresh(Operation.DIAGNOSTICS, data), EVERYTHING, SCREEN)) == [
        "a.py",
        "  2:11 error  no  fakels (E1)",
        "      such name",
        '    x = "😀"; greet(1)',
        "              ^^^^^",
        "  1:1 warning new  wrong  fakels",
        "    import os",
        "    ^^",
        "1 error, 1 warning in 1 of 2 files. (0.0 s)",
    ]


def test_what_a_server_or_file_says_cannot_reach_the_terminal() -> None:
    data = {"b.py": (diagnostic(1, 6, message="\x1b]0;title\x07bad", code="\x1b[2J"),)}
    lines = [*check_lines(fresh(Operation.DIAGNOSTICS, data), EVERYTHING, SCREEN)]
    assert not any("\x1b]" in line or "\x07" in line or "\x1b[2J" in line for line in lines)
    assert plain(lines)[2:4] == ["    red = 1", "    ^^^"]


@pytest.mark.parametrize(
    ("effort", "expected"),
    [
        pytest.param(Effort(server_hits=1), ["No problems in 1 file. (0.0 s)"], id="fresh"),
        pytest.param(
            Effort(server_hits=1, caveats=("ruff is still indexing",)),
            ["partial: ruff is still indexing", "No problems found so far in 1 file. (0.0 s)"],
            id="partial",
        ),
        pytest.param(
            Effort(errors=(Error("ruff", "crashed", Code.SERVER_CRASHED),)),
            ["unavailable: ruff: crashed"],
            id="unavailable",
        ),
        pytest.param(
            Effort(server_hits=1, caveats=("slow",), errors=(Error("ty", "crashed", Code.SERVER_CRASHED),)),
            ["partial: slow", "ty: crashed", "No problems found so far in 1 file. (0.0 s)"],
            id="an error beside a reason",
        ),
        pytest.param(
            Effort(server_hits=1, warnings=("2 hints",)), ["note: 2 hints", "No problems in 1 file. (0.0 s)"], id="note"
        ),
    ],
)
@pytest.mark.proves("OPS-6")
def test_only_what_is_known_to_be_clean_is_called_clean(effort: Effort, expected: list[str]) -> None:
    data: dict[str, tuple[Diagnostic, ...]] = {"a.py": ()}
    assert plain(check_lines(answer_from(Operation.DIAGNOSTICS, data, effort), EVERYTHING, SCREEN)) == expected


@pytest.mark.parametrize(
    ("data", "operation", "expected"),
    [
        pytest.param((), Operation.DEFINITION, ["No results found."], id="nothing"),
        pytest.param(Hover(("int",)), Operation.HOVER, ["int"], id="hover"),
        pytest.param((Action(1, "Fix", "ruff"),), Operation.CODE_ACTIONS, ["1. Fix"], id="actions"),
    ],
)
def test_what_has_no_source_is_shown_as_models_read_it(data: Any, operation: Operation, expected: list[str]) -> None:
    assert plain(answer_lines(fresh(operation, data), SCREEN)) == expected
