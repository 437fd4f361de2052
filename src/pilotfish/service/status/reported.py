"""Every file of which any running server holds diagnostics, checked again (DIAG-6).

What a server said before an edit is not an answer after it.
"""

import os
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from pilotfish.api.answers import DiagnosticsAnswer, Effort, answer_from
from pilotfish.api.questions import Operation
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Place, classify
from pilotfish.pool.plan import Running
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.service import Service
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession

MAX_CHECKED = 50
"""Files that are checked at once. A server that reports on a whole project may hold thousands."""


def reported_files(service: Service, workspace: Workspace, given: Collection[AbsPath] = ()) -> tuple[AbsPath, ...]:
    """The files of this workspace with diagnostics of any running server, by path; `given` need not be on disk."""
    sessions = [
        entry.session
        for key, entry in service.pool.entries().items()
        if entry.session is not None and workspace.holds(key.root)
    ]
    found = {path for session in sessions for path in session.reports.files_with_items()}
    ours = (path for path in found if classify(path, workspace.boundary) is Place.IN_ROOT)
    return tuple(sorted(path for path in ours if path in given or os.path.isfile(path)))


async def check_reported_files(
    service: Service,
    client: ClientSession,
    patience: Patience,
    texts: Mapping[AbsPath, str] | None = None,
) -> DiagnosticsAnswer:
    """Check every reported file; those in `texts` with these, and not as they are on disk.

    Raises `Unavailable` after `"lsp": false`.
    """
    workspace = service.workspaces.of(client)
    workspace.require_enabled()
    known = reported_files(service, workspace, texts or ())
    if not known:
        return _nothing_reported(service, workspace)
    given: dict[str, str] = {path: text for path, text in (texts or {}).items() if path in known[:MAX_CHECKED]}
    checked = await service.check(
        client, known[:MAX_CHECKED], texts=given, written=True, patience=patience, workspace=workspace
    )
    return replace(checked, meta=replace(checked.meta, truncated=len(known) > MAX_CHECKED))


def _nothing_reported(service: Service, workspace: Workspace) -> DiagnosticsAnswer:
    """Never fresh: no report says nothing about files that no server has read."""
    entries = service.pool.entries().items()
    running = sum(isinstance(entry.slot, Running) and workspace.holds(key.root) for key, entry in entries)
    caveat = "no server has reported diagnostics; files that were not opened were not checked"
    return answer_from(Operation.DIAGNOSTICS, {}, Effort(server_hits=running, caveats=(caveat,)))
