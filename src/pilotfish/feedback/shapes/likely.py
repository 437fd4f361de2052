"""The words by which others most likely mention what an edit changed. Pure.

They only decide for which of the files that may be affected an edit waits: what mentions none of these words may still
be broken, by an inferred type mostly, and is judged later. Of 49 files that 40 edits of httpx broke by the word of
basedpyright, 48 mention one; of the 1,125 that may be affected, 315 do.
"""

import ast
from collections.abc import Iterator, Sequence

from pilotfish.feedback.shapes.changes import ChangedSymbols, classes_of
from pilotfish.feedback.shapes.narrowed import same_lines
from pilotfish.feedback.shapes.parsing import parsed, without_collections
from pilotfish.feedback.shapes.python import FIELDS
from pilotfish.feedback.shapes.spread import is_told_by_class
from pilotfish.feedback.shapes.words import stored_names


def likely_words(changed: ChangedSymbols, before: str | None, after: str | None) -> frozenset[str] | None:
    """Of an edit of Python; None where any word may be one."""
    if not changed.all:
        # Of an object whose class is gone nothing is known, and of one whose class came nothing was.
        kept = (key for key in changed.keys if changed.swapped.isdisjoint(classes_of(key[0])))
        return frozenset(_word(*key) for key in kept) | {owner.rpartition(".")[2] for owner in changed.structured}
    return _touched_words(before, after) if before and after else None


def _word(owner: str, name: str) -> str:
    return owner.rpartition(".")[2] if is_told_by_class(owner, name) or name == FIELDS else name


@without_collections
def _touched_words(before: str, after: str) -> frozenset[str] | None:
    """What the touched lines define, by the one of the two texts that can be parsed."""
    head, tail = same_lines(before.split("\n"), after.split("\n"))
    for text in (before, after):
        if (module := parsed(text)) is not None:
            length = text.count("\n") + 1
            # Where lines came or went, the ones around them count.
            return frozenset(_defined(module.body, head, max(head + 1, length - tail + 1), "")) or None
    return None


def _defined(body: Sequence[ast.stmt], first: int, last: int, owner: str) -> Iterator[str]:
    """`first` and `last`: lines, counted from 1, between which something was touched."""
    for node in body:
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if start > last or (node.end_lineno or start) < first:
            continue
        if isinstance(node, ast.ClassDef):
            inside = list(_defined(node.body, first, last, node.name))
            yield from inside if inside and first + 1 >= node.body[0].lineno else [*inside, node.name]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _word(owner, node.name)
            yield from (
                one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
            )
        else:
            yield from stored_names(node)
