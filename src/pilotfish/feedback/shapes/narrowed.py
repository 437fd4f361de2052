"""The statements of a module of Python that an edit touched. Pure.

To read all of a module of a thousand lines for what others can see of it takes a tenth of a second, and an edit is
mostly one function. What stands before and behind the touched statements is the same text, so it says the same; but
each may change what the other one means, and where that is possible the caller reads everything:
- a name for `Final` and its like, given in one place, counts in the other (`renames_special`);
- a statement that never ends counts for all that follow (`Visible.flow`).
"""

import ast
import re
from collections.abc import Sequence

from pilotfish.feedback.shapes.parsing import STATEMENT, parsed
from pilotfish.feedback.shapes.python import VALUE_COUNTS

MAX_TRIES = 3
"""Lines that look as if a statement began there, from the edit outwards: a line of a long string does, too."""

_RENAMED = re.compile(rf"\b(?:{'|'.join(sorted(VALUE_COUNTS))})\b(?:[^\w#]|#.*)*\bas\b")

_BARE_RETURN = re.compile(r"\r(?!\n)")
"""It ends a line of Python, and none here."""


def renames_special(text: str) -> bool:
    return _RENAMED.search(text) is not None


def narrowed(before: str, after: str) -> tuple[ast.Module, ast.Module] | None:
    """The statements that differ; of a class with the same head, those in it. None where that cannot be told."""
    if _BARE_RETURN.search(before) or _BARE_RETURN.search(after):
        return None
    old, new = before.split("\n"), after.split("\n")
    head, tail = same_lines(old, new)
    first, rest = _begin(old, head), _rest(old, tail)
    if first is None or parsed("\n".join(old[len(old) - rest :])) is None:
        return None
    mine, its = (parsed("\n".join(lines[first : len(lines) - rest])) for lines in (old, new))
    if mine is None or its is None:
        return None
    _narrow_class(mine, its, head - first, tail - rest, (len(old) - rest - first, len(new) - rest - first))
    return mine, its


def same_lines(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many are the same at the begin, and at the end."""
    shortest = min(len(old), len(new))
    head = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    return head, next((at for at in range(shortest - head) if old[-1 - at] != new[-1 - at]), shortest - head)


def _begin(lines: list[str], head: int) -> int | None:
    """The last line up to this one at which a statement of the module begins; what is before it can be parsed."""
    places = [at for at in range(min(head, len(lines) - 1), -1, -1) if STATEMENT.match(lines[at])]
    return next((at for at in (*places[:MAX_TRIES], 0) if parsed("\n".join(lines[:at])) is not None), None)


def _rest(lines: list[str], tail: int) -> int:
    """How many lines at the end begin with a statement of the module, of those that are the same."""
    found = [at for at in range(len(lines) - tail, len(lines)) if STATEMENT.match(lines[at])]
    return len(lines) - found[0] if found else 0


def _narrow_class(old: ast.Module, new: ast.Module, head: int, tail: int, lengths: tuple[int, int]) -> None:
    """`head` and `tail`: lines that are the same at the begin and at the end of both."""
    match old.body, new.body:
        case [ast.ClassDef() as one], [ast.ClassDef() as other] if _said_of(one) == _said_of(other):
            before = min(sum((node.end_lineno or 0) <= head for node in each.body) for each in (one, other))
            behind = 0
            for mine, its in zip(reversed(one.body), reversed(other.body), strict=False):
                places = [length - _line(node) for length, node in zip(lengths, (mine, its), strict=True)]
                if places[0] != places[1] or places[0] >= tail or mine.col_offset != its.col_offset:
                    break
                behind += 1
            for each in (one, other):
                each.body = each.body[before : max(before, len(each.body) - behind)]
        case _:
            pass


def _said_of(node: ast.ClassDef) -> list[str]:
    parts = [*node.decorator_list, *node.bases, *node.keywords, *getattr(node, "type_params", [])]
    return [node.name, str(len(node.decorator_list)), str(len(node.bases)), *map(ast.dump, parts)]


def _line(node: ast.stmt) -> int:
    """Where it begins, with its decorators."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
