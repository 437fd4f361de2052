"""What a function stores outside of itself, `self.x = …` and `global x`, and what that is inferred from. Pure.

A type that is inferred depends on how the flow reaches the assignment: on the statements before it that bind what it
uses, on the conditions around it and on those that narrow what it uses, on whatever leaves early, and on calls that
may never return.
"""

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct

from pilotfish.feedback.shapes.words import Callee, Part

Function = ast.FunctionDef | ast.AsyncFunctionDef

MAX_ROUNDS = 20
"""In which names are followed back to what they are made of; after that, all that is before counts."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class Unit(Struct, frozen=True):
    """A simple statement, or the head of a compound one, in the order of the text."""

    node: ast.AST
    heads: tuple[ast.AST, ...]
    """Those around it."""
    loop: int | None
    """The outermost loop around it, by number."""
    stored: frozenset[str]
    used: frozenset[str]

    @property
    def decides(self) -> bool:
        """It may narrow what it mentions, or bind it."""
        return isinstance(self.node, ast.expr | ast.Assert | ast.withitem | ast.Delete | ast.pattern)


class OutsideStore(Struct, frozen=True):
    name: str
    is_attribute: bool
    parts: tuple[Part, ...]
    declared: ast.AnnAssign | None = None


def units_of(function: Function) -> list[Unit]:
    found = list[Unit]()
    _read(function.body, (), None, found)
    return found


def _read(body: Sequence[ast.stmt], heads: tuple[ast.AST, ...], loop: int | None, found: list[Unit]) -> None:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(_unit(node, heads, loop))
            continue
        own, bodies = _taken_apart(node)
        if not bodies:
            found.append(_unit(node, heads, loop))
            continue
        inner = id(node) if loop is None and isinstance(node, _LOOPS) else loop
        found += [_unit(one, heads, inner) for one in own]
        for part in bodies:
            _read(part, (*heads, *own), inner, found)


def _taken_apart(node: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]]]:
    """The heads of a compound statement, and its bodies."""
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
            return [], []


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
        if first is not None:
            for name in unit.stored:
                head, dot, attribute = name.partition(".")
                if dot and head == first:
                    yield _store(function, units, number, attribute, first, is_attribute=True)
        for name in unit.stored & globals_:
            yield _store(function, units, number, name, first, is_attribute=False)


def _store(
    function: Function, units: Sequence[Unit], number: int, name: str, first: str | None, *, is_attribute: bool
) -> OutsideStore:
    node = units[number].node
    if isinstance(node, ast.AnnAssign):
        return OutsideStore(name, is_attribute, (), node)
    return OutsideStore(name, is_attribute, tuple(_sources(function, units, number, first)))


def _sources(function: Function, units: Sequence[Unit], number: int, first: str | None) -> Iterator[Part]:
    """All that the assignment is inferred from."""
    unit = units[number]
    last = max((place for place, one in enumerate(units) if one.loop == unit.loop), default=number)
    before = units[: number if unit.loop is None else last + 1]
    arguments = _arguments(function)
    wanted = set(unit.used) - {first or ""}
    for _ in range(MAX_ROUNDS):
        size = len(wanted)
        for one in before:
            if not wanted.isdisjoint(one.stored) or (one.decides and not wanted.isdisjoint(one.used)):
                wanted |= one.used - {first or ""}
        if len(wanted) == size:
            break
    else:
        wanted.update(*(one.stored | one.used for one in before))
    yield unit.node
    yield from unit.heads
    for argument, default in arguments:
        if argument.arg in wanted:
            yield argument
            if default is not None and argument.annotation is None:
                yield default
    for one in before:
        is_source = not wanted.isdisjoint(one.stored) or (one.decides and not wanted.isdisjoint(one.used))
        if is_source:
            yield from (*one.heads, one.node)
            continue
        if isinstance(one.node, _JUMPS):
            yield from (*one.heads, type(one.node).__name__)
        yield from callees(one.node)


def _arguments(function: Function) -> list[tuple[ast.arg, ast.expr | None]]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    rest = [one for one in (given.vararg, given.kwarg) if one is not None]
    return [
        *zip(positional, defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
        *((one, None) for one in rest),
    ]
