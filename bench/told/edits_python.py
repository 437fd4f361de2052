"""Edits of Python files, found in the syntax tree and made in the text."""

import ast
import io
import random
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

from told.makers import Made, Maker, Source, blank_lines, comments, line_of, spliced

T = TypeVar("T")
Function = ast.FunctionDef | ast.AsyncFunctionDef
STRICT_BUILTINS = frozenset({"len", "isinstance", "issubclass", "callable", "ord", "hasattr", "iter", "abs"})
"""Functions that take no argument more than they are given as a rule."""

OPEN_RETURN = re.compile(r"None|Any|object|Optional|NoReturn|Never|Generator|Iterator|Iterable")
"""Types of functions that may end without a `return`, or that are not sure to be refused."""

TOP = r"^()(?:def|class|async def) "
ANY = r"^([ ]*)(?:return|if|for|raise|with|def|class)\b(?!.*\\$)"


@lru_cache(maxsize=512)
def parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


class Places:
    """Offsets into a text from the lines and byte columns of its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [f"{line}\n" for line in text.split("\n")]  # as Python counts them, not as `splitlines` does
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode(errors="replace"))

    def start(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        return self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def line(self, number: int) -> str:
        return self._lines[number - 1]


def of_tree(make: Callable[[Source, ast.Module, Places, random.Random], Made]) -> Maker:
    """A maker that needs the tree; it has nothing to offer for a text that has none."""

    def maker(source: Source, chance: random.Random) -> Made:
        tree = parsed(source.text)
        if tree is None or not tree.body:
            return None
        return make(source, tree, Places(source.text), chance)

    return maker


# --- Harmless -------------------------------------------------------------------------------------------------------


def rename_local(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for function in _shuffled(_functions(tree), chance):
        if _has_inner_scope(function):
            continue
        names = sorted(_locals(function))
        if not names:
            continue
        name = chance.choice(names)
        spans = [(places.start(node), places.end(node)) for node in _names(function) if node.id == name]
        text = _replaced(source.text, spans, f"{name}_value")
        return text, f"local {name} of {function.name} renamed to {name}_value (line {function.lineno})"
    return None


def reformat(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and node.lineno == node.end_lineno
    ]
    plain = [node for node in found if "#" not in places.line(node.lineno) and ";" not in places.line(node.lineno)]
    if not plain:
        return None
    node = chance.choice(plain)
    assert node.value is not None
    indent = " " * node.col_offset
    value = source.text[places.start(node.value) : places.end(node.value)]
    new = f"return (\n{indent}    {value}\n{indent})"
    return spliced(source.text, places.start(node), places.end(node), new), f"return of line {node.lineno} in brackets"


# --- Errors in the file itself --------------------------------------------------------------------------------------


def wrong_argument(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    own = {node.name for node in tree.body if isinstance(node, Function) and not _takes_any(node)}
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in own | STRICT_BUILTINS
        and node.args
    ]
    if not calls:
        return None
    call = chance.choice(calls)
    end = places.end(call) - 1
    before = source.text[:end].rstrip()
    comma = "" if before.endswith(",") else ", "
    text = spliced(source.text, end, end, f"{comma}unexpected_argument=None")
    return text, f"unexpected argument in line {call.lineno}"


def wrong_type(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    return _inserted(source, tree, places, chance, 'checked_count: int = "many"')


def undefined_name(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for function in _shuffled(_functions(tree), chance):
        names = [node for node in _names(function) if isinstance(node.ctx, ast.Load) and len(node.id) > 2]
        # Annotations and decorators are names too; a mistake in the body is the usual one.
        inside = [node for node in names if node.lineno > function.body[0].lineno]
        if inside:
            node = chance.choice(inside)
            text = spliced(source.text, places.start(node), places.end(node), f"{node.id}_undefined")
            return text, f"{node.id} misspelt in line {node.lineno}"
    return None


def syntax(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for function in _shuffled(_functions(tree), chance):
        start = places.start(function.body[0])
        colon = source.text.rfind(":", places.start(function), start)
        if colon < 0 or source.text[colon + 1 : start].strip():
            continue
        text = spliced(source.text, colon, colon + 1, "")
        if parsed(text) is None:
            return text, f"colon of {function.name} lost (line {line_of(source.text, colon)})"
    return None


def missing_return(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for function in _shuffled(_functions(tree), chance):
        last = function.body[-1]
        if function.returns is None or function.decorator_list or not isinstance(last, ast.Return):
            continue
        if last.value is None or len(function.body) < 2 or OPEN_RETURN.search(ast.unparse(function.returns)):
            continue
        text = spliced(source.text, places.start(last), places.end(last), "pass")
        return text, f"return of {function.name} lost (line {last.lineno})"
    return None


def break_import(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    found = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level and node.module]
    if not found:
        return None
    node = chance.choice(found)
    assert node.module is not None
    start = source.text.index(node.module, places.start(node))
    new = f"{node.module}_missing"
    return spliced(source.text, start, start + len(node.module), new), f"import of {new} in line {node.lineno}"


# --- Errors in other files ------------------------------------------------------------------------------------------


def rename_export(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    del places
    for node in _shuffled(_exports(tree), chance):
        if source.used(node.name):
            new = f"{node.name}_renamed" if isinstance(node, Function) else f"{node.name}Renamed"
            return _tokens_renamed(source.text, node.name, new), f"{node.name} renamed to {new} (line {node.lineno})"
    return None


def remove_export(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for node in _shuffled(_exports(tree), chance):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        start, end = places.line_start(first), places.line_start((node.end_lineno or node.lineno) + 1)
        text = spliced(source.text, start, end, "")
        if source.used(node.name) and parsed(text) is not None:
            return text, f"{node.name} removed (line {node.lineno})"
    return None


def new_parameter(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for owner, function in _shuffled(_public_functions(tree), chance):
        if not source.used(owner if function.name == "__init__" else function.name) or function.decorator_list:
            continue
        start = _parameters_start(source.text, places, function)
        receiver = function.args.args[0] if owner and function.args.args else None
        if receiver is not None:
            start = places.end(receiver)
            text = spliced(source.text, start, start, ", required_extra: int")
        elif owner or start is None:
            continue
        else:
            comma = ", " if source.text[start:].lstrip()[:1] != ")" else ""
            text = spliced(source.text, start, start, f"required_extra: int{comma}")
        if parsed(text) is not None:
            name = f"{owner}.{function.name}" if owner else function.name
            return text, f"{name} takes one more argument (line {function.lineno})"
    return None


def return_type(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    for owner, function in _shuffled(_public_functions(tree), chance):
        if function.returns is None or not source.used(function.name) or function.name.startswith("__"):
            continue
        new = "complex"
        text = spliced(source.text, places.start(function.returns), places.end(function.returns), new)
        name = f"{owner}.{function.name}" if owner else function.name
        return text, f"{name} returns {new} (line {function.lineno})"
    return None


def field_type(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    fields = [
        (owner.name, node, node.target.id)
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    for owner, node, name in _shuffled(fields, chance):
        if source.used(name):
            text = spliced(source.text, places.start(node.annotation), places.end(node.annotation), "complex")
            return text, f"{owner}.{name} is a complex (line {node.lineno})"
    for owner, function in _shuffled(_public_functions(tree), chance):
        given = [each for each in function.args.args if each.annotation is not None]
        if given and source.used(owner if function.name == "__init__" else function.name):
            parameter = chance.choice(given)
            assert parameter.annotation is not None
            text = spliced(source.text, places.start(parameter.annotation), places.end(parameter.annotation), "complex")
            return text, f"{parameter.arg} of {function.name} is a complex (line {function.lineno})"
    return None


def rename_member(source: Source, tree: ast.Module, places: Places, chance: random.Random) -> Made:
    del places
    for owner, function in _shuffled(_public_functions(tree), chance):
        if owner and not function.name.startswith("_") and source.used(function.name):
            new = f"{function.name}_renamed"
            text = _tokens_renamed(source.text, function.name, new, members=True)
            return text, f"{owner}.{function.name} renamed to {new} (line {function.lineno})"
    return None


MAKERS: Mapping[str, Maker] = {
    "comment": comments("#", ANY),
    "blank-line": blank_lines(TOP),
    "rename-local": of_tree(rename_local),
    "reformat": of_tree(reformat),
    "wrong-argument": of_tree(wrong_argument),
    "wrong-type": of_tree(wrong_type),
    "undefined-name": of_tree(undefined_name),
    "syntax": of_tree(syntax),
    "missing-return": of_tree(missing_return),
    "break-import": of_tree(break_import),
    "rename-export": of_tree(rename_export),
    "remove-export": of_tree(remove_export),
    "new-parameter": of_tree(new_parameter),
    "return-type": of_tree(return_type),
    "field-type": of_tree(field_type),
    "rename-member": of_tree(rename_member),
}


# --- What is in a tree ----------------------------------------------------------------------------------------------


def _shuffled(items: Iterable[T], chance: random.Random) -> list[T]:
    found = list(items)
    chance.shuffle(found)
    return found


def _functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        # A function on one line has no body to put anything into.
        if isinstance(node, Function) and node.body[0].lineno > node.lineno:
            yield node


def _exports(tree: ast.Module) -> list[Function | ast.ClassDef]:
    named = [node for node in tree.body if isinstance(node, Function | ast.ClassDef)]
    seen = [node.name for node in named]
    return [node for node in named if not node.name.startswith("test") and seen.count(node.name) == 1]


def _public_functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions with the class that they are in, if any; overloads are left out."""
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("test"):
            yield "", node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("Test"):
            names = [each.name for each in node.body if isinstance(each, Function)]
            for each in node.body:
                if isinstance(each, Function) and names.count(each.name) == 1:
                    yield node.name, each


def _takes_any(function: Function) -> bool:
    return function.args.kwarg is not None or bool(function.decorator_list)


def _names(function: Function) -> Iterator[ast.Name]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node


def _locals(function: Function) -> set[str]:
    """Names that are only ever assigned here, and that no statement declares to be of somewhere else."""
    stored = {node.id for node in _names(function) if isinstance(node.ctx, ast.Store)}
    parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    other = {name for node in ast.walk(function) for name in _bound_otherwise(node)}
    return stored - parameters - other


def _bound_otherwise(node: ast.AST) -> list[str]:
    match node:
        case ast.Global(names) | ast.Nonlocal(names):
            return names
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.alias(name, asname):
            return [asname or name.partition(".")[0]]
        case ast.Name(id, ast.Del()):
            return [id]
        # Before 3.12, the places of names inside an f-string are those of no text.
        case ast.FormattedValue():
            return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
        case _:
            return []


def _has_inner_scope(function: Function) -> bool:
    scopes = (*Function.__args__, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return any(isinstance(node, scopes) and node is not function for node in ast.walk(function))


def _inserted(source: Source, tree: ast.Module, places: Places, chance: random.Random, statement: str) -> Made:
    """A statement of one line at the head of a function's body, after what describes the function."""
    for function in _shuffled(_functions(tree), chance):
        body = [node for node in function.body if not _is_docstring(node)]
        if not body or places.line(body[0].lineno)[: body[0].col_offset].strip():
            continue
        first = min([body[0].lineno, *(each.lineno for each in getattr(body[0], "decorator_list", []))])
        start = places.line_start(first)
        text = spliced(source.text, start, start, f"{' ' * body[0].col_offset}{statement}\n")
        return text, f"`{statement}` in {function.name} (line {first})"
    return None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _parameters_start(text: str, places: Places, function: Function) -> int | None:
    found = re.compile(rf"def\s+{function.name}\s*\(").search(text, places.start(function))
    return found.end() if found else None


def _replaced(text: str, spans: list[tuple[int, int]], new: str) -> str:
    for start, end in sorted(spans, reverse=True):
        text = spliced(text, start, end, new)
    return text


def _tokens_renamed(text: str, name: str, new: str, *, members: bool = False) -> str:
    """The name wherever it is a token of its own; members of something only if asked for."""
    spans, before, lines = list[tuple[int, int]](), "", Places(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string == name and (members or before != "."):
            start = lines.line_start(token.start[0]) + token.start[1]
            spans.append((start, start + len(name)))
        before = token.string
    return _replaced(text, spans, new)
