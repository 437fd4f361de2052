"""How far a change of symbols goes: along imports, from symbol to symbol, until nothing more is reached. Pure.

Of every file it is kept what it sees from outside that means something else now, and which of its own symbols do. A
symbol of a file is reached when its visible part mentions any of these. How far a word goes depends on what it names:
- a member of a class, to everyone who imports a file that sees it: a method is called on what another file returns;
- a name at the top of a module, to whoever imports that name, and to whoever has the module itself (`held`) and may
  hand it on by a name of its own (`holders`).
Where a function is only called, it counts whether it ever returns, and nothing else of it (`returning`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from pilotfish.feedback.shapes.changes import ChangedSymbols
from pilotfish.feedback.shapes.functions import MAX_ROUNDS
from pilotfish.feedback.shapes.python import PYTHON, Shape, VisibleSymbol, is_told_by_class
from pilotfish.feedback.shapes.words import Import, key_of
from pilotfish.model import AbsPath


class Importer(Struct, frozen=True):
    """A file, and those of its imports that may mean the one asked for; None: any of its names may come from there."""

    path: AbsPath
    imports: tuple[Import, ...] | None
    has_module: bool = True
    """It has the module itself, and so every name at its top."""

    @property
    def bound(self) -> set[str]:
        return {one.bound for one in self.imports or ()}

    @property
    def has_star(self) -> bool:
        return any(one.name == "*" for one in self.imports or ())

    def imported(self, names: Collection[str]) -> set[str]:
        """Those of these that it imports one by one, or all at once."""
        if self.imports is None or self.has_star:
            return set(names)
        return {one.name for one in self.imports if one.name is not None}.intersection(names)


class SourceGraph(Protocol):
    def importers(self, paths: Collection[AbsPath]) -> Mapping[AbsPath, Sequence[Importer]]:
        """Of each of these files."""
        ...

    def shapes(self, path: AbsPath) -> Sequence[Shape]:
        """Of a file; of an edited one before and after."""
        ...

    def asks_for(self, member: str) -> bool:
        """Whether any protocol or abstract class asks for a member of this name."""
        ...

    def is_plain(self, path: AbsPath, name: str) -> bool:
        """Whether a class and all of its bases are the project's own, or the language's, and not made of fields."""
        ...


class Reach(Struct, frozen=True):
    """How an affected file was reached."""

    steps: int
    """Imports between it and an edited file."""
    mentions: int
    """Changed words that it mentions."""


class _Wave(Struct):
    """What a file has to tell its importers."""

    words: set[str] = field(default_factory=set[str])
    """Members of classes, its own and others'."""
    names: set[str] = field(default_factory=set[str])
    """At its own top."""
    held: set[str] = field(default_factory=set[str])
    """At the top of modules that it has."""
    holders: set[str] = field(default_factory=set[str])
    """The names of these modules here."""
    returning: set[str] = field(default_factory=set[str])
    """Of all these, those of which a call may return now and did not, or the other way round."""
    is_all: bool = False

    @property
    def has_words(self) -> bool:
        return any((self.words, self.names, self.held, self.holders, self.returning))

    def __bool__(self) -> bool:
        return self.is_all or self.has_words

    def add(self, other: "_Wave") -> None:
        self.words |= other.words
        self.names |= other.names
        self.held |= other.held
        self.holders |= other.holders
        self.returning |= other.returning
        self.is_all = self.is_all or other.is_all

    def since(self, before: "_Wave") -> "_Wave":
        return _Wave(
            self.words - before.words,
            self.names - before.names,
            self.held - before.held,
            self.holders - before.holders,
            self.returning - before.returning,
            self.is_all and not before.is_all,
        )


class _Seen(Struct):
    """What means something else now, to one file."""

    told: _Wave = field(default_factory=_Wave)
    """All that its importers are told."""
    outside: set[str] = field(default_factory=set[str])
    """What it sees of others."""
    own: set[str] = field(default_factory=set[str])
    """Its own names and members."""
    reached: dict[int, bool] = field(default_factory=dict[int, bool])
    """Its symbols, by number, and whether a call of each may return now and did not."""

    def hear(self, importer: Importer, wave: _Wave, module: str) -> None:
        """What a module that it imports has to tell."""
        imported = importer.imported(wave.names)
        held = wave.held if importer.has_module or importer.imported(wave.holders) else set[str]()
        held = held | wave.names if importer.has_module else held
        self.outside |= wave.words | imported | held
        self.told.words |= wave.words
        self.told.held |= held
        # A package has a module also by that module's own name.
        self.told.holders |= {*importer.bound, module} if held else set[str]()
        self.told.holders |= wave.holders if held and importer.has_star else set[str]()
        self.told.returning |= wave.returning & self.outside
        bound = importer.bound if wave.is_all else set[str]()
        self.add_names(bound - {"*"} | (imported if importer.has_star else set[str]()))
        self.told.returning |= bound
        self.told.is_all = self.told.is_all or (wave.is_all and (importer.imports is None or importer.has_star))

    def add_names(self, names: Iterable[str]) -> None:
        self.told.names.update(names)
        self.own.update(names)

    def add_members(self, members: Iterable[str]) -> None:
        self.told.words.update(members)
        self.own.update(members)

    def is_reached(self, symbol: VisibleSymbol) -> bool:
        return self._has(symbol.outside) or not self.own.isdisjoint(symbol.names)

    def may_return(self, symbol: VisibleSymbol) -> bool:
        """Whether a call of it may return now and did not, or the other way round."""
        if not self.told.returning.isdisjoint(symbol.calls):
            return True
        return self.is_reached(symbol) if symbol.returns_by is None else self._has(symbol.returns_by)

    def _has(self, words: Iterable[str]) -> bool:
        return not (self.outside.isdisjoint(words) and self.own.isdisjoint(words))


class Spread:
    """One run; `found` has the files that may be affected, also where the run was ended early."""

    def __init__(self, project: SourceGraph) -> None:
        self.found: dict[AbsPath, Reach] = {}
        self._project = project
        self._seen: dict[AbsPath, _Seen] = {}

    def run(self, changes: Mapping[AbsPath, ChangedSymbols]) -> None:
        waves: dict[AbsPath, _Wave] = {}
        for path, changed in changes.items():
            if changed:
                seen = self._seen.setdefault(path, _Seen())
                for owner, name in changed.keys:
                    self._reach(seen, owner, name, may_return=(owner, name) in changed.returning)
                for owner in changed.structured:
                    if not self._project.is_plain(path, owner):
                        self._reach_class(seen, owner)
                seen.told.is_all = changed.all
                self._settle(path, seen)
                waves[path] = seen.told.since(_Wave())
        steps = 0
        while waves:
            steps += 1
            waves = self._step(waves, steps)

    def _step(self, waves: Mapping[AbsPath, _Wave], steps: int) -> dict[AbsPath, _Wave]:
        following: dict[AbsPath, _Wave] = {}
        for path, importers in self._project.importers(waves).items():
            for importer in importers:
                seen = self._seen.setdefault(importer.path, _Seen())
                if seen.told.is_all and importer.imports is None and not waves[path].has_words:
                    # Without a parser, most files are told the same by many.
                    continue
                known, before = set(seen.outside), seen.told.since(_Wave())
                seen.hear(importer, waves[path], key_of(path))
                if seen.outside - known or seen.told.since(before):
                    # Robot Framework calls `add_all` by `Add All`.
                    is_foreign = path.endswith(PYTHON) and importer.imports is None
                    is_all = waves[path].is_all or is_foreign
                    # An import of a module that is another one altogether, or gone, is broken itself.
                    least = int(waves[path].is_all and importer.imports is not None)
                    self._take(importer.path, seen, seen.outside - known, steps, least, is_all=is_all)
                    if told := seen.told.since(before):
                        following.setdefault(importer.path, _Wave()).add(told)
        return following

    def _take(self, path: AbsPath, seen: _Seen, fresh: set[str], steps: int, least: int, *, is_all: bool) -> None:
        """What a file has heard reaches its own symbols."""
        shapes = self._project.shapes(path)
        mentions = sum(len(fresh.intersection(shape.outside)) for shape in shapes)
        if not all(seen.told.holders.isdisjoint(shape.handed) for shape in shapes):
            seen.told.words |= seen.told.held
        seen.told.is_all = seen.told.is_all or bool(mentions and any(shape.is_whole for shape in shapes))
        self._settle(path, seen)
        if mentions or is_all:
            known = self.found.get(path, Reach(steps, 0))
            self.found[path] = Reach(known.steps, known.mentions + max(mentions, least))

    def _settle(self, path: AbsPath, seen: _Seen) -> None:
        """Reach every symbol of a file that mentions what was reached."""
        if seen.told.is_all:
            # Whoever imports anything from here is told so.
            return
        symbols = [symbol for shape in self._project.shapes(path) for symbol in shape.symbols]
        size, rounds = (-1, -1), 0
        while (len(seen.own), len(seen.told.returning)) != size:
            size, rounds = (len(seen.own), len(seen.told.returning)), rounds + 1
            for number, symbol in enumerate(symbols):
                # A chain that is longer than anybody writes is reached as a whole.
                is_endless = rounds > MAX_ROUNDS
                may_return = is_endless or seen.may_return(symbol)
                known = seen.reached.get(number)
                if (may_return and not known) or (known is None and seen.is_reached(symbol)):
                    seen.reached[number] = may_return
                    is_class = symbol.lifts or (symbol.is_field and not self._project.is_plain(path, symbol.owner))
                    self._reach(seen, symbol.owner, symbol.name, lifts=is_class, may_return=may_return)

    def _reach(self, seen: _Seen, owner: str, name: str, *, may_return: bool, lifts: bool = False) -> None:
        is_special = is_told_by_class(owner, name)
        if not is_special:
            (seen.add_members if owner else seen.add_names)([name])
        if owner and (lifts or self._project.asks_for(name)):
            self._reach_class(seen, owner)
        if may_return:
            seen.told.returning.update(owner.split(".") if is_special else [name])

    def _reach_class(self, seen: _Seen, owner: str) -> None:
        outermost, *inner = owner.split(".")
        seen.add_names([outermost])
        seen.add_members(inner)
