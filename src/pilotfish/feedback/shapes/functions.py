"""What others can see of a function of Python: its signature, what its result is inferred from, and what it stores
outside of itself, `self.x = …` and `global x`. Pure.

A type that is inferred depends on how the flow reaches the assignment: on the statements before it that bind what it
uses, on the conditions around it and on those that narrow what it uses, on whatever leaves early, and on calls that
may never return.
"""

import ast
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from msgspec import Struct

from pilotfish.feedback.shapes.words import Callee, Part, words_of

Function = ast.FunctionDef | ast.AsyncFunctionDef

NEVER = frozenset({"NoReturn", "Never"})

PLAIN_DECORATORS = frozenset({"property", "staticmethod", "classmethod", "override", "overload", "final"})

MAX_ROUNDS = 20
"""In which names are followed back to what they are made of; after that, all that is before counts."""

T = TypeVar("T")

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def signature(node: Function) -> Iterator[Part]:
    """Of a parameter with an annotation, only whether it has a default is seen."""
    yield type(node).__name__
    yield from separated(node.decorator_list, getattr(node, "type_params", []))
    for kind, one, default in _arguments(node):
        yield from (kind, one)
        if default is not None:
            yield "with a default" if one.annotation else default
    yield "->"
    yield from given(node.returns)
    yield node.type_comment or ""


def is_annotated(node: Function) -> bool:
    """All of it but the object: nothing is taken from a method that it overrides."""
    is_static = any("staticmethod" in words_of(one) for one in node.decorator_list)
    # Where `*args` takes the object, too, what else it takes may come from the other method.
    has_object = not is_static and bool(node.args.posonlyargs or node.args.args)
    return node.returns is not None and all(one.annotation for _, one, _ in _arguments(node)[has_object:])


def _arguments(node: Function) -> list[tuple[str, ast.arg, ast.expr | None]]:
    """Each with its kind and its default."""
    found = node.args
    positional = [*(("/", one) for one in found.posonlyargs), *(("", one) for one in found.args)]
    defaults = [*[None] * (len(positional) - len(found.defaults)), *found.defaults]
    return [
        *((kind, one, default) for (kind, one), default in zip(positional, defaults, strict=True)),
        *(("*", one, None) for one in given(found.vararg)),
        *(("=", one, default) for one, default in zip(found.kwonlyargs, found.kw_defaults, strict=True)),
        *(("**", one, None) for one in given(found.kwarg)),
    ]


def ways_out(node: Function) -> Iterator[Part]:
    """What decides whether a call returns, if anything does: the decorators, and then what is declared or done."""
    yield from (one for one in node.decorator_list if not words_of(one) <= PLAIN_DECORATORS)
    match node.returns:
        case None:
            yield from body(node) if node.type_comment is None else (node.type_comment,)
        case ast.Constant(value=None) | ast.Name(id="str" | "int" | "bool" | "bytes" | "float" | "dict" | "list"):
            pass
        case ast.Subscript() | ast.BinOp() if words_of(node.returns).isdisjoint(NEVER):
            pass
        case other:
            # It may be another name for `Never`.
            yield other


def body(node: Function) -> Iterator[Part]:
    """What the result is inferred from; without one, only whether the function ever ends is seen."""
    gives = any(
        isinstance(one, ast.Yield | ast.YieldFrom) or (isinstance(one, ast.Return) and one.value is not None)
        for one in ast.walk(node)
    )
    for statement in node.body:
        if gives:
            yield statement
            continue
        for one in ast.walk(statement):
            if isinstance(one, ast.stmt) and not isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
                yield type(one).__name__
            if isinstance(one, ast.If | ast.While):
                yield one.test
            elif isinstance(one, ast.With | ast.AsyncWith):
                yield from (item.context_expr for item in one.items)
            elif isinstance(one, ast.Call):
                yield Callee(one.func)
            elif isinstance(one, ast.Constant) and one.value is ...:
                yield "..."


def given(node: T | None) -> tuple[T, ...]:
    return () if node is None else (node,)


def separated(*groups: Sequence[ast.AST]) -> Iterator[Part]:
    for group in groups:
        yield from group
        yield "|"


# --- What it stores outside of itself ---------------------------------------------------------------------------------


class Unit(Struct, frozen=True):
    """A simple statement, or the head of a compound one, in the order of the text."""

    node: ast.AST
    heads: tuple[ast.AST, ...]
    """Those around it."""
    loop: int | None
    """The outermost loop around it, by number."""
    stored: frozenset[str]
    used: frozenset[str]

    def makes(self, wanted: AbstractSet[str]) -> bool:
        """Whether it binds one of these names, or may narrow one that it mentions."""
        decides = isinstance(self.node, ast.expr | ast.Assert | ast.withitem | ast.Delete | ast.pattern)
        return not wanted.isdisjoint(self.stored) or (decides and not wanted.isdisjoint(self.used))


class OutsideStore(Struct, frozen=True):
    name: str
    is_attribute: bool
    parts: tuple[Part, ...]
    declared: ast.AnnAssign | None = None


def units_of(function: Function) -> list[Unit]:
    found = list[Unit]()
    _read(function.body, (), None, found)
    return found


def _read(statements: Sequence[ast.stmt], heads: tuple[ast.AST, ...], loop: int | None, found: list[Unit]) -> None:
    for node in statements:
        own, bodies = taken_apart(node)
        inner = id(node) if loop is None and isinstance(node, _LOOPS) else loop
        found += [_unit(one, heads, inner) for one in own]
        for part in bodies:
            _read(part, (*heads, *own), inner, found)


def taken_apart(node: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]]]:
    """The heads of a compound statement, and its bodies; any other is its own head."""
    match node:
        case ast.If() | ast.While():
            return [node.test], [node.body, node.orelse]
        case ast.For() | ast.AsyncFor():
            return [ast.Assign([node.target], node.iter)], [node.body, node.orelse]
        case ast.With() | ast.AsyncWith():
            return [*node.items], [node.body]
        case ast.Try() | ast.TryStar():
            types = [one.type for one in node.handlers if one.type is not None]
            return [*types], [node.body, *(one.body for one in node.handlers), node.orelse, node.finalbody]
        case ast.Match():
            heads = [head for case in node.cases for head in (case.pattern, case.guard) if head is not None]
            return [node.subject, *heads], [case.body for case in node.cases]
        case _:
            return [node], []


def _unit(node: ast.AST, heads: tuple[ast.AST, ...], loop: int | None) -> Unit:
    stored, used = set[str](), set[str]()
    for one in ast.walk(node):
        match one:
            case ast.Name(id=name, ctx=ctx):
                (used if isinstance(ctx, ast.Load) else stored).add(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ctx):
                (used if isinstance(ctx, ast.Load) else stored).add(f"{name}.{attribute}")
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                stored.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                stored.add(name)
            case ast.alias(name=name, asname=other):
                stored.add(other or name.partition(".")[0])
            case _:
                pass
    return Unit(node, heads, loop, frozenset(stored), frozenset(used))


def callees(node: ast.AST) -> Iterator[Callee]:
    """What is called in it: any of these may never return."""
    return (Callee(one.func) for one in ast.walk(node) if isinstance(one, ast.Call))


def stores_of(function: Function, units: Sequence[Unit], first: str | None) -> Iterator[OutsideStore]:
    """`first`: the first parameter of a method, whose attributes are those of the class."""
    globals_ = {name for one in ast.walk(function) if isinstance(one, ast.Global) for name in one.names}
    for number, unit in enumerate(units):
        own = [name for name in unit.stored if first is not None and name.startswith(f"{first}.")]
        stored = [(name.partition(".")[2], True) for name in own]
        for name, is_attribute in (*stored, *((one, False) for one in unit.stored & globals_)):
            is_declared = isinstance(unit.node, ast.AnnAssign)
            parts = () if is_declared else tuple(_sources(function, units, number, first))
            yield OutsideStore(name, is_attribute, parts, unit.node if isinstance(unit.node, ast.AnnAssign) else None)


def _sources(function: Function, units: Sequence[Unit], number: int, first: str | None) -> Iterator[Part]:
    """All that the assignment is inferred from."""
    unit = units[number]
    last = max((place for place, one in enumerate(units) if one.loop == unit.loop), default=number)
    before = units[: number if unit.loop is None else last + 1]
    wanted = set(unit.used) - {first or ""}
    for _ in range(MAX_ROUNDS):
        size = len(wanted)
        for one in before:
            if one.makes(wanted):
                wanted |= one.used - {first or ""}
        if len(wanted) == size:
            break
    else:
        wanted.update(*(one.stored | one.used for one in before))
    yield unit.node
    yield from unit.heads
    for _, argument, default in _arguments(function):
        if argument.arg in wanted:
            yield argument
            if default is not None and argument.annotation is None:
                yield default
    for one in before:
        if one.makes(wanted):
            yield from (*one.heads, one.node)
            continue
        if isinstance(one.node, _JUMPS):
            yield from (*one.heads, type(one.node).__name__)
        yield from callees(one.node)
