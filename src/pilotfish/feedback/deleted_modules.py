"""What the deletion of a file broke elsewhere, where nobody knows how the others were before. Pure.

A server cannot be shown a file that is not on disk: it looks for imported files there. But an import that cannot be
resolved and names the deleted file was resolved as long as the file was there.
"""

import re
from collections.abc import Collection

from pilotfish.feedback.delta import CheckedText, Delta
from pilotfish.feedback.linemap import lines_of
from pilotfish.feedback.missing_imports import module_of
from pilotfish.model import AbsPath, Diagnostic

_IMPORT = re.compile(r"\s*from\s+([\w.]+)\s+import\b")
"""`from package import module`: what is missing is then a member of the package."""

_BETWEEN = re.compile(r"[./\\:]+")

STANDS_FOR_FOLDER = frozenset({"__init__", "index", "mod", "lib", "main"})
"""Files that others import by the name of their folder."""


def broken_by_deletion(now: CheckedText, deleted: Collection[AbsPath], codes: Collection[str]) -> Delta:
    """Imports of the deleted files are new; whatever else the file has may be older. `codes`: unresolved imports."""
    lines = lines_of(now.text)

    def is_new(found: Diagnostic) -> bool:
        module = module_of(found)
        if module is None:
            return False
        if found.code in codes and any(names_file(module, path) for path in deleted):
            return True
        number = found.range.start.line
        line = lines[number] if number < len(lines) else ""
        return any(_imports_member(module, line, path) for path in deleted)

    introduced = [found for found in now.diagnostics if is_new(found)]
    return Delta(tuple(introduced), tuple(one for one in now.diagnostics if one not in introduced), ())


def names_file(module: str, path: AbsPath) -> bool:
    """Whether an import may mean this file: its parts are the last ones of the path, with or without the ending."""
    wanted = [part for part in _BETWEEN.split(module) if part]
    *folders, name = path.strip("/").split("/")
    stem = name.partition(".")[0]
    ways = [[*folders, stem], [*folders, *name.split(".")]]
    ways += [folders] if stem in STANDS_FOR_FOLDER else []
    if not wanted:
        return stem in STANDS_FOR_FOLDER
    return any(way[-len(wanted) :] == wanted for way in ways)


def _imports_member(name: str, line: str, path: AbsPath) -> bool:
    """Whether a line imports the file by its name from its package."""
    found = _IMPORT.match(line)
    return found is not None and names_file(f"{found[1]}.{name}", path)
