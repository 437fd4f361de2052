"""The names in a text of Python that may mean something of another file. Pure.

What a file takes from others stands in its imports, after a dot, or in the body of a class, which may override it; as
the name of an argument; and in a string, which may be a type or a key. Every other name is the file's own, or Python's:
a variable with the name of somebody's attribute is none of its users.
"""

import ast
import re

from pilotfish.feedback.changed_names import WORD
from pilotfish.feedback.python_code import parsed

_TYPE_COMMENT = re.compile(r"#\s*type:.*")
_NAMED = re.compile(r"\s*+\w++(?:\s*+[.,|\[\]]\s*+\w*+)*+\s*+")
"""A string that is a key or a type. It never tries a second way to read one: a row of dots has too many."""


def outside_names(text: str) -> frozenset[str] | None:
    """None where any word may be one: the text cannot be read, or everything of another file is imported."""
    module = parsed(text)
    if module is None:
        return None
    texts = set[int]()
    """Strings that are compared, returned or kept: neither keys nor types."""
    found = {word for comment in _TYPE_COMMENT.findall(text) for word in WORD.findall(comment)}
    for node in ast.walk(module):
        match node:
            case ast.Attribute(attr=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.MatchClass(kwd_attrs=names):
                found.update(names)
            case ast.ImportFrom() | ast.Import():
                if any(one.name == "*" for one in node.names):
                    return None
                found.update(_imported(node))
            case ast.ClassDef():
                found.update(_members(node))
            case ast.Compare() | ast.Return() | ast.Assign():
                texts.update(map(id, ast.iter_child_nodes(node)))
            case ast.Constant(value=str(said)) if id(node) not in texts and _NAMED.fullmatch(said):
                found.update(WORD.findall(said))
            case _:
                pass
    return frozenset(found)


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    said = [word for one in node.names for word in (one.name, one.asname) if word]
    if isinstance(node, ast.ImportFrom) and node.module:
        said.append(node.module)
    return {part for word in said for part in word.split(".")}


def _members(node: ast.ClassDef) -> set[str]:
    """What the body of a class defines, outside of what is defined in it."""
    found, waiting = set[str](), list[ast.AST](node.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(one.name)
            continue
        if isinstance(one, ast.Name):
            found.add(one.id)
        waiting += ast.iter_child_nodes(one)
    return found
