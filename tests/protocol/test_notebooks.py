"""A notebook as one text: lines and columns stay, cells are found again, magics become Python of no effect."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.model import AbsPath, Cell, Encoding, Position, Range, Severity
from pilotfish.protocol.codec import decode
from pilotfish.protocol.diagnostics import Report, diagnostics_of
from pilotfish.protocol.notebooks import (
    MAX_LISTS,
    MAX_TOKENS,
    NotANotebook,
    cell_at,
    code_bytes,
    code_of,
    is_allowed,
)
from pilotfish.protocol.positions import Text
from pilotfish.protocol.wire import WireDiagnostic


def notebook(*cells: tuple[str, str], **metadata: Any) -> str:
    listed = [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in cells]
    return json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4})


def code(*sources: str) -> str:
    return code_of(notebook(*(("code", source) for source in sources)))


def spot(text: str, words: str) -> Range:
    """Where words stand in a text, for the first time."""
    before = text[: text.index(words)]
    line, character = before.count("\n"), len(before.rpartition("\n")[2])
    return Range(Position(line, character), Position(line, character + len(words)))


def test_code_cells_follow_each_other_and_keep_the_numbers_that_people_count() -> None:
    text = code_of(notebook(("markdown", "# Title\n"), ("code", "a = 1\nb = 2"), ("raw", "x"), ("code", "c = 3\n")))
    assert text == "# %% [cell 2]\na = 1\nb = 2\n# %% [cell 4]\nc = 3\n\n"
    assert cell_at(text, spot(text, "b = 2").start.line) == Cell(2, 1)
    assert cell_at(text, spot(text, "c = 3").start.line) == Cell(4, 4)


def test_a_source_may_be_one_string() -> None:
    cell = {"cell_type": "code", "source": "a = 1\r\nb = 2"}
    assert code_of(json.dumps({"cells": [cell]})) == "# %% [cell 1]\na = 1\nb = 2\n"


def test_a_line_that_looks_like_the_number_of_a_cell_is_none() -> None:
    text = code("# %% [cell 7]\na = 1")
    assert cell_at(text, spot(text, "a = 1").start.line) == Cell(1, 1)


def test_an_empty_file_is_an_empty_notebook() -> None:
    assert code_of("") == ""
    assert code_of(notebook()) == ""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no list of cells"),
        ('{"worksheets": []}', "no list of cells"),
        (notebook(kernelspec={"language": "R"}), "its cells are in r"),
        (notebook(language_info={"name": "julia"}), "its cells are in julia"),
    ],
)
def test_what_is_no_notebook_of_python_is_said(content: str, why: str) -> None:
    with pytest.raises(NotANotebook, match=why):
        code_of(content)


@pytest.mark.parametrize(
    "metadata",
    [{}, {"kernelspec": {"language": "python"}}, {"language_info": {"name": "Python"}}, {"kernelspec": 3}],
    ids=json.dumps,
)
def test_a_kernel_without_a_language_has_python(metadata: dict[str, Any]) -> None:
    assert "a = 1" in code_of(notebook(("code", "a = 1"), **metadata))


MAGICS = {
    "%matplotlib inline": "pass",
    "!pip install x": "pass",
    "    !ls": "    pass",
    "?print": "pass",
    "print?": "pass",
    "a.b??": "pass",
    "files = !ls": 'files = globals()[""]',
    "a, b = %run x": 'a, b = globals()[""]',
    "!ls \\\n  -l\nx = 1": "pass\n\nx = 1",
    "%%time\nx = 1": "pass\nx = 1",
    "%%capture out\nx = 1": "pass\nx = 1",
    "\n%%bash\necho $X": "\npass\n",
    "%%html": "pass",
}


@pytest.mark.parametrize("source", MAGICS)
def test_magics_and_shell_commands_become_python(source: str) -> None:
    assert code(source) == f"# %% [cell 1]\n{MAGICS[source]}\n"


PYTHON = [
    "x = (3\n  % 2)",
    "x = [\n  1, # (\n  3\n  % 2]",
    "x = 3 \\\n  % 2",
    '"""\n%not a magic\n!nor a command\n"""',
    "x = '(' \ny = 3",
    "x = y != 3",
    "print(f'{x}')  # really?",
    "f'''\n!x'''",
]


@pytest.mark.parametrize("source", PYTHON)
def test_python_stays_as_it_is(source: str) -> None:
    assert code(source) == f"# %% [cell 1]\n{source}\n"


def test_awaits_outside_of_functions_are_allowed_and_others_are_not() -> None:
    text = code("r = await f()", "async for x in y:\n    await g()\né = 1; await h()", "def k():\n    return await i()")
    for words in ("await f()", "async for", "await g()", "await h()"):
        assert is_allowed(text, spot(text, words), Severity.ERROR), words
    assert not is_allowed(text, spot(text, "await i()"), Severity.ERROR)
    assert not is_allowed(text, spot(text, "f()"), Severity.ERROR)


def test_an_expression_that_ends_a_cell_is_shown_there_and_may_be_warned_of_elsewhere() -> None:
    text = code("x = 1\nx", "x\ny = 1", "broken(")
    assert is_allowed(text, Range(Position(2, 0), Position(2, 1)), Severity.WARNING)
    assert not is_allowed(text, Range(Position(2, 0), Position(2, 1)), Severity.ERROR), "an unknown name"
    assert not is_allowed(text, Range(Position(4, 0), Position(4, 1)), Severity.WARNING)


def test_what_is_searched_for_words_is_the_code() -> None:
    content = notebook(("code", "\tgreet()")).encode()
    assert code_bytes("/w/a.ipynb", content) == b"# %% [cell 1]\n\tgreet()\n"
    assert code_bytes("/w/a.py", content) == content
    assert code_bytes("/w/a.ipynb", b"\xff") == b"\xff"


@given(st.lists(st.text(alphabet="ab=%!?#'\"()[]\\\n\t 1é", max_size=40), max_size=4))
def test_every_line_of_every_cell_is_found_again(sources: list[str]) -> None:
    text = code(*sources)
    lines = text.split("\n")
    for number, source in enumerate(sources, 1):
        first = lines.index(f"# %% [cell {number}]") + 1
        for line in range(len(source.split("\n"))):
            assert cell_at(text, first + line) == Cell(number, first)


@given(st.text(alphabet="ab=%!?#'\"()[]\\\n 1é", max_size=60))
def test_a_cell_that_is_python_is_left_alone(source: str) -> None:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return
    assert code(source) == f"# %% [cell 1]\n{source}\n"


def test_a_diagnostic_names_its_cell_and_what_a_notebook_may_do_is_none() -> None:
    text = code("a = 1", "await a\nb = c")
    found = [
        {"range": wire_range(spot(text, words)), "message": words, "severity": 1} for words in ("await a", "b = c")
    ]
    report = Report(tuple(decode(json.dumps(one).encode(), WireDiagnostic) for one in found), 1, 1)
    path = AbsPath("/w/a.ipynb")
    (only,) = diagnostics_of(report, text=Text(text), encoding=Encoding.UTF16, server="s", path=path)
    assert (only.message, only.cell) == ("b = c", cell_at(text, only.range.start.line))


def wire_range(place: Range) -> dict[str, dict[str, int]]:
    ends = (("start", place.start), ("end", place.end))
    return {name: {"line": at.line, "character": at.character} for name, at in ends}


def test_a_notebook_has_lists_and_code_within_bounds() -> None:
    with pytest.raises(NotANotebook, match="lists"):
        code_of('{"cells": [' + "[]," * MAX_LISTS + "[]]}")
    cell = "# %% [cell 1]\nawait a\n"
    place = Range(Position(1, 0), Position(1, 7))
    assert is_allowed(cell, place, Severity.ERROR)
    assert not is_allowed(cell + "a\n" * MAX_TOKENS, place, Severity.ERROR)
