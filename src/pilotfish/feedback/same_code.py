"""Functions of Python that do the same before and after an edit, whatever their variables are called. Pure."""

import ast
from collections.abc import Iterable, Iterator
from textwrap import dedent

from pilotfish.feedback.linemap import lines_of
from pilotfish.feedback.python_code import parsed

Function = ast.FunctionDef | ast.AsyncFunctionDef
Extents = tuple[range, range]
"""The lines of a function in the old text, and in the new one."""


def same_but_for_variables(old: str, new: str, functions: Iterable[Extents]) -> list[Extents]:
    """Of these functions, those of which nobody outside can tell that they were changed."""
    before, after = lines_of(old), lines_of(new)
    return [(here, there) for here, there in functions if _is_same(_taken(before, here), _taken(after, there))]


def _taken(lines: list[str], extent: range) -> str:
    return dedent("\n".join(lines[extent.start : extent.stop]))


def _is_same(old: str, new: str) -> bool:
    before, after = _function(old), _function(new)
    return before is not None and after is not None and _shape(before) == _shape(after)


def _function(text: str) -> Function | None:
    module = parsed(text)
    body = module.body if module else []
    return body[0] if len(body) == 1 and isinstance(body[0], Function) else None


def _shape(function: Function) -> str:
    """Equal for two functions that differ in the names of their variables alone, and in what no program sees."""
    names = {name: f"variable {number}" for number, name in enumerate(_variables(function))}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.dump(function)


def _variables(function: Function) -> Iterator[str]:
    """In the order of the nodes; parameters are not among them: who calls the function may name them."""
    kept, found = set[str](), dict[str, None]()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found[name] = None
            case ast.Global(names=names) | ast.Nonlocal(names=names) | ast.MatchClass(kwd_attrs=names):
                kept.update(names)
            case ast.ClassDef(name=name):
                # What is stored in it are attributes.
                kept |= {name, *(one.id for one in ast.walk(node) if isinstance(one, ast.Name))}
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                kept.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                kept.add(name)
            case ast.alias():
                kept.add(node.asname or node.name.partition(".")[0])
            case _:
                pass
    return (name for name in found if name not in kept)
