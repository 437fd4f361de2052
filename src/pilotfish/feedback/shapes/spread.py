"""How far a change of symbols goes: along imports, from symbol to symbol, until nothing more is reached. Pure.

Of every file it is kept which words it sees from outside that mean something else now, and which of its own symbols
do. A symbol of a file is reached when its visible part mentions such a word, or a symbol of its own file that was
reached. What a file sees, everyone sees who imports it: a method is called on what another file returns.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from pilotfish.feedback.shapes.changes import ChangedSymbols
from pilotfish.feedback.shapes.flow import MAX_ROUNDS
from pilotfish.feedback.shapes.python import Shape, VisibleSymbol
from pilotfish.feedback.shapes.words import Import
from pilotfish.model import AbsPath


class Importer(Struct, frozen=True):
    """A file, and those of its imports that may mean the one asked for; None: any of its names may come from there."""

    path: AbsPath
    imports: tuple[Import, ...] | None


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


class Reach(Struct, frozen=True):
    """How an affected file was reached."""

    steps: int
    """Imports between it and an edited file."""
    mentions: int
    """Changed words that it mentions."""


class _Seen(Struct):
    words: set[str] = field(default_factory=set[str])
    """From outside."""
    own: set[str] = field(default_factory=set[str])
    reached: set[int] = field(default_factory=set[int])
    """Its symbols, by number."""
    is_all: bool = False


class _Wave(Struct):
    """What a file has to tell its importers."""

    words: set[str] = field(default_factory=set[str])
    is_all: bool = False


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
                    if not _is_told_by_class(owner, name):
                        seen.own.add(name)
                    if owner and self._project.asks_for(name):
                        seen.own.update(owner.split("."))
                seen.is_all = changed.all
                self._settle(path, seen)
                waves[path] = _Wave(set(seen.own), seen.is_all)
        steps = 0
        while waves:
            steps += 1
            waves = self._step(waves, steps)

    def _step(self, waves: Mapping[AbsPath, _Wave], steps: int) -> dict[AbsPath, _Wave]:
        following: dict[AbsPath, _Wave] = {}
        for path, importers in self._project.importers(waves).items():
            for importer in importers:
                told = self._tell(importer, waves[path], steps)
                if told.words or told.is_all:
                    wave = following.setdefault(importer.path, _Wave())
                    wave.words |= told.words
                    wave.is_all = wave.is_all or told.is_all
        return following

    def _tell(self, importer: Importer, wave: _Wave, steps: int) -> _Wave:
        """What is new to an importer, and what it says of that to its own."""
        seen = self._seen.setdefault(importer.path, _Seen())
        fresh = wave.words - seen.words
        bound = {one.bound for one in importer.imports or ()} if wave.is_all else set[str]()
        takes_all = wave.is_all and (importer.imports is None or "*" in bound)
        if not fresh and bound <= seen.own and (not takes_all or seen.is_all):
            return _Wave()
        seen.words |= fresh
        before, was_all = set(seen.own), seen.is_all
        seen.own |= bound - {"*"}
        shapes = self._project.shapes(importer.path)
        mentions = sum(len(fresh.intersection(shape.outside)) for shape in shapes)
        seen.is_all = seen.is_all or takes_all or bool(mentions and any(shape.is_whole for shape in shapes))
        self._settle(importer.path, seen)
        if mentions or wave.is_all:
            known = self.found.get(importer.path, Reach(steps, 0))
            self.found[importer.path] = Reach(known.steps, known.mentions + mentions)
        return _Wave(fresh | (seen.own - before), seen.is_all and not was_all)

    def _settle(self, path: AbsPath, seen: _Seen) -> None:
        """Reach every symbol of a file that mentions what was reached."""
        if seen.is_all:
            # Whoever imports anything from here is told so.
            return
        symbols = [symbol for shape in self._project.shapes(path) for symbol in shape.symbols]
        size, rounds = -1, 0
        while len(seen.own) != size:
            size, rounds = len(seen.own), rounds + 1
            for number, symbol in enumerate(symbols):
                # A chain that is longer than anybody writes is reached as a whole.
                if number not in seen.reached and (rounds > MAX_ROUNDS or _is_reached(symbol, seen)):
                    seen.reached.add(number)
                    seen.own.update(self._told_by(symbol))

    def _told_by(self, symbol: VisibleSymbol) -> Iterable[str]:
        if not _is_told_by_class(symbol.owner, symbol.name):
            yield symbol.name
        if symbol.owner and (symbol.lifts or self._project.asks_for(symbol.name)):
            yield from symbol.owner.split(".")


def _is_told_by_class(owner: str, name: str) -> bool:
    """A method with two underscores is a part of its class, which is reached with it: every class has such a name."""
    return bool(owner) and name.startswith("__") and name.endswith("__")


def _is_reached(symbol: VisibleSymbol, seen: _Seen) -> bool:
    return (
        not seen.words.isdisjoint(symbol.outside)
        or not seen.own.isdisjoint(symbol.outside)
        or not seen.own.isdisjoint(symbol.names)
    )
