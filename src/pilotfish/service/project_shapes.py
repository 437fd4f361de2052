"""The shapes of the files of a project, read when they are needed and kept by content."""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock

from pilotfish.feedback.shapes.classes import ASKED_BY_STDLIB, PlainClasses
from pilotfish.feedback.shapes.python import PYTHON, Shape, shape_of
from pilotfish.feedback.shapes.spread import Importer
from pilotfish.feedback.shapes.words import (
    WORD,
    Import,
    ModulePath,
    all_words,
    is_package,
    key_of,
    may_mean,
    means_module,
    meant_by,
    target_of,
)
from pilotfish.feedback.unresolved_imports import STANDS_FOR_FOLDER
from pilotfish.feedback.word_index import MAX_FILE_BYTES, WordIndex, checksum
from pilotfish.model import AbsPath
from pilotfish.protocol.notebooks import code_bytes
from pilotfish.service.recent import Recent
from pilotfish.system.regular_files import read_regular

COMPONENTS = (".vue", ".svelte", ".astro", ".mdx", ".marko", ".html")
"""Files that are modules also without a word of script."""

IMPORTED_BY_PATH = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", *COMPONENTS)
"""Files that others reach by a path with their name in it, unless a configuration maps it or they are everybody's."""

MAPPINGS = (".json", ".jsonc", ".json5")
"""A file that is named in one of these may be imported by any name."""

EVERYBODYS = ("declare", "global")
"""With such words in it a file may say what every other one has."""

ASKING = ("Protocol", "abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod")

MAX_KEPT = 4_000
"""Shapes that are kept, some 10 KB each."""

Look = tuple[int, int, int, int]
"""Inode, size and times of a file: while they stay, its content does."""


class OutOfTime(Exception):
    """The time was over before everything was read."""


class ShapeCache:
    """By path while a file looks the same, and by content. For threads."""

    def __init__(self) -> None:
        self._by_path: Recent[AbsPath, tuple[Look, Shape]] = Recent(MAX_KEPT)
        self._by_content: Recent[bytes, Shape] = Recent(MAX_KEPT)
        self._lock = Lock()
        self._reading = Lock()

    def of_file(self, path: AbsPath) -> Shape | None:
        """None where there is no such file. Blocking."""
        try:
            status = os.stat(path)
            look = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            with self._lock:
                known = self._by_path.get(path)
            if known is not None and known[0] == look:
                return known[1]
        except OSError:
            return None
        content = read_regular(path, MAX_FILE_BYTES + 1)
        if content is None:
            return None
        shape = self.of_content(path, code_bytes(path, content))
        with self._lock:
            self._by_path.put(path, (look, shape))
        return shape

    def of_content(self, path: AbsPath, content: bytes) -> Shape:
        """What is larger than anybody writes is one symbol, and so is what we have no parser for."""
        is_python = path.endswith(PYTHON) and len(content) <= MAX_FILE_BYTES
        key = hashlib.blake2b(content, digest_size=16, person=b"python" if is_python else b"words").digest()
        # One after the other: a thread whose edit nobody waits for any longer goes on, and the next begins the same.
        with self._reading:
            known = self._by_content.get(key)
            if known is None:
                text = content.decode(errors="replace")
                known = shape_of(text) if is_python else Shape(outside=tuple(all_words(text)), is_whole=True)
                self._by_content.put(key, known)
        return known


class ProjectShapes:
    """A root as it is while one question is answered, with the texts of edited files instead of those on disk."""

    def __init__(
        self,
        cache: ShapeCache,
        index: WordIndex,
        extensions: Collection[str],
        edited: Mapping[AbsPath, Sequence[str]],
    ) -> None:
        self.is_over = False
        """Set by another thread when nobody waits any longer."""
        self._cache = cache
        self._index = index
        self._texts = edited
        self._edited: dict[AbsPath, list[Shape]] = {}
        self._endings = tuple(extensions)
        self._known = tuple(index)
        self._imports: dict[AbsPath, dict[str, list[Import]]] = {}
        self._asked: frozenset[str] | None = None

    # What goes through every file of a project is for the thread that asks.

    @cached_property
    def paths(self) -> list[AbsPath]:
        return [path for path in self._known if path.endswith(self._endings)]

    @cached_property
    def _packages(self) -> set[ModulePath]:
        return {target_of(path) for path in (*self._known, *self._texts) if is_package(path)}

    @cached_property
    def _plain(self) -> PlainClasses:
        return PlainClasses(self.shapes, (*self._known, *self._texts), self._packages)

    def shapes(self, path: AbsPath) -> Sequence[Shape]:
        if path in self._texts:
            if path not in self._edited:
                contents = [text.encode(errors="surrogateescape") for text in self._texts[path]]
                self._edited[path] = [self._cache.of_content(path, content) for content in contents]
            return self._edited[path]
        if self.is_over:
            raise OutOfTime
        found = self._cache.of_file(path)
        return () if found is None else (found,)

    def asks_for(self, member: str) -> bool:
        if self._asked is None:
            asking = self._index.holding(map(checksum, ASKING))
            paths = [path for path in (*asking, *self._texts) if path.endswith(PYTHON)]
            own = (name for path in paths for shape in self.shapes(path) for name in shape.asks)
            self._asked = ASKED_BY_STDLIB | frozenset(own)
        return member in self._asked

    def is_plain(self, path: AbsPath, name: str) -> bool:
        return self._plain.has(path, name)

    def importers(self, paths: Collection[AbsPath]) -> dict[AbsPath, list[Importer]]:
        found: dict[AbsPath, list[Importer]] = {path: [] for path in paths}
        by_key: dict[str, list[AbsPath]] = {}
        holders = self._index.holders(word for path in paths if not path.endswith(PYTHON) for word in _words_to(path))
        for path in paths:
            if path.endswith(PYTHON):
                by_key.setdefault(key_of(path), []).append(path)
            else:
                found[path] += (Importer(one, None) for one in self._by_words(path, holders) if one != path)
        # Files that have one of these names in them, and for a package those inside of it.
        inside = tuple(f"{os.path.dirname(path)}/" for one in by_key.values() for path in one if is_package(path))
        holding = self._index.holding(map(checksum, by_key)) if by_key else set[AbsPath]()
        for path in {*self.paths, *self._texts} if by_key else ():
            if path in holding or path in self._texts or path.startswith(inside):
                for key, imports in self._imports_of(path).items():
                    for target in by_key.get(key, ()):
                        if target != path and (meant := self._meaning(imports, path, target)):
                            found[target].append(meant)
        return found

    def _meaning(self, imports: Iterable[Import], path: AbsPath, target: AbsPath) -> Importer | None:
        wanted = target_of(target)
        meant = tuple(one for one in imports if one is ANY or may_mean(one, path, wanted, self._packages))
        if not meant:
            return None
        # A package has the modules as well from which it imports names.
        has_module = ANY in meant or is_package(path) or any(means_module(one, path, wanted) for one in meant)
        return Importer(path, None if ANY in meant else meant, has_module)

    def _imports_of(self, path: AbsPath) -> Mapping[str, list[Import]]:
        """By the last word of what each may mean."""
        known = self._imports.get(path)
        if known is None:
            known = dict[str, list[Import]]()
            for shape in self.shapes(path):
                if shape.is_whole:
                    for word in shape.outside:
                        known.setdefault(word, []).append(ANY)
                for one in shape.imports:
                    for meant in meant_by(one, path):
                        known.setdefault(meant[-1] if meant else "", []).append(one)
            self._imports[path] = known
        return known

    def _by_words(self, path: AbsPath, holders: Mapping[int, Collection[AbsPath]]) -> Collection[AbsPath]:
        """Of a language that we have no parser for: whoever may name the file in an import, or else everybody.

        `holders`: the files with each word of `_words_to`.
        """
        folder, stem = os.path.dirname(path), _stem(path)
        words = {word for shape in self.shapes(path) for word in shape.outside}
        is_module = path.endswith(COMPONENTS) or not words.isdisjoint(("import", "export", "require"))
        if not path.endswith(IMPORTED_BY_PATH) or not is_module or words.issuperset(EVERYBODYS):
            return self.paths
        holding = self._naming(stem, holders)
        if stem in STANDS_FOR_FOLDER:
            inside = f"{folder}/"
            holding |= self._naming(os.path.basename(folder), holders)
            holding.update(one for one in self.paths if one.startswith(inside))
        if any(one.endswith(MAPPINGS) for one in holding):
            return self.paths
        return [one for one in holding if one.endswith(self._endings)]

    def _naming(self, name: str, holders: Mapping[int, Collection[AbsPath]]) -> set[AbsPath]:
        """The files with all words of a name in them."""
        words = [checksum(word) for word in WORD.findall(name)]
        return set(holders[words[0]]).intersection(*(holders[word] for word in words)) if words else {*self._index}


def _stem(path: AbsPath) -> str:
    return os.path.splitext(os.path.basename(path))[0].removesuffix(".d")


def _words_to(path: AbsPath) -> Iterator[int]:
    """The words by which an import may name a file, or the folder that it stands for."""
    return map(checksum, WORD.findall(f"{_stem(path)} {os.path.basename(os.path.dirname(path))}"))


ANY = Import(0, (), None, "*")
"""Of a file that cannot be parsed: it may import whatever it names."""
