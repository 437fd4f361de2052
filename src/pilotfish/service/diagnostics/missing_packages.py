"""Imports of packages in a project whose environment is not installed: not errors of anybody's edit."""

import os
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import groupby

from msgspec import Struct

from pilotfish.feedback.deleted_modules import names_file
from pilotfish.feedback.delta import Comparison, Delta, NoBaseline
from pilotfish.feedback.missing_imports import SortedImports, without_missing_imports
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.paths import ancestors
from pilotfish.servers.toolchains import Shortfall
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.service.workspace import Workspace


class SortedChange(Struct, frozen=True):
    """A change without such imports, the packages that they name, and which of these the edit may have brought."""

    change: Comparison
    packages: frozenset[str] = frozenset()
    introduced: frozenset[str] = frozenset()


def explanations(workspace: Workspace, verdicts: Sequence[FileVerdict]) -> Iterator[Shortfall]:
    """What this project lacks, where that explains errors of these files."""
    for verdict in verdicts:
        for found in {(one.server, one.code) for one in verdict.diagnostics if one.severity is Severity.ERROR}:
            spec = workspace.specs[found[0]]
            if spec.imports.environment and (not spec.imports.unresolved or found[1] in spec.imports.unresolved):
                lacking = workspace.shortfall(spec, verdict.path)
                yield from () if lacking is None else (lacking,)


def without_missing_packages(
    workspace: Workspace, path: AbsPath, change: Comparison, deleted: Collection[AbsPath] = ()
) -> SortedChange:
    """`deleted` are files of the project until now: an import of one is an error all the same."""
    is_own = partial(_is_own, workspace, path, deleted)

    def sort(diagnostics: tuple[Diagnostic, ...]) -> SortedImports:
        kept, packages = list[Diagnostic](), set[str]()
        for server, found in groupby(diagnostics, key=lambda diagnostic: diagnostic.server):
            spec = workspace.specs.get(server)
            lacking = workspace.shortfall(spec, path) if spec is not None and spec.imports.unresolved else None
            if spec is None or lacking is None:
                kept += found
                continue
            imports = without_missing_imports(found, spec.imports.unresolved, is_own)
            if lacking.hides_uses and server in blind:
                kept += (one for one in imports.kept if one.code not in spec.undefined)
            else:
                kept += imports.kept
                packages |= imports.packages
        return SortedImports(tuple(kept), frozenset(packages))

    now = change.diagnostics if isinstance(change, NoBaseline) else (*change.introduced, *change.older)
    specs = workspace.specs
    # Servers that have not found all that this file includes: they know nothing of what is declared there.
    blind = {one.server for one in now if one.server in specs and one.code in specs[one.server].imports.unresolved}
    match change:
        case NoBaseline(diagnostics):
            found = sort(diagnostics)
            return SortedChange(NoBaseline(found.kept), found.packages, found.packages)
        case Delta(introduced, older, fixed):
            new, old, gone = sort(introduced), sort(older), sort(fixed)
            delta = Delta(new.kept, old.kept, gone.kept)
            return SortedChange(delta, new.packages | old.packages, new.packages - old.packages)


def _is_own(workspace: Workspace, path: AbsPath, deleted: Collection[AbsPath], module: str) -> bool:
    """Whether the project has a module of this name: in a folder between the file and the workspace, or `src`."""
    if any(names_file(module, gone) for gone in deleted):
        return True
    first = module.split("/", maxsplit=1)[0].split(".", maxsplit=1)[0]
    folders = ancestors(os.path.dirname(path), workspace.root)
    return any(_has(folder, first) for folder in (*folders, os.path.join(workspace.root, "src")))


def _has(folder: str, name: str) -> bool:
    return any(os.path.exists(os.path.join(folder, f"{name}{ending}")) for ending in ("", ".py", ".pyi"))
