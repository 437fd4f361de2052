"""What others can see of a function of Python: its signature, and what its result is inferred from. Pure."""

import ast
from collections.abc import Iterator, Sequence

from pilotfish.feedback.shapes.flow import Function
from pilotfish.feedback.shapes.words import Callee, Part, words_of

NEVER = frozenset({"NoReturn", "Never"})

PLAIN_DECORATORS = frozenset({"property", "staticmethod", "classmethod", "override", "overload", "final"})


def signature(node: Function) -> Iterator[Part]:
    """Of a parameter with an annotation, only whether it has a default is seen."""
    yield type(node).__name__
    yield from separated(node.decorator_list, getattr(node, "type_params", []))
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    for kind, group, values in (
        ("/", arguments.posonlyargs, defaults[: len(arguments.posonlyargs)]),
        ("", arguments.args, defaults[len(arguments.posonlyargs) :]),
        ("*", [one for one in (arguments.vararg,) if one], [None]),
        ("=", arguments.kwonlyargs, arguments.kw_defaults),
        ("**", [one for one in (arguments.kwarg,) if one], [None]),
    ):
        yield kind
        for one, default in zip(group, values, strict=False):
            yield one
            if default is not None:
                yield "with a default" if one.annotation else default
    yield "->"
    yield from given(node.returns)
    yield node.type_comment or ""


def is_annotated(node: Function) -> bool:
    """All of it but the object: nothing is taken from a method that it overrides."""
    found = node.args
    every = [*found.posonlyargs, *found.args, *found.kwonlyargs, *(one for one in (found.vararg, found.kwarg) if one)]
    is_static = any("staticmethod" in words_of(one) for one in node.decorator_list)
    return node.returns is not None and all(one.annotation for one in every[0 if is_static else 1 :])


def is_declared(node: Function) -> bool:
    return node.returns is not None or node.type_comment is not None


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


def given(node: ast.AST | None) -> tuple[ast.AST, ...]:
    return () if node is None else (node,)


def separated(*groups: Sequence[ast.AST]) -> Iterator[Part]:
    for group in groups:
        yield from group
        yield "|"
