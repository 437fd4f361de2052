"""Imports of packages in a project whose environment is not installed: not errors of anybody's edit."""

import os

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.missing_imports import without_missing_imports
from pilotfish.paths import ancestors
from pilotfish.service.diagnostics.check import Outcome
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.service.workspace import Workspace


class SortedVerdict(Struct, frozen=True):
    """A verdict without such imports, and the packages that they name."""

    verdict: FileVerdict
    packages: frozenset[str]


def without_missing_packages(workspace: Workspace, verdict: FileVerdict) -> SortedVerdict:
    packages = set[str]()

    def sort(outcome: Outcome) -> Outcome:
        spec = workspace.specs[outcome.server]
        if not outcome.diagnostics or not spec.imports.unresolved or workspace.has_environment(spec, verdict.path):
            return outcome
        found = without_missing_imports(outcome.diagnostics, spec.imports.unresolved, is_own)
        packages.update(found.packages)
        return replace(outcome, diagnostics=found.kept)

    def is_own(module: str) -> bool:
        """Whether the project has a module of this name: in a folder between the file and the workspace, or `src`."""
        first = module.split("/", maxsplit=1)[0].split(".", maxsplit=1)[0]
        folders = ancestors(os.path.dirname(verdict.path), workspace.root)
        return any(_has(folder, first) for folder in (*folders, os.path.join(workspace.root, "src")))

    outcomes = tuple(map(sort, verdict.outcomes))
    return SortedVerdict(replace(verdict, outcomes=outcomes) if packages else verdict, frozenset(packages))


def _has(folder: str, name: str) -> bool:
    return any(os.path.exists(os.path.join(folder, f"{name}{ending}")) for ending in ("", ".py", ".pyi"))
