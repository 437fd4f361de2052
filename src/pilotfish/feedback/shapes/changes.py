"""Which symbols of a file an edit has changed, and by which words others most likely mention these. Pure."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from pilotfish.feedback.shapes.parsing import is_short, parsed, without_collections
from pilotfish.feedback.shapes.python import ALL, FIELDS, PYTHON, SymbolKey, Visible, is_told_by_class, visible_of
from pilotfish.feedback.shapes.words import WORD, all_words, stored_names
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


NOTHING, EVERYTHING = ChangedSymbols(), ChangedSymbols(all=True)


@without_collections
def changed_symbols(path: AbsPath, before: str | None, after: str | None) -> ChangedSymbols:
    """None: there is no such file, or nobody knows its text. Where we have no parser, the whole file is one symbol."""
    if before is None or after is None:
        return EVERYTHING
    if before == after:
        return NOTHING
    if path.endswith(GO):
        return NOTHING if (old := _visible_go(before)) is not None and old == _visible_go(after) else EVERYTHING
    if not path.endswith(PYTHON):
        return EVERYTHING
    old, new = visible_of(before), visible_of(after)
    if old is None or new is None:
        return NOTHING if (tokens := _tokens(before)) is not None and tokens == _tokens(after) else EVERYTHING
    return _difference(old, new)


def _difference(old: Visible, new: Visible) -> ChangedSymbols:
    keys = {key for key in old.digests.keys() | new.digests.keys() if old.digests.get(key) != new.digests.get(key)}
    if old.directives != new.directives or any(("", name) in keys for name in EVERYTHING_SAYS):
        return EVERYTHING
    if ALL in keys:
        if not old.exported or not new.exported or set(old.exported) == set(new.exported):
            return EVERYTHING
        keys |= {("", name) for name in set(old.exported) ^ set(new.exported)}
    swapped = frozenset(key for key in keys if (key in old.digests) != (key in new.digests))
    returning = {key for key in keys if old.returning.get(key) != new.returning.get(key)}
    lifting, fields, derived = old.lifting | new.lifting, old.fields | new.fields, old.derived | new.derived
    structured = {owner for owner, name in keys if (owner, name) in fields}
    structured |= {owner for owner, _ in swapped if owner in derived}
    for key in keys & lifting:
        keys |= _classes_of(key[0])
        returning |= _classes_of(key[0]) if key in returning else set[SymbolKey]()
    marks = frozenset(returning), frozenset(structured)
    return ChangedSymbols(frozenset(keys), returning=marks[0], structured=marks[1], swapped=swapped)


def _classes_of(owner: str) -> set[SymbolKey]:
    """A class, and those around it."""
    outer, _, name = owner.rpartition(".")
    return {(outer, name)} | (_classes_of(outer) if outer else set[SymbolKey]())


def _tokens(text: str) -> list[tuple[int, str]] | None:
    """Without comments and blank lines; None where even these cannot be told."""
    try:
        found = tokenize.generate_tokens(io.StringIO(text).readline)
        return [(token.type, token.string) for token in found if token.type not in _LEFT_OUT]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None


# --- How the change is spoken of --------------------------------------------------------------------------------------


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
            and not (_classes_of(key[0]) - {("", "")}) - new.keys()
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


# --- The words by which others mention it -----------------------------------------------------------------------------


@without_collections
def likely_words(changed: ChangedSymbols, before: str | None, after: str | None) -> frozenset[str] | None:
    """Of an edit of Python; None where any word may be one.

    They only decide for which of the files that may be affected an edit waits: what mentions none of these words may
    still be broken, by an inferred type mostly, and is judged later. Of 49 files that 40 edits of httpx broke by the
    word of basedpyright, 48 mention one; of the 1,125 that may be affected, 315 do.
    """
    if not changed.all:
        # Of an object whose class is gone nothing is known, and of one whose class came nothing was.
        kept = (key for key in changed.keys if changed.swapped.isdisjoint(_classes_of(key[0])))
        return frozenset(_word(*key) for key in kept) | {owner.rpartition(".")[2] for owner in changed.structured}
    if not before or not after:
        return None
    old, new = before.split("\n"), after.split("\n")
    shortest = min(len(old), len(new))
    head = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    tail = next((at for at in range(shortest - head) if old[-1 - at] != new[-1 - at]), shortest - head)
    # What the touched lines define, by the one of the two texts that can be parsed.
    for text, lines in ((before, old), (after, new)):
        if (module := parsed(text)) is not None:
            # Where lines came or went, the ones around them count.
            return frozenset(_defined(module.body, head, max(head + 1, len(lines) - tail + 1), "")) or None
    return None


def _word(owner: str, name: str) -> str:
    return owner.rpartition(".")[2] if is_told_by_class(owner, name) or name == FIELDS else name


def _defined(body: Sequence[ast.stmt], first: int, last: int, owner: str) -> Iterator[str]:
    """`first` and `last`: lines, counted from 1, between which something was touched."""
    for node in body:
        begin = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if begin > last or (node.end_lineno or begin) < first:
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


# --- Go ---------------------------------------------------------------------------------------------------------------

GO = (".go",)

MAX_CHARACTERS = 256 * 1024
"""A longer file counts as a whole."""

# What stays open ends with its line or its file: no text is looked through twice.
_GO_TOKEN = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|`[^`]*`?)|(?P<remark>//[^\n]*|/\*(?:[\s\S]*?\*/|[\s\S]*))"
    r"|(?P<blank>[ \t\r]+)|(?P<other>\w+|\n|.)"
)

_DIRECTIVE = re.compile(r"//(?:go:|export |line )")
"""Remarks that mean something for what follows; those before the package may do so for the whole file."""

_PACKAGE = re.compile(r"^package\b", re.MULTILINE)

_CGO = re.compile(r"^[ \t]*(?:import[ \t]+)?\"C\"", re.MULTILINE)
"""Then the remark before it is C."""


def _visible_go(text: str) -> tuple[str, ...] | None:
    """What other files can see of a file of Go: all of it but remarks and the bodies of its functions, token by token,
    with the ends of lines, which may end statements; None where that cannot be told.

    Go infers nothing from a body: signatures say everything, and what a body declares is its own. A variable without a
    type takes it from its value, which is no body. What a body or a remark changes elsewhere are warnings, as of `vet`
    about callers of a function that passes a format on, and no errors.
    """
    package = _PACKAGE.search(text)
    if package is None or len(text) > MAX_CHARACTERS or _CGO.search(text):
        return None
    found, brackets, body, is_function = [text[: package.start()], "\n"], 0, 0, False
    for word in _go_tokens(text, package.start()):
        if body:
            body += (word == "{") - (word == "}")
            continue
        if word == "{" and is_function and not brackets and found[-1] not in ("struct", "interface"):
            body, is_function = 1, False
            continue
        brackets += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        if word == "\n" and not brackets:
            # A function without a body ends with its line.
            is_function = False
        elif word == "func" and not brackets and found[-1] == "\n":
            is_function = True
        if word != "\n" or found[-1] != "\n":
            found.append(word)
    return None if body or brackets else tuple(found)


def _go_tokens(text: str, start: int) -> Iterator[str]:
    for match in _GO_TOKEN.finditer(text, start):
        said = match[0]
        if match.lastgroup in ("text", "other") or _DIRECTIVE.match(said):
            yield said
        elif match.lastgroup == "remark" and "\n" in said:
            # As if the line ended there.
            yield "\n"
