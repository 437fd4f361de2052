"""What other files can see of a module of Python, symbol by symbol. Pure."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice

from msgspec import Struct

from pilotfish.feedback.shapes.flow import Function, callees, stores_of, units_of
from pilotfish.feedback.shapes.words import (
    Import,
    Part,
    aliases_of,
    all_words,
    collect_words,
    has_star,
    imports_in,
    imports_of,
    outside_words,
    stored_names,
    words_of,
)

_NAME = "<a text that pilotfish reads>"

# Of a string with `\d` in it the parser complains on standard error; it is the project's, and nobody asked us.
warnings.filterwarnings("ignore", module=re.escape(_NAME))

PYTHON = (".py", ".pyi")

_TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore)")

_DIRECTIVE = re.compile(r"#\s*(?:based)?pyright:(?!\s*ignore)[^\n]*|#\s*mypy:[^\n]*")
"""A comment that changes how a whole file is inferred."""

VALUE_COUNTS = frozenset({"Final", "TypeAlias", "ClassVar", "InitVar"})
"""Annotations that leave the type, or what it stands for, to the value."""

PLAIN_DECORATORS = frozenset({"property", "staticmethod", "classmethod", "override", "overload", "final"})

SymbolKey = tuple[str, str]
"""The class that a symbol is a member of, and its name; classes in classes are joined by dots."""


class VisibleSymbol(Struct, frozen=True):
    """`outside`: words of its visible part that may mean something of another file; `names`: those of its own file."""

    owner: str
    name: str
    outside: tuple[str, ...]
    names: tuple[str, ...]
    lifts: bool
    """A change of this member is one of its class: whoever sees it does not mention it."""


class Shape(Struct, frozen=True):
    symbols: tuple[VisibleSymbol, ...] = ()
    imports: tuple[Import, ...] = ()
    outside: tuple[str, ...] = ()
    """Words of the whole file that may mean something of another one."""
    asks: tuple[str, ...] = ()
    """Members that its protocols and abstract classes ask for."""
    is_whole: bool = False
    """It could not be parsed: one symbol, and `outside` are all of its words."""


class Visible(Struct, frozen=True):
    """The digests of what can be seen of a module, and what its members mean for their classes."""

    digests: dict[SymbolKey, bytes]
    lifting: frozenset[SymbolKey]
    derived: frozenset[str]
    """Classes with bases: what comes or goes there may be asked for."""
    exported: tuple[str, ...]
    """The strings of `__all__`."""
    directives: tuple[str, ...]
    flow: bytes
    """The digest of the statements at the top that bind nothing."""


MAX_CHARACTERS = 256 * 1024
"""Of a text that is parsed."""

MAX_PIECE_TOKENS = 12_000
"""Of what is parsed at once: the parser of Python lets nothing else run meanwhile, for 4 µs a token at worst."""

MAX_BRACED = 50_000_000
"""Before Python 3.12, a string with expressions takes as many nanoseconds as their number times its length."""

MAX_MARKS = 1_000
"""In a row. The parser takes the square of their number to bring those of an identifier into order."""

MAX_STEPS = 500_000
"""Through trees, again for every symbol that a part belongs to: else 64 KB of `self.x = y` in one function take
more than 40 s. Of 85 files of the standard library and of packages, none took more than 90,000."""

CHARACTERS_OF_STEP = 20
"""That a step through a tree is when it is written down."""

_MARKS = re.compile(r"[^\x00-\x7f\w]+")

_TOKEN = re.compile(r"\w+|[^\w \t]")

_EXPRESSIONS = re.compile(r"[fF][rR]?['\"]")

STATEMENT = re.compile(r"(?!(?:elif|else|except|finally)\b)(?:[^\W\d]|@)")
"""How one begins at the start of a line. If that is inside of a string or of brackets, what is before cannot be
parsed."""


def is_short(text: str) -> bool:
    """Whether it can be parsed while everybody waits."""
    return next(islice(_TOKEN.finditer(text), MAX_PIECE_TOKENS // 2, None), None) is None


def parsed(text: str) -> ast.Module | None:
    """None where it cannot be read, or would take too long. Statement by statement: others have their turns between."""
    if len(text) > MAX_CHARACTERS or max((len(run) for run in _MARKS.findall(text)), default=0) > MAX_MARKS:
        return None
    is_typed, body, start = _TYPE_COMMENT.search(text) is not None, list[ast.stmt](), 0
    while start < len(text):
        for end in _ends_of_piece(text, start):
            piece = _parsed_at_once(text[start:end], is_typed=is_typed)
            if piece is not None:
                break
        else:
            return None
        body += piece.body
        start = end
    return ast.Module(body, [])


def _parsed_at_once(text: str, *, is_typed: bool) -> ast.Module | None:
    try:
        return ast.parse(text, _NAME, type_comments=is_typed)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _ends_of_piece(text: str, start: int) -> Iterator[int]:
    """Where what is parsed at once may end, best first: the last two lines within the bounds that may begin a
    statement, of which one may follow a decorator, and those within a half and a quarter of the bounds."""
    for share in (1, 2, 4):
        beyond = next(islice(_TOKEN.finditer(text, start), MAX_PIECE_TOKENS // share, None), None)
        end = len(text) if beyond is None else _statement_before(text, start, beyond.start())
        for one in (end, _statement_before(text, start, end)):
            is_slow = text.count("{", start, one) * (one - start) > MAX_BRACED
            if one > start and not (is_slow and _EXPRESSIONS.search(text, start, one)):
                yield one


def _statement_before(text: str, start: int, end: int) -> int:
    while (line := text.rfind("\n", start, end - 1) + 1) > start and not STATEMENT.match(text, line):
        end = line
    return line


def shape_of(text: str) -> Shape:
    module = parsed(text)
    # A sum of a thousand parts is a tree of that depth: too deep to be walked through.
    with suppress(RecursionError, _TooMuch):
        if module is not None:
            reader = _Reader(module)
            symbols = tuple(reader.symbol(key) for key in reader.keys)
            return Shape(symbols, tuple(imports_of(module)), outside_words(module), tuple(reader.asks))
    return Shape(outside=tuple(all_words(text)), is_whole=True)


def visible_of(text: str) -> Visible | None:
    """None where it cannot be read."""
    module = parsed(text)
    return None if module is None else visible_in(module, text)


def visible_in(module: ast.Module, text: str) -> Visible | None:
    """Of these statements of a text; None where they are too much. They are no longer what they were."""
    with suppress(RecursionError, _TooMuch):
        return _visible(_Reader(_Remarks().visit(module)), text)
    return None


def _visible(reader: "_Reader", text: str) -> Visible:
    exported = [said for part in reader.parts(("", "__all__")) for said in _strings(part)]
    digests = {key: reader.digest(key) for key in reader.keys}
    lifting = frozenset(key for key in reader.keys if reader.lifts(key))
    directives = tuple(_DIRECTIVE.findall(text))
    return Visible(digests, lifting, frozenset(reader.derived), tuple(exported), directives, reader.flow())


class _TooMuch(Exception):
    """More steps than a file is worth."""


class _Scope(Struct, frozen=True):
    """Where statements stand: the module, or the body of a class."""

    owner: str = ""
    has_bases: bool = False
    is_structured: bool = False
    """Its variables may be what instances are made of."""
    is_generic: bool = False
    is_protocol: bool = False

    @property
    def is_nested(self) -> bool:
        return "." in self.owner


class _Reader:
    """Collects, for every symbol, the parts of the tree that others can see."""

    def __init__(self, module: ast.Module) -> None:
        self._steps = 0
        self._declared: dict[SymbolKey, list[Part]] = {}
        self._inferred: dict[SymbolKey, list[Part]] = {}
        self._flow: list[Part] = []
        """Statements at the top that bind nothing: one of them may never end."""
        self._after: dict[SymbolKey, int] = {}
        self._lifting: set[SymbolKey] = set()
        self._overriding: set[SymbolKey] = set()
        self.derived: set[str] = set()
        self.asks: dict[str, None] = {}
        self._has_star = has_star(module)
        self._special = VALUE_COUNTS | aliases_of(module, VALUE_COUNTS)
        self._read(module.body, _Scope(), ())

    @property
    def keys(self) -> Iterable[SymbolKey]:
        return self._inferred.keys() | self._declared.keys()

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise _TooMuch

    def parts(self, key: SymbolKey) -> Sequence[Part]:
        """What is declared counts; where nothing is, all that it is inferred from."""
        return [*(self._declared.get(key) or self._inferred.get(key, ())), *self._flow[: self._after.get(key, 0)]]

    def lifts(self, key: SymbolKey) -> bool:
        return key in self._lifting

    def symbol(self, key: SymbolKey) -> VisibleSymbol:
        names, outside = set[str](), set[str]()
        for part in self.parts(key):
            self._count(collect_words(part, names, outside))
        if self._has_star:
            # A name that stands alone need not be bound here.
            outside |= names
        if key in self._overriding:
            # What is inferred of a member may be taken from the one that it overrides.
            outside.add(key[1])
        self._count(len(names) + len(outside))
        return VisibleSymbol(*key, tuple(outside), tuple(names), lifts=self.lifts(key))

    def flow(self) -> bytes:
        return self._digest(self._flow)

    def digest(self, key: SymbolKey) -> bytes:
        return self._digest(self.parts(key))

    def _digest(self, parts: Iterable[Part]) -> bytes:
        made = blake2b(digest_size=16)
        for part in parts:
            said = part if isinstance(part, str) else ast.dump(part)
            self._count(1 + len(said) // CHARACTERS_OF_STEP)
            made.update(said.encode(errors="surrogatepass") + b"\0")
        return made.digest()

    # --- Statements --------------------------------------------------------------------------------------------------

    def _read(self, body: Sequence[ast.stmt], scope: _Scope, around: tuple[Part, ...]) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, scope, around)
                case ast.ClassDef():
                    self._class(node, scope, around)
                case ast.Import() | ast.ImportFrom():
                    for one in imports_in(node):
                        self._add(scope, one.bound, (*around, _said(one)))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    self._annotated(node, name, scope, around)
                case ast.If() | ast.While() | ast.For() | ast.AsyncFor() | ast.With() | ast.AsyncWith():
                    self._compound(node, scope, around)
                case ast.Try() | ast.TryStar():
                    self._try(node, scope, around)
                case ast.Match():
                    self._simple(node.subject, scope, around)
                    for case in node.cases:
                        self._simple(case.pattern, scope, (*around, node.subject))
                        self._read(case.body, scope, (*around, node.subject, case.pattern, *_given(case.guard)))
                case _:
                    self._simple(node, scope, around)

    def _compound(
        self,
        node: ast.If | ast.While | ast.For | ast.AsyncFor | ast.With | ast.AsyncWith,
        scope: _Scope,
        around: tuple[Part, ...],
    ) -> None:
        match node:
            case ast.If() | ast.While():
                heads: list[ast.AST] = [node.test]
            case ast.For() | ast.AsyncFor():
                heads = [ast.Assign([node.target], node.iter)]
            case _:
                heads = [*node.items]
        for head in heads:
            self._simple(head, scope, around)
        inside = (*around, type(node).__name__, *heads)
        self._read(node.body, scope, inside)
        if not isinstance(node, ast.With | ast.AsyncWith):
            self._read(node.orelse, scope, (*inside, "else"))

    def _try(self, node: "ast.Try | ast.TryStar", scope: _Scope, around: tuple[Part, ...]) -> None:
        self._read(node.body, scope, (*around, "try"))
        for handler in node.handlers:
            if handler.name:
                self._add(scope, handler.name, (*around, *_given(handler.type)))
            self._read(handler.body, scope, (*around, "except", *_given(handler.type)))
        self._read(node.orelse, scope, (*around, "else"))
        self._read(node.finalbody, scope, around)

    def _simple(self, node: ast.AST, scope: _Scope, around: tuple[Part, ...]) -> None:
        """An assignment in any form binds names; whatever binds none may only end the flow."""
        stored = dict.fromkeys(stored_names(node))
        for name in stored:
            self._add(scope, name, (*around, node))
            self._field(scope, name)
        if not stored and isinstance(node, ast.Raise | ast.Assert | ast.Expr):
            self._flow += (*around, type(node).__name__, *callees(node))
        if any(isinstance(one, ast.Name) and one.id == "__all__" for one in ast.walk(node)):
            self._add(scope, "__all__", (*around, node))

    def _annotated(self, node: ast.AnnAssign, name: str, scope: _Scope, around: tuple[Part, ...]) -> None:
        counts = scope.is_structured or self._leaves_to_value(node.annotation)
        value = _given(node.value) if counts else ("with a value",) if node.value else ()
        self._add(scope, name, (*around, node.annotation, *value), self._declared)
        self._field(scope, name)

    def _field(self, scope: _Scope, name: str) -> None:
        """Of what instances are made, the order counts."""
        if scope.is_structured:
            outer, _, class_name = scope.owner.rpartition(".")
            self._inferred[outer, class_name].append(name)
            self._lifting.add((scope.owner, name))

    def _leaves_to_value(self, annotation: ast.AST) -> bool:
        names, outside = set[str](), set[str]()
        collect_words(annotation, names, outside)
        return not self._special.isdisjoint(names | outside)

    def _class(self, node: ast.ClassDef, scope: _Scope, around: tuple[Part, ...]) -> None:
        generic = getattr(node, "type_params", [])
        head = [*node.decorator_list, *node.bases, *node.keywords, *generic]
        self._add(
            scope, node.name, (*around, "class", *_separated(node.decorator_list, node.bases, node.keywords), *generic)
        )
        owner = f"{scope.owner}.{node.name}" if scope.owner else node.name
        names, outside = set[str](), set[str]()
        for part in head:
            collect_words(part, names, outside)
        if node.bases:
            self.derived.add(owner)
        if scope.is_structured:
            self._lifting.add((scope.owner, node.name))
        inside = _Scope(owner, bool(node.bases), bool(head), bool(generic), "Protocol" in names | outside)
        self._read(node.body, inside, around)

    def _function(self, node: Function, scope: _Scope, around: tuple[Part, ...]) -> None:
        decorators = {name for one in node.decorator_list for name in words_of(one)}
        signature = _signature(node)
        self._add(scope, node.name, (*around, *signature))
        if node.returns is None and node.type_comment is None:
            self._add(scope, node.name, _body(node))
        if scope.is_protocol or any("abstract" in name for name in decorators):
            self.asks[node.name] = None
            self._lifting.add((scope.owner, node.name))
        if scope.is_structured and not decorators <= PLAIN_DECORATORS:
            self._lifting.add((scope.owner, node.name))
        units = units_of(node)
        first = next((one.arg for one in (*node.args.posonlyargs, *node.args.args)), None) if scope.owner else None
        for store in stores_of(node, units, first):
            self._count(len(units))
            where = scope if store.is_attribute else _Scope()
            if store.declared is None:
                self._add(where, store.name, (*around, *store.parts))
            else:
                value = _given(store.declared.value) if self._leaves_to_value(store.declared.annotation) else ()
                self._add(where, store.name, (*around, store.declared.annotation, *value), self._declared)

    def _add(
        self, scope: _Scope, name: str, parts: Iterable[Part], kept: dict[SymbolKey, list[Part]] | None = None
    ) -> None:
        key, found = (scope.owner, name), [*parts]
        self._count(len(found))
        (self._inferred if kept is None else kept).setdefault(key, []).extend(found)
        self._after[key] = len(self._flow)
        if scope.owner and (scope.is_generic or scope.is_nested or (name.startswith("__") and name.endswith("__"))):
            self._lifting.add(key)
        if scope.has_bases:
            self._overriding.add(key)
        if scope.is_protocol:
            self.asks[name] = None


# --- Parts ------------------------------------------------------------------------------------------------------------


def _signature(node: Function) -> Iterator[Part]:
    """Of a parameter with an annotation, only whether it has a default is seen."""
    yield type(node).__name__
    yield from _separated(node.decorator_list, getattr(node, "type_params", []))
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
    yield from _given(node.returns)
    yield node.type_comment or ""


def _body(node: Function) -> Iterator[Part]:
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
                yield one.func
            elif isinstance(one, ast.Constant) and one.value is ...:
                yield "..."


def _given(node: ast.AST | None) -> tuple[ast.AST, ...]:
    return () if node is None else (node,)


def _separated(*groups: Sequence[ast.AST]) -> Iterator[Part]:
    for group in groups:
        yield from group
        yield "|"


def _said(one: Import) -> ast.AST:
    """As a tree, so that its words are those of a part."""
    module = "." * one.level + ".".join(one.module)
    return ast.ImportFrom(module, [ast.alias(one.name or module, one.bound)], one.level)


class _Remarks(ast.NodeTransformer):
    """Takes documentation away, wherever it stands: nobody sees it."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_remark = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_remark else node


def _strings(part: Part) -> Iterator[str]:
    if isinstance(part, ast.AST):
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
