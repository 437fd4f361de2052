"""Which symbols of a file an edit has changed. Pure."""

import ast
import io
import tokenize
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from pilotfish.feedback.shapes.go import visible_tokens
from pilotfish.feedback.shapes.narrowed import narrowed, renames_special
from pilotfish.feedback.shapes.parsing import is_short, parsed, without_collections
from pilotfish.feedback.shapes.python import PYTHON, SymbolKey, Visible, visible_in, visible_of
from pilotfish.feedback.shapes.words import WORD, all_words
from pilotfish.model import AbsPath

_LEFT_OUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING})

EVERYTHING_SAYS = frozenset({"__getattr__", "__path__", "__dir__"})
"""Where one of these changes, a module may have other names than those that it says."""


MOST_OF_A_SIGNATURE = 60
"""Code points; a longer one says less than its name."""


class ChangedSymbols(Struct, frozen=True):
    """`all`: any name of the module may mean something else."""

    keys: frozenset[SymbolKey] = frozenset()
    all: bool = False
    returning: frozenset[SymbolKey] = frozenset()
    """Those of them of which a call may return now and did not, or the other way round."""
    structured: frozenset[str] = frozenset()
    """Classes that are changed, too, if they are made of their fields, or have to be what a base asks for."""
    swapped: frozenset[SymbolKey] = frozenset()
    """Those of them that came or are gone."""

    def __bool__(self) -> bool:
        return self.all or bool(self.keys)


ALL: SymbolKey = ("", "__all__")

NOTHING, EVERYTHING = ChangedSymbols(), ChangedSymbols(all=True)


@without_collections
def changed_symbols(before: str | None, after: str | None) -> ChangedSymbols:
    """Of Python; None: there is no such file, or nobody knows its text."""
    if before is None or after is None:
        return EVERYTHING
    if before == after:
        return NOTHING
    if (touched := touched_symbols(before, after)) is not None:
        return touched
    old, new = visible_of(before), visible_of(after)
    if old is None or new is None:
        return NOTHING if (tokens := _tokens(before)) is not None and tokens == _tokens(after) else EVERYTHING
    return difference(old, new)


def touched_symbols(before: str, after: str) -> ChangedSymbols | None:
    """By the statements that differ; None where more must be read."""
    if renames_special(before) or renames_special(after) or (pieces := narrowed(before, after)) is None:
        return None
    old, new = visible_in(pieces[0], before), visible_in(pieces[1], after)
    if old is None or new is None or old.flow != new.flow:
        return None
    found = difference(old, new)
    # What a module exports, and what a member means for its class, may be said in statements that were not touched.
    return None if ALL in found.keys or any(owner for owner, _ in found.keys) else found


def changed_text(before: str | None, after: str | None) -> ChangedSymbols:
    """Of a language that we have no parser for: the whole file is one symbol."""
    return NOTHING if before is not None and before == after else EVERYTHING


def changed_go(before: str | None, after: str | None) -> ChangedSymbols:
    """Of Go, a file is one symbol, too, and the bodies of its functions are no part of it."""
    old = None if before is None else visible_tokens(before)
    return NOTHING if old is not None and after is not None and old == visible_tokens(after) else EVERYTHING


def names_gone(path: AbsPath, before: str, after: str) -> frozenset[str]:
    """The names that a file defines no more; where there is no parser, that are no longer in it."""
    if path.endswith(PYTHON) and (old := visible_of(before)) is not None and (new := visible_of(after)) is not None:
        return frozenset(name for _, name in old.digests) - frozenset(name for _, name in new.digests)
    return frozenset(all_words(before)) - frozenset(all_words(after))


def old_signatures(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """The functions and classes of Python that were changed or are gone: how others call each, and how it was."""
    with suppress(RecursionError):
        old, new = _definitions(before), _definitions(after)
        return tuple(
            (name, shown)
            for key, (name, shown, written) in old.items()
            if (key not in new or (written and new[key][2] != written))
            and not (classes_of(key[0]) - {("", "")}) - new.keys()
        )
    return ()


def old_symbol(signatures: Iterable[tuple[str, str]], places: Iterable[str]) -> str:
    """What all of these places mention, as it was: `greet(name)`. Empty where that is not one thing."""
    said = [frozenset(WORD.findall(place)) for place in places]
    common = frozenset[str]().union(*said[:1]).intersection(*said)
    found = [shown for name, shown in signatures if name in common]
    return found[0] if len(found) == 1 else ""


@lru_cache(maxsize=4)
def _definitions(text: str) -> dict[SymbolKey, tuple[str, str, str]]:
    """The functions and classes of a module: the word that others call each by, how it is shown, and its signature."""
    found = dict[SymbolKey, tuple[str, str, str]]()
    # Others wait for this one.
    module = parsed(text) if is_short(text) else None
    inside: list[tuple[str, ast.stmt]] = [("", node) for node in module.body] if module else []
    for owner, node in inside:
        if isinstance(node, ast.ClassDef):
            found[owner, node.name] = node.name, node.name, ""
            inside += [(f"{owner}.{node.name}".removeprefix("."), each) for each in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = owner.rpartition(".")[2] if node.name == "__init__" else node.name
            written = ast.dump(node.args) + ast.dump(node.returns or node.args)
            found[owner, node.name] = name, _signature(name, node.args), written
    return found


def _signature(name: str, found: ast.arguments) -> str:
    """As a caller sees it: without types, and without the object itself."""
    for one in ast.walk(found):
        if isinstance(one, ast.arg):
            one.annotation = None
    if found.args and found.args[0].arg in {"self", "cls"}:
        del found.args[0]
    written = ast.unparse(found)
    return f"{name}({written})" if len(written) < MOST_OF_A_SIGNATURE else f"{name}(…)"


def difference(old: Visible, new: Visible) -> ChangedSymbols:
    keys = {key for key in old.digests.keys() | new.digests.keys() if old.digests.get(key) != new.digests.get(key)}
    if old.directives != new.directives or any(("", name) in keys for name in EVERYTHING_SAYS):
        return EVERYTHING
    if ALL in keys:
        if not old.exported or not new.exported or set(old.exported) == set(new.exported):
            return EVERYTHING
        keys |= {("", name) for name in set(old.exported) ^ set(new.exported)}
    come_or_gone = {key for key in keys if (key in old.digests) != (key in new.digests)}
    returning = {key for key in keys if old.returning.get(key) != new.returning.get(key)}
    lifting, fields, derived = old.lifting | new.lifting, old.fields | new.fields, old.derived | new.derived
    structured = {owner for owner, name in keys if (owner, name) in fields}
    structured |= {owner for owner, _ in come_or_gone if owner in derived}
    for key in keys & lifting:
        keys |= classes_of(key[0])
        returning |= classes_of(key[0]) if key in returning else set[SymbolKey]()
    swapped = frozenset(come_or_gone)
    return ChangedSymbols(
        frozenset(keys), returning=frozenset(returning), structured=frozenset(structured), swapped=swapped
    )


def classes_of(owner: str) -> set[SymbolKey]:
    """A class, and those around it."""
    outer, _, name = owner.rpartition(".")
    return {(outer, name)} | (classes_of(outer) if outer else set[SymbolKey]())


def _tokens(text: str) -> list[tuple[int, str]] | None:
    """Without comments and blank lines; None where even these cannot be told."""
    try:
        found = tokenize.generate_tokens(io.StringIO(text).readline)
        return [(token.type, token.string) for token in found if token.type not in _LEFT_OUT]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
