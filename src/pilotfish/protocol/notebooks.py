"""Notebooks (`.ipynb`) as one text: the code cells one after the other, each below a line that numbers it.

Servers are sent this text under the notebook's own URI. Which cell a line belongs to follows from the text alone, so a
notebook needs nothing that another file does not: `cell_at` looks for the number above a line.
Lines and columns of a cell stay as they are. What IPython understands and Python does not becomes Python of no effect:
magics and shell commands become `pass`, their results `globals()[""]`, which is of any type, and a cell in another
language (`%%bash`) is left out. `is_allowed` knows what servers complain of and a notebook may do: `await` outside of
functions, and an expression at the end of a cell, which is shown there.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pilotfish.model import Cell, Position, Range, Severity
from pilotfish.protocol.codec import items, member

EXTENSION = ".ipynb"

LANGUAGE = "python"
"""Of the cells that can be checked; a kernel that names none has it, too."""

PYTHON_CELLS = frozenset({"capture", "prun", "time", "timeit"})
"""Magics of a whole cell that run the rest of it as Python in the notebook itself."""

MAX_LISTS = 100_000
"""Of a notebook: the reader of JSON lets nothing else run while it makes them."""

MAX_TOKENS = 12_000
"""In which awaits and results are looked for; what is in the cells behind them is not allowed for. Others wait for 7 µs
a token at worst, and for twice that where it may have accents to be brought into order."""

_TOKEN = re.compile(r"\w+|[^\w \t]")
_NUMBER = re.compile(r"^# %% \[cell (\d+)\]$", re.MULTILINE)
_MAGIC = re.compile(r"(\s*)(?:[%!?]|[\w.*]+\?{1,2}\s*$)")
_MAGIC_RESULT = re.compile(r"(\s*[\w.,\[\] ]+=\s*)[%!]")
_BRACKETS = re.compile(
    r"#.*|(?P<long>\"{3}|'{3})|\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?|(?P<open>[(\[{])|(?P<close>[)\]}])"
)


class NotANotebook(Exception):
    """The text is no notebook of Python cells; the message says what it is."""


def is_notebook(path: str) -> bool:
    return path.endswith(EXTENSION)


def code_of(notebook: str) -> str:
    """The text of all code cells; raises `NotANotebook`. An empty file has none."""
    if not notebook.strip():
        return ""
    if notebook.count("[") > MAX_LISTS:
        raise NotANotebook(f"it has more than {MAX_LISTS:,} lists")
    try:
        # Nobody needs its numbers, of which there may be millions: each is a turn for other threads.
        content: object = json.loads(notebook, parse_int=lambda _: None, parse_float=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise NotANotebook(f"it is not JSON: {error}") from error
    if not isinstance(member(content, "cells"), list):
        raise NotANotebook("it has no list of cells")
    metadata = member(content, "metadata")
    named = (member(metadata, "kernelspec", "language"), member(metadata, "language_info", "name"))
    language = next((word.casefold() for word in named if isinstance(word, str)), LANGUAGE)
    if language != LANGUAGE:
        raise NotANotebook(f"its cells are in {language}")
    sources = [_source(cell) for cell in items(member(content, "cells"))]
    return "".join(_numbered(number, source) for number, source in enumerate(sources, 1) if source is not None)


def code_bytes(path: str, content: bytes) -> bytes:
    """What is searched for words in a file: of a notebook that can be read, its code."""
    if not is_notebook(path):
        return content
    try:
        return code_of(content.decode()).encode()
    except (NotANotebook, UnicodeError):
        return content


def cell_at(text: str, line: int) -> Cell | None:
    """The cell that a line of such a text belongs to."""
    return next((cell for cell in reversed(_cells(text)) if cell.first_line <= line), None)


def is_allowed(text: str, place: Range, severity: Severity) -> bool:
    """Whether a notebook may have there what a server complains of."""
    awaits, ends = _allowances(text)
    return place.start in awaits or (severity > Severity.ERROR and place in ends)


# --- Reading a notebook ---------------------------------------------------------------------------------------------


def _source(cell: object) -> str | None:
    """The lines of a code cell; None for any other."""
    source = member(cell, "source")
    if isinstance(source, list):
        source = "".join(part for part in items(member(cell, "source")) if isinstance(part, str))
    return source if member(cell, "cell_type") == "code" and isinstance(source, str) else None


def _numbered(number: int, source: str) -> str:
    lines = re.split(r"\r\n?|\n", source)
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        name = lines[first][2:].split()[:1]
        rest = lines[first + 1 :] if name and name[0] in PYTHON_CELLS else [""] * (len(lines) - first - 1)
        lines = [*lines[:first], "pass", *rest]
    # A line that would be taken for the number of a cell gets a blank at its end.
    plain = (line + " " if _NUMBER.match(line) else line for line in _without_magics(lines))
    return "\n".join([f"# %% [cell {number}]", *plain, ""])


# --- What IPython adds to Python ------------------------------------------------------------------------------------


def _without_magics(lines: Sequence[str]) -> Iterator[str]:
    depth, quote, is_continued, is_magic = 0, "", False, False
    for line in lines:
        if is_continued and is_magic:
            yield ""
        elif not (depth or quote or is_continued) and (found := _MAGIC.match(line)):
            is_magic = True
            yield f"{found[1]}pass"
        elif not (depth or quote or is_continued) and (found := _MAGIC_RESULT.match(line)):
            is_magic = True
            yield f'{found[1]}globals()[""]'
        else:
            is_magic = False
            depth, quote = _open_after(line, depth, quote)
            yield line
        is_continued = line.endswith("\\")


def _open_after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets are open after a line, and the quotes of a string that goes on."""
    at = 0
    while True:
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return depth, quote
            at, quote = end + len(quote), ""
        found = _BRACKETS.search(line, at)
        if found is None:
            return depth, ""
        at, quote = found.end(), found["long"] or ""
        depth = max(0, depth + bool(found["open"]) - bool(found["close"]))


# --- Cells and what they allow --------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _cells(text: str) -> tuple[Cell, ...]:
    lines = text.split("\n")
    numbers = ((line, _NUMBER.match(words)) for line, words in enumerate(lines))
    return tuple(Cell(int(found[1]), line + 1) for line, found in numbers if found is not None)


@lru_cache(maxsize=16)
def _allowances(text: str) -> tuple[frozenset[Position], frozenset[Range]]:
    """Where awaits outside of functions begin, and the expressions at the ends of cells."""
    lines, cells = text.split("\n"), _cells(text)
    awaits, ends, tokens = set[Position](), set[Range](), 0
    for cell, following in zip(cells, (*cells[1:], None), strict=True):
        own = lines[cell.first_line : None if following is None else following.first_line - 1]
        tokens += sum(len(_TOKEN.findall(line)) * (1 if line.isascii() else 2) + 1 for line in own)
        if tokens > MAX_TOKENS:
            break
        module = _parsed("\n".join(own))
        awaits |= {_place(own, cell, node.lineno, node.col_offset) for node in _awaits(module)}
        if module.body and isinstance(last := module.body[-1], ast.Expr):
            node = last.value
            end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
            ends.add(Range(_place(own, cell, node.lineno, node.col_offset), _place(own, cell, *end)))
    return frozenset(awaits), frozenset(ends)


def _parsed(source: str) -> ast.Module:
    """A cell; one that is not Python is as good as empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = compile(source, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            found = None
    return found if isinstance(found, ast.Module) else ast.Module([], [])


def _awaits(module: ast.Module) -> Iterator[ast.Await | ast.AsyncFor | ast.AsyncWith]:
    """Outside of functions."""
    left: list[ast.AST] = [module]
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield node
        left += ast.iter_child_nodes(node)


def _place(lines: Sequence[str], cell: Cell, line: int, offset: int) -> Position:
    """A place in a cell that `ast` counts in bytes, from line 1."""
    return Position(cell.first_line + line - 1, len(lines[line - 1].encode()[:offset].decode(errors="ignore")))
