"""Imports that cannot be resolved and are no errors of anybody's edit: packages of a project whose environment is not
installed, and components that another server explains.

A `.vue` or `.svelte` file is no module of TypeScript's own. Without the plugin of its server, TypeScript reports every
import of one, whatever the edit. Where the file is there, the server that is missing or not trusted is named instead.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from pilotfish.feedback.delta import Comparison, Delta, NoBaseline
from pilotfish.feedback.unresolved_imports import SIGNS, module_of, names_file, without_missing_imports
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.paths import ancestors
from pilotfish.servers.resolve import ServerChoice
from pilotfish.servers.spec import ServerSpec
from pilotfish.servers.toolchains import Shortfall
from pilotfish.service.diagnostics.verdicts import FileVerdict, Outcome, no_verdict
from pilotfish.service.workspace import Workspace


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
) -> tuple[Comparison, frozenset[str], frozenset[str]]:
    """The change without such imports, the packages that they name, and which of these the edit may have brought.

    `deleted` are files of the project until now: an import of one is an error all the same.
    """
    is_own = partial(_is_own, workspace, path, deleted)

    def sort(diagnostics: tuple[Diagnostic, ...]) -> tuple[tuple[Diagnostic, ...], frozenset[str]]:
        kept, packages = list[Diagnostic](), set[str]()
        for server, found in groupby(diagnostics, key=lambda diagnostic: diagnostic.server):
            spec = workspace.specs.get(server)
            lacking = workspace.shortfall(spec, path) if spec is not None and spec.imports.unresolved else None
            if spec is None or lacking is None:
                kept += found
                continue
            left, missing = without_missing_imports(found, spec.imports.unresolved, is_own)
            hides = lacking.hides_uses and server in blind
            kept += (one for one in left if not (hides and one.code in spec.undefined))
            packages |= set[str]() if hides else missing
        return tuple(kept), frozenset(packages)

    now = change.diagnostics if isinstance(change, NoBaseline) else (*change.introduced, *change.older)
    specs = workspace.specs
    # Servers that have not found all that this file includes: they know nothing of what is declared there.
    blind = {one.server for one in now if one.server in specs and one.code in specs[one.server].imports.unresolved}
    match change:
        case NoBaseline(diagnostics):
            found, packages = sort(diagnostics)
            return NoBaseline(found), packages, packages
        case Delta(introduced, older, fixed):
            (new, came), (old, stayed), (gone, _) = sort(introduced), sort(older), sort(fixed)
            return Delta(new, old, gone), came | stayed, came - stayed


def _is_own(workspace: Workspace, path: AbsPath, deleted: Collection[AbsPath], module: str) -> bool:
    """Whether the project has a module of this name: in a folder between the file and the workspace, or `src`."""
    if any(names_file(module, gone) for gone in deleted):
        return True
    first = module.split("/", maxsplit=1)[0].split(".", maxsplit=1)[0]
    folders = (*ancestors(os.path.dirname(path), workspace.root), os.path.join(workspace.root, "src"))
    return any(os.path.exists(f"{folder}/{first}{ending}") for folder in folders for ending in ("", ".py", ".pyi"))


def without_components(
    workspace: Workspace, path: AbsPath, choice: ServerChoice, outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    """The verdicts of the chosen servers on a file without such imports, and why the servers of these gave none."""
    kept, components = list[Outcome](), dict[AbsPath, None]()
    specs = {one.spec.id: one.spec for one in choice.servers}
    for outcome in outcomes:
        spec = specs.get(outcome.server)
        found = {
            one: component
            for one in outcome.diagnostics or ()
            if spec and one.code in spec.imports.unresolved and (component := _component(workspace, spec, path, one))
        }
        components |= dict.fromkeys(found.values())
        left = tuple(one for one in outcome.diagnostics or () if one not in found)
        kept.append(replace(outcome, diagnostics=left) if found else outcome)
    choices = [workspace.servers_for(component) for component in components]
    absent = {one.spec.id: one for choice in choices for one in (choice.missing, *choice.withheld) if one is not None}
    return (*kept, *(no_verdict(one.spec.id, workspace.why_unavailable(one), 0.0) for one in absent.values()))


def _component(workspace: Workspace, spec: ServerSpec, path: AbsPath, diagnostic: Diagnostic) -> AbsPath | None:
    """The file that an import means, where it is there and its server is one that explains it to this one."""
    module = module_of(diagnostic) or ""
    extension = os.path.splitext(module)[1]
    servers = component_servers(workspace, spec.files.extensions)
    if not any(extension in one.files.extensions for one in servers):
        return None
    folder = os.path.dirname(path)
    if module.startswith("."):
        places = [os.path.join(folder, module)]
    else:
        sign, _, rest = module.partition("/")
        names = (rest, os.path.join(sign.lstrip(SIGNS), rest))
        above = ancestors(folder, workspace.root)
        places = [os.path.join(one, base, name) for one in above for base in ("", "src") for name in names]
    return next((AbsPath(os.path.normpath(one)) for one in places if os.path.isfile(one)), None)


def component_servers(workspace: Workspace, extensions: Collection[str]) -> list[ServerSpec]:
    """The servers whose files import files with these extensions."""
    found = list[ServerSpec]()
    for spec in workspace.specs.values():
        asked = spec.relay.to if spec.relay is not None else ()
        imported = {*spec.reads, *(one for other in asked for one in workspace.specs[other].files.extensions)}
        found += [spec] if not spec.disabled and not imported.isdisjoint(extensions) else []
    return found
