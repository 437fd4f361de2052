"""The words of code of Python, its imports, and which files an import may mean. Pure.

By path alone, and for every way in which it may be read: an absolute import means any file whose path ends with it,
whatever the folders are from which modules are looked for; a stub stands for its module, a folder for its package.
"""

import ast
import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from pilotfish.model import AbsPath

WORD = re.compile(r"[^\W\d]\w*")

_STRETCH = re.compile(r"[\s\S]{1,65536}\w*")
"""What is searched at once: the search lets nothing else run meanwhile."""


EVERYBODYS = frozenset({"__builtins__.pyi", "builtins.pyi"})
"""Stubs that say what every file has without an import."""

ModulePath = tuple[str, ...]
"""The parts of a path without its ending; a package by its folder."""


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


def target_of(path: AbsPath) -> ModulePath:
    folder, name = os.path.split(path)
    parts = tuple(part.removesuffix("-stubs") for part in folder.split("/"))
    stem = name.partition(".")[0]
    return parts if stem == "__init__" else (*parts, stem)


def key_of(path: AbsPath) -> str:
    """The word that every import of a file has in it, but for a relative one of the package around it."""
    return target_of(path)[-1]


def meant_by(one: Import, importer: AbsPath) -> Iterator[ModulePath]:
    """What an import may mean: whole paths where it is relative, the ends of paths otherwise."""
    module = one.module
    if one.level:
        folder = target_of(AbsPath(os.path.join(os.path.dirname(importer), "__init__.py")))
        module = (*folder[: len(folder) - one.level + 1], *one.module)
    if one.name is None:
        # `import a.b` gives `a`, and what is in it.
        yield from (module[: length + 1] for length in range(len(module)))
        return
    yield module
    if one.name != "*":
        yield (*module, one.name)


def may_mean(one: Import, importer: AbsPath, target: ModulePath, packages: Collection[ModulePath]) -> bool:
    """Whether an import may mean a file. `packages`: folders that are one by an `__init__` of their own."""
    for meant in meant_by(one, importer):
        around, end = target[: len(target) - len(meant)], target[len(target) - len(meant) :]
        # A module of the standard library is not looked for inside of a package.
        is_found = one.level or meant[0] not in sys.stdlib_module_names or around not in packages
        if meant == (target if one.level else end) and is_found:
            return True
    return False


def means_module(one: Import, importer: AbsPath, target: ModulePath) -> bool:
    """Whether such an import may give the file itself, and not only a name in it."""
    if one.name is None or one.name == "*":
        return one.name is None
    *_, whole = meant_by(one, importer)
    return whole == target[len(target) - len(whole) :]


def is_package(path: AbsPath) -> bool:
    return path.endswith(("__init__.py", "__init__.pyi"))
