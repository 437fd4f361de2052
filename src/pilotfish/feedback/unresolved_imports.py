"""Imports that cannot be resolved: whether an edit can mend them, or the deletion of a file broke them. Pure.

Without its environment every import of a package is an error in every file, and says nothing about an edit. These are
counted in one line. An import of the project's own module is an error all the same: that one an edit has broken.

A server cannot be shown a file that is not on disk: it looks for imported files there. But an import that cannot be
resolved and names a deleted file was resolved as long as the file was there, also where nobody knows how the importing
file was before.
"""

import re
from collections.abc import Callable, Collection, Iterable

from pilotfish.counting import counted
from pilotfish.feedback.delta import CheckedText, Delta
from pilotfish.feedback.linemap import lines_of
from pilotfish.model import AbsPath, Diagnostic

_QUOTED = re.compile(r"""["'`«]([^"'`»]+)["'`»]""")

_IMPORT = re.compile(r"\s*from\s+([\w.]+)\s+import\b")
"""`from package import module`: what is missing is then a member of the package."""

_BETWEEN = re.compile(r"[./\\:]+")

STANDS_FOR_FOLDER = frozenset({"__init__", "index", "mod", "lib", "main"})
"""Files that others import by the name of their folder."""


SIGNS = "@~$#"
"""They begin names that stand for a folder of the project, mostly `src`: `@/a.vue`, `$lib/a.svelte`."""


def without_missing_imports(
    diagnostics: Iterable[Diagnostic], codes: Collection[str], is_own: Callable[[str], bool]
) -> tuple[list[Diagnostic], set[str]]:
    """Those that are errors like any others, and the packages that could not be found.

    `codes` are those of unresolved imports; `is_own` says whether the project has a module of this name.
    """
    kept, packages = list[Diagnostic](), set[str]()
    for diagnostic in diagnostics:
        module = module_of(diagnostic) if diagnostic.code in codes else None
        if module is None or module.startswith((".", "/")) or is_own(module):
            kept.append(diagnostic)
        else:
            packages.add(module)
    return kept, packages


def missing_imports_line(count: int, why: str | None = None) -> str:
    return f"{counted(count, 'import')} could not be resolved: {why or 'is the environment installed?'}"


def module_of(diagnostic: Diagnostic) -> str | None:
    """The module that a message is about: what it quotes first."""
    found = _QUOTED.search(diagnostic.message)
    return found[1].strip() if found else None


def broken_by_deletion(now: CheckedText, deleted: Collection[AbsPath], codes: Collection[str]) -> Delta:
    """Imports of the deleted files are new; whatever else the file has may be older. `codes`: unresolved imports."""
    lines, introduced, older = lines_of(now.text), list[Diagnostic](), list[Diagnostic]()
    for found in now.diagnostics:
        module, number = module_of(found), found.range.start.line
        member = _IMPORT.match(lines[number]) if number < len(lines) else None
        named = [module] if module is not None and found.code in codes else []
        named += [f"{member[1]}.{module}"] if module is not None and member is not None else []
        is_new = any(names_file(one, path) for one in named for path in deleted)
        (introduced if is_new else older).append(found)
    return Delta(tuple(introduced), tuple(older), ())


def names_file(module: str, path: AbsPath) -> bool:
    """Whether an import may mean this file: its parts are the last ones of the path, with or without the ending.

    Not the first one of `@models/user`, which stands for some folder. A package of that name may be meant: then an
    older error is told as new, in the moment in which a file of the project with the same name is deleted.
    """
    wanted = [part for part in _BETWEEN.split(module) if part]
    *folders, name = path.strip("/").split("/")
    stem = name.partition(".")[0]
    ways = [[*folders, stem], [*folders, *name.split(".")]]
    ways += [folders] if stem in STANDS_FOR_FOLDER else []
    if len(wanted) > 1 and module.startswith(tuple(SIGNS)):
        wanted = wanted[1:]
    if not wanted:
        return stem in STANDS_FOR_FOLDER
    return any(way[-len(wanted) :] == wanted for way in ways)
