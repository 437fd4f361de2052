"""Imports that no edit can mend: packages of an environment that is not installed. Pure.

Without its environment every import of a package is an error in every file, and says nothing about an edit. These are
counted in one line. An import of the project's own module is an error all the same: that one an edit has broken.
"""

import re
from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

from pilotfish.model import Diagnostic

_QUOTED = re.compile(r"""["'`«]([^"'`»]+)["'`»]""")


class SortedImports(Struct, frozen=True):
    """`kept` are errors like any others; `packages` could not be found."""

    kept: tuple[Diagnostic, ...]
    packages: frozenset[str]


def without_missing_imports(
    diagnostics: Iterable[Diagnostic], codes: Collection[str], is_own: Callable[[str], bool]
) -> SortedImports:
    """`codes` are those of unresolved imports; `is_own` says whether the project has a module of this name."""
    kept, packages = list[Diagnostic](), set[str]()
    for diagnostic in diagnostics:
        module = module_of(diagnostic) if diagnostic.code in codes else None
        if module is None or module.startswith((".", "/")) or is_own(module):
            kept.append(diagnostic)
        else:
            packages.add(module)
    return SortedImports(tuple(kept), frozenset(packages))


def missing_imports_line(count: int, why: str | None = None) -> str:
    imports = "1 import" if count == 1 else f"{count} imports"
    return f"{imports} could not be resolved: {why or 'is the environment installed?'}"


def module_of(diagnostic: Diagnostic) -> str | None:
    """The module that a message is about: what it quotes first."""
    found = _QUOTED.search(diagnostic.message)
    return found[1].strip() if found else None
