"""Imports of components that another server explains: a `.vue` or `.svelte` file is no module of TypeScript's own.

Without the plugin of that server, TypeScript reports every such import, whatever the edit. Where the file is there,
this is no error of anybody: the server that is missing or not trusted is named instead.
"""

import os
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from pilotfish.feedback.missing_imports import module_of
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.paths import ancestors
from pilotfish.servers.resolve import ServerChoice
from pilotfish.servers.spec import ServerSpec
from pilotfish.service.diagnostics.check import Outcome, no_verdict
from pilotfish.service.workspace import Workspace

SIGNS = "@~$#"
"""They begin names that stand for a folder of the project, mostly `src`: `@/a.vue`, `$lib/a.svelte`."""


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
    enabled = [spec for spec in workspace.specs.values() if not spec.disabled]
    return [spec for spec in enabled if not _imported(workspace, spec).isdisjoint(extensions)]


def _imported(workspace: Workspace, component: ServerSpec) -> set[str]:
    asked = component.relay.to if component.relay is not None else ()
    return {*component.reads, *(one for other in asked for one in workspace.specs[other].files.extensions)}
