"""What other files can see of a module of Python, symbol by symbol. Pure."""

import ast
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct

from pilotfish.feedback.shapes.functions import (
    PLAIN_DECORATORS,
    Function,
    body,
    callees,
    given,
    is_annotated,
    separated,
    signature,
    stores_of,
    taken_apart,
    units_of,
    ways_out,
)
from pilotfish.feedback.shapes.parsing import parsed, without_collections
from pilotfish.feedback.shapes.words import (
    Callee,
    Import,
    Part,
    aliases_of,
    all_words,
    collect_words,
    has_star,
    imports_in,
    imports_of,
    stored_names,
    words_of,
)

PYTHON = (".py", ".pyi")

_DIRECTIVE = re.compile(r"#\s*(?:based)?pyright:(?!\s*ignore)[^\n]*|#\s*mypy:[^\n]*")
"""A comment that changes how a whole file is inferred."""

VALUE_COUNTS = frozenset({"Final", "TypeAlias", "ClassVar", "InitVar"})
"""Annotations that leave the type, or what it stands for, to the value."""

SymbolKey = tuple[str, str]
"""The class that a symbol is a member of, and its name; classes in classes are joined by dots."""

ALL: SymbolKey = ("", "__all__")

FIELDS = ""
"""For a name: the order of the fields of a class."""


class VisibleSymbol(Struct, frozen=True):
    """`outside`: words of its visible part that may mean something of another file; `names`: those of its own file."""

    owner: str
    name: str
    outside: tuple[str, ...]
    names: tuple[str, ...]
    lifts: bool
    """A change of this member is one of its class: whoever sees it does not mention it."""
    is_field: bool
    """So it is where the class is made of its fields: by a decorator, a metaclass, or a base that is."""
    calls: tuple[str, ...] = ()
    """What is called on the way, of which only whether it ever returns is seen."""
    returns_by: tuple[str, ...] | None = None
    """The words on which it hangs whether a call of it returns, beside `calls`; None: all of its words."""


class ClassHead(Struct, frozen=True):
    name: str
    bases: tuple[str, ...] | None
    """The names of its bases; None where it has anything else that may make it of its fields."""


class Shape(Struct, frozen=True):
    symbols: tuple[VisibleSymbol, ...] = ()
    imports: tuple[Import, ...] = ()
    outside: tuple[str, ...] = ()
    """Words of the whole file that may mean something of another one."""
    asks: tuple[str, ...] = ()
    """Members that its protocols and abstract classes ask for."""
    handed: tuple[str, ...] = ()
    """Imported names of which more is used than an attribute: a module among them may be anywhere."""
    classes: tuple[ClassHead, ...] = ()
    is_whole: bool = False
    """It could not be parsed: one symbol, and `outside` are all of its words."""


class Visible(Struct, frozen=True):
    """The digests of what can be seen of a module, and what its members mean for their classes."""

    digests: dict[SymbolKey, bytes]
    returning: dict[SymbolKey, bytes]
    """The same of what decides whether a call of it returns; what is not here always does."""
    lifting: frozenset[SymbolKey]
    fields: frozenset[SymbolKey]
    derived: frozenset[str]
    """Classes with bases: what comes or goes there may be asked for."""
    exported: tuple[str, ...]
    """The strings of `__all__`."""
    directives: tuple[str, ...]


MAX_STEPS = 500_000
"""Through trees, again for every symbol that a part belongs to: else 64 KB of `self.x = y` in one function take
more than 40 s. Of 85 files of the standard library and of packages, none took more than 90,000."""

CHARACTERS_OF_STEP = 20
"""That a step through a tree is when it is written down."""


@without_collections
def shape_of(text: str) -> Shape:
    module = parsed(text)
    # A sum of a thousand parts is a tree of that depth: too deep to be walked through.
    with suppress(RecursionError, _TooMuch):
        if module is not None:
            reader = _Reader(module)
            symbols, imports = tuple(reader.symbol(key) for key in reader.keys), tuple(imports_of(module))
            names, outside = set[str](), set[str]()
            collect_words(module, names, outside)
            # A name that stands alone is bound here, by an import perhaps; with `import *` it need not be.
            outside |= names if has_star(module) else set[str]()
            bases = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Attribute)}
            used = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and id(node) not in bases}
            handed = tuple(used.intersection(one.bound for one in imports))
            return Shape(symbols, imports, tuple(outside), tuple(reader.asks), handed, tuple(reader.classes))
    return Shape(outside=tuple(all_words(text)), is_whole=True)


@lru_cache(maxsize=8)
@without_collections
def visible_of(text: str) -> Visible | None:
    """None where it cannot be read. Kept, because what an edit has made is what the next one begins with."""
    module = parsed(text)
    with suppress(RecursionError, _TooMuch):
        if module is not None:
            reader = _Reader(_Remarks().visit(module))
            nodes = (node for part in reader.parts(ALL) if isinstance(part, ast.AST) for node in ast.walk(part))
            return Visible(
                {key: reader.digest(reader.parts(key)) for key in reader.keys},
                {key: made for key in reader.keys if (made := reader.returning(key)) is not None},
                frozenset(reader.lifting),
                frozenset(reader.fields),
                frozenset(reader.derived),
                tuple(one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)),
                tuple(_DIRECTIVE.findall(text)),
            )
    return None


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


class _Reader:
    """Collects, for every symbol, the parts of the tree that others can see."""

    def __init__(self, module: ast.Module) -> None:
        self._steps = 0
        self._declared: dict[SymbolKey, list[Part]] = {}
        self._inferred: dict[SymbolKey, list[Part]] = {}
        self._flow: list[Part] = []
        """Statements at the top that bind nothing: one of them may never end."""
        self._after: dict[SymbolKey, int] = {}
        self._ways_out: dict[SymbolKey, list[Part]] = {}
        """Of each, by what a call of it returns or not; nothing where it surely does."""
        self._bound: set[SymbolKey] = set()
        """What is, in one place at least, neither a function nor imported."""
        self.lifting: set[SymbolKey] = set()
        self.fields: set[SymbolKey] = set()
        self.classes: list[ClassHead] = []
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
        calls = {part.leaf for part in self.parts(key) if isinstance(part, Callee)}
        self._count(len(names) + len(outside) + len(calls))
        is_bound, returns_by = key in self._bound, set[str]()
        for part in () if is_bound else self._ways_out[key]:
            self._count(collect_words(part, returns_by, returns_by))
        words, marks = (tuple(outside), tuple(names)), (key in self.lifting, key in self.fields)
        return VisibleSymbol(*key, *words, *marks, tuple(calls), None if is_bound else tuple(returns_by))

    def returning(self, key: SymbolKey) -> bytes | None:
        parts = self.parts(key) if key in self._bound else self._ways_out[key]
        return self.digest(parts) if parts or key in self._bound else None

    def digest(self, parts: Iterable[Part]) -> bytes:
        made = blake2b(digest_size=16)
        for part in parts:
            node = part.node if isinstance(part, Callee) else part
            said = node if isinstance(node, str) else ast.dump(node)
            self._count(1 + len(said) // CHARACTERS_OF_STEP)
            made.update(said.encode(errors="surrogatepass") + b"\0")
        return made.digest()

    # --- Statements --------------------------------------------------------------------------------------------------

    def _read(self, statements: Sequence[ast.stmt], scope: _Scope, around: tuple[Part, ...]) -> None:
        for node in statements:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, scope, around)
                case ast.ClassDef():
                    self._class(node, scope, around)
                case ast.Import() | ast.ImportFrom():
                    for one in imports_in(node):
                        self._import(one, scope, around)
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
                        self._read(case.body, scope, (*around, node.subject, case.pattern, *given(case.guard)))
                case _:
                    self._simple(node, scope, around)

    def _import(self, one: Import, scope: _Scope, around: tuple[Part, ...]) -> None:
        """Whether a call of it returns is as it is with what is imported."""
        module, callee = "." * one.level + ".".join(one.module), Callee(ast.Name(one.name or one.bound))
        # As a tree, so that its words are those of a part.
        said = ast.ImportFrom(module, [ast.alias(one.name or module, one.bound)], one.level)
        self._add(scope, one.bound, (*around, said, callee), is_bound=False)
        self._ways_out.setdefault((scope.owner, one.bound), []).extend((ast.dump(said), callee))

    def _compound(self, node: ast.stmt, scope: _Scope, around: tuple[Part, ...]) -> None:
        heads, (statements, *others) = taken_apart(node)
        for head in heads:
            self._simple(head, scope, around)
        inside = (*around, type(node).__name__, *heads)
        self._read(statements, scope, inside)
        for other in others:
            self._read(other, scope, (*inside, "else"))

    def _try(self, node: "ast.Try | ast.TryStar", scope: _Scope, around: tuple[Part, ...]) -> None:
        self._read(node.body, scope, (*around, "try"))
        for handler in node.handlers:
            if handler.name:
                self._add(scope, handler.name, (*around, *given(handler.type)))
            self._read(handler.body, scope, (*around, "except", *given(handler.type)))
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
        value = given(node.value) if counts else ("with a value",) if node.value else ()
        self._add(scope, name, (*around, node.annotation, *value), self._declared)
        self._field(scope, name)

    def _field(self, scope: _Scope, name: str) -> None:
        """Of what instances are made, the order counts."""
        if scope.is_structured:
            self._add(scope, FIELDS, [name])
            self.fields |= {(scope.owner, name), (scope.owner, FIELDS)}

    def _leaves_to_value(self, annotation: ast.AST) -> bool:
        return not self._special.isdisjoint(words_of(annotation))

    def _class(self, node: ast.ClassDef, scope: _Scope, around: tuple[Part, ...]) -> None:
        generic = getattr(node, "type_params", [])
        head = [*node.decorator_list, *node.bases, *node.keywords, *generic]
        self._add(
            scope, node.name, (*around, "class", *separated(node.decorator_list, node.bases, node.keywords), *generic)
        )
        owner = f"{scope.owner}.{node.name}" if scope.owner else node.name
        if node.bases:
            self.derived.add(owner)
        if scope.is_structured:
            self.fields.add((scope.owner, node.name))
        self.classes.append(ClassHead(owner, _plain_bases(node)))
        is_protocol = any("Protocol" in words_of(one) for one in head)
        inside = _Scope(owner, bool(node.bases), bool(head), bool(generic), is_protocol)
        self._read(node.body, inside, around)

    def _function(self, node: Function, scope: _Scope, around: tuple[Part, ...]) -> None:
        decorators = {name for one in node.decorator_list for name in words_of(one)}
        parts = (*around, *signature(node), *(() if node.returns or node.type_comment else body(node)))
        self._add(scope, node.name, parts, is_bound=False, is_overriding=not is_annotated(node))
        # Defined twice, overloaded perhaps, it is all of them.
        self._ways_out.setdefault((scope.owner, node.name), []).extend(ways_out(node))
        if scope.is_protocol or any("abstract" in name for name in decorators):
            self.asks[node.name] = None
            self.lifting.add((scope.owner, node.name))
        if scope.is_structured and not decorators <= PLAIN_DECORATORS:
            self.fields.add((scope.owner, node.name))
        units = units_of(node)
        first = next((one.arg for one in (*node.args.posonlyargs, *node.args.args)), None) if scope.owner else None
        for store in stores_of(node, units, first):
            self._count(len(units))
            where = scope if store.is_attribute else _Scope()
            if store.declared is None:
                self._add(where, store.name, (*around, *store.parts))
            else:
                value = given(store.declared.value) if self._leaves_to_value(store.declared.annotation) else ()
                self._add(where, store.name, (*around, store.declared.annotation, *value), self._declared)

    def _add(
        self,
        scope: _Scope,
        name: str,
        parts: Iterable[Part],
        kept: dict[SymbolKey, list[Part]] | None = None,
        *,
        is_bound: bool = True,
        is_overriding: bool = True,
    ) -> None:
        key, found = (scope.owner, name), [*parts]
        self._count(len(found))
        (self._inferred if kept is None else kept).setdefault(key, []).extend(found)
        self._after[key] = len(self._flow)
        if scope.owner and (scope.is_generic or "." in scope.owner or (name.startswith("__") and name.endswith("__"))):
            self.lifting.add(key)
        if is_bound:
            self._bound.add(key)
        if scope.has_bases and is_overriding:
            self._overriding.add(key)
        if scope.is_protocol:
            self.asks[name] = None


# --- Parts ------------------------------------------------------------------------------------------------------------


def _plain_bases(node: ast.ClassDef) -> tuple[str, ...] | None:
    heads = [one.value if isinstance(one, ast.Subscript) else one for one in node.bases]
    names = tuple(one.id for one in heads if isinstance(one, ast.Name))
    return names if len(names) == len(heads) and not (node.decorator_list or node.keywords) else None


class _Remarks(ast.NodeTransformer):
    """Takes documentation away, wherever it stands: nobody sees it."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_remark = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_remark else node


def is_told_by_class(owner: str, name: str) -> bool:
    """A method with two underscores is a part of its class, which is reached with it: every class has such a name."""
    return bool(owner) and (name == FIELDS or (name.startswith("__") and name.endswith("__")))
