"""Which files an import may mean. Pure.

By path alone, and for every way in which it may be read: an absolute import means any file whose path ends with it,
whatever the folders are from which modules are looked for; a stub stands for its module, a folder for its package.
"""

import os
import sys
from collections.abc import Collection, Iterator

from pilotfish.feedback.shapes.words import Import
from pilotfish.model import AbsPath

STDLIB = sys.stdlib_module_names
INITS = ("__init__.py", "__init__.pyi")
EVERYBODYS = frozenset({"__builtins__.pyi", "builtins.pyi"})
"""Stubs that say what every file has without an import."""

ModulePath = tuple[str, ...]
"""The parts of a path without its ending; a package by its folder."""


def target_of(path: AbsPath) -> ModulePath:
    folder, name = os.path.split(path)
    parts = tuple(part.removesuffix("-stubs") for part in folder.split("/"))
    stem = name.partition(".")[0]
    return parts if stem == "__init__" else (*parts, stem)


def key_of(path: AbsPath) -> str:
    """The word that every import of a file has in it, but for a relative one of the package around it."""
    return target_of(path)[-1]


def meant_by(one: Import, importer: AbsPath) -> Iterator[ModulePath]:
    """What an import may mean: whole paths where it is relative, the ends of paths otherwise."""
    module = one.module
    if one.level:
        folder = target_of(AbsPath(os.path.join(os.path.dirname(importer), "__init__.py")))
        module = (*folder[: len(folder) - one.level + 1], *one.module)
    if one.name is None:
        # `import a.b` gives `a`, and what is in it.
        yield from (module[: length + 1] for length in range(len(module)))
        return
    yield module
    if one.name != "*":
        yield (*module, one.name)


def may_mean(one: Import, importer: AbsPath, target: ModulePath, packages: Collection[ModulePath]) -> bool:
    """Whether an import may mean a file. `packages`: folders that are one by an `__init__` of their own."""
    for meant in meant_by(one, importer):
        if one.level:
            is_meant = meant == target
        else:
            around, end = target[: len(target) - len(meant)], target[len(target) - len(meant) :]
            # A module of the standard library is not looked for inside of a package.
            is_meant = meant == end and (meant[0] not in STDLIB or around not in packages)
        if is_meant:
            return True
    return False


def means_module(one: Import, importer: AbsPath, target: ModulePath) -> bool:
    """Whether such an import may give the file itself, and not only a name in it."""
    if one.name is None or one.name == "*":
        return one.name is None
    *_, whole = meant_by(one, importer)
    return whole == target[len(target) - len(whole) :]


def is_package(path: AbsPath) -> bool:
    return path.endswith(INITS)
