"""Which classes are made of nothing but their own statements. Pure.

A decorator, a metaclass or a base may make a class of its fields, as dataclasses, models and enumerations are, or may
ask for members. Where all bases of a class are classes of the project, down to those of the language, nothing does.
"""

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pilotfish.feedback.shapes.imports import ModulePath, key_of, may_mean, meant_by, target_of
from pilotfish.feedback.shapes.python import PYTHON, Shape
from pilotfish.feedback.shapes.words import Import
from pilotfish.model import AbsPath

PLAIN_IMPORTS = frozenset({("typing", "Generic"), ("abc", "ABC")})
"""Bases from elsewhere that ask for nothing by themselves; what is abstract is asked for by its name."""

BUILTINS = frozenset(dir(builtins))


class PlainClasses:
    def __init__(
        self,
        shapes: Callable[[AbsPath], Sequence[Shape]],
        paths: Iterable[AbsPath],
        packages: Collection[ModulePath],
    ) -> None:
        self._shapes = shapes
        self._packages = packages
        self._known: dict[tuple[AbsPath, str], bool] = {}
        by_key = dict[str, list[AbsPath]]()
        for path in paths:
            if path.endswith(PYTHON):
                by_key.setdefault(key_of(path), []).append(path)
        self._by_key: Mapping[str, Sequence[AbsPath]] = by_key

    def has(self, path: AbsPath, name: str) -> bool:
        """Whether what this name means in a file is such a class, whatever text of the file counts."""
        key = path, name
        if key not in self._known:
            # A class that has itself for a base is none.
            self._known[key] = False
            shapes = self._shapes(path)
            self._known[key] = bool(shapes) and all(self._is_plain(path, shape, name) for shape in shapes)
        return self._known[key]

    def _is_plain(self, path: AbsPath, shape: Shape, name: str) -> bool:
        heads = [one.bases for one in shape.classes if one.name == name]
        imports = [one for one in shape.imports if one.bound in {name, "*"}]
        if not heads and not imports:
            return name in BUILTINS
        return all(bases is not None and all(self.has(path, base) for base in bases) for bases in heads) and all(
            self._is_plain_import(path, one) for one in imports
        )

    def _is_plain_import(self, path: AbsPath, one: Import) -> bool:
        if one.name is None or one.name == "*":
            return False
        targets = list(self._targets(path, one))
        if not targets:
            return (".".join(one.module), one.name) in PLAIN_IMPORTS
        return all(self.has(target, one.name) for target in targets)

    def _targets(self, path: AbsPath, one: Import) -> Iterator[AbsPath]:
        """The files of the project from which a name may be imported."""
        module = Import(one.level, one.module, "*", "*")
        for meant in meant_by(module, path):
            for target in self._by_key.get(meant[-1] if meant else "", ()):
                if may_mean(module, path, target_of(target), self._packages):
                    yield target
