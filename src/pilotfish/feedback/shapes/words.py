"""The words and the imports of code of Python. Pure."""

import ast
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

WORD = re.compile(r"[^\W\d]\w*")

_STRETCH = re.compile(r"[\s\S]{1,65536}\w*")
"""What is searched at once: the search lets nothing else run meanwhile."""


class Callee(Struct, frozen=True):
    """What is called where only that matters: whether it returns."""

    node: ast.AST

    @property
    def leaf(self) -> str:
        """Its last name; empty where it has none."""
        match self.node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
            case _:
                return ""


Part = ast.AST | str | Callee
"""Of what can be seen of a symbol."""


class Import(Struct, frozen=True):
    """`from module import name as bound`, or `import module as bound` with the module as name; `level`: its dots."""

    level: int
    module: tuple[str, ...]
    name: str | None
    bound: str
    """`*` for all of a module."""


def all_words(text: str) -> dict[str, None]:
    """Of a text that is not parsed."""
    return dict.fromkeys(word for part in _STRETCH.finditer(text) for word in WORD.findall(part[0]))


def stored_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds in its own scope, or deletes."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del):
            yield one.id
        elif isinstance(one, ast.MatchAs | ast.MatchStar) and one.name:
            yield one.name
        elif isinstance(one, ast.MatchMapping) and one.rest:
            yield one.rest
        if not isinstance(one, ast.Lambda):
            waiting += ast.iter_child_nodes(one)


def words_of(node: ast.AST) -> set[str]:
    names, outside = set[str](), set[str]()
    collect_words(node, names, outside)
    return names | outside


def collect_words(part: Part, names: set[str], outside: set[str]) -> int:
    """The words of a part: what stands alone means something of its own file, all else perhaps of another.

    Returns how many steps that took.
    """
    if isinstance(part, Callee):
        # What it is called on decides which one is called, and that is left to its name.
        return 1 if part.leaf else collect_words(part.node, names, outside)
    steps, waiting = 1, [] if isinstance(part, str) else [part]
    while waiting:
        steps += 1
        node = waiting.pop()
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Attribute(attr=name):
                outside.add(name)
            case ast.keyword(arg=str(name)):
                outside.add(name)
            case ast.Constant(value=str(said)):
                found = WORD.findall(said)
                names.update(found)
                outside.update(found)
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.alias(name=name):
                outside.update(name.split("."))
            case ast.MatchClass(kwd_attrs=found):
                outside.update(found)
            case ast.ClassDef(body=body):
                outside.update(_members(body))
            case _:
                pass
        if (comment := getattr(node, "type_comment", None)) is not None:
            names.update(WORD.findall(comment))
            outside.update(WORD.findall(comment))
        waiting += ast.iter_child_nodes(node)
    return steps


def _members(body: Sequence[ast.stmt]) -> Iterator[str]:
    """What the body of a class defines: it may override something."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        else:
            yield from stored_names(node)
            for one in ast.walk(node):
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield one.name


def outside_words(module: ast.Module) -> tuple[str, ...]:
    """A name that stands alone is bound here, by an import perhaps; with `import *` it need not be."""
    names, outside = set[str](), set[str]()
    collect_words(module, names, outside)
    return tuple(outside | names if has_star(module) else outside)


def handed_names(module: ast.Module) -> set[str]:
    """The names of which more is used than an attribute: what they mean may go anywhere."""
    bases = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Attribute)}
    return {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and id(node) not in bases}


def has_star(module: ast.Module) -> bool:
    return any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(module))


def imports_of(module: ast.Module) -> Iterator[Import]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports_in(node)


def imports_in(node: ast.Import | ast.ImportFrom) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for one in node.names:
            parts = tuple(one.name.split("."))
            yield Import(0, parts, None, one.asname or parts[0])
        return
    for one in node.names:
        parts = tuple((node.module or "").split(".")) if node.module else ()
        yield Import(node.level, parts, one.name, one.asname or one.name)


def aliases_of(module: ast.Module, names: frozenset[str]) -> frozenset[str]:
    return frozenset(
        node.asname for node in ast.walk(module) if isinstance(node, ast.alias) and node.asname and node.name in names
    )
