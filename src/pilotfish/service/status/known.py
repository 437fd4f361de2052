"""The files that some server has something to say about (DIAG-6), and what is wrong with them now.

What a server said before an edit is no answer after it, so every known file is checked for real. A file is no longer
known when all its servers have nothing to say about it, or have ended.
"""

import os

from msgspec.structs import replace

from pilotfish.api.answers import DiagnosticsAnswer, Effort, answer_from
from pilotfish.api.questions import Operation
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Place, classify
from pilotfish.pool.plan import Running
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession

MAX_KNOWN = 50
"""Files that are checked at once. A server that reports on a whole project may hold thousands."""


def reported_files(service: Service, client: ClientSession) -> tuple[AbsPath, ...]:
    """The files of this workspace for which any running server holds diagnostics, by path."""
    workspace = service.workspaces.of(client)
    sessions = [
        entry.session
        for key, entry in service.pool.entries().items()
        if entry.session is not None and workspace.holds(key.root)
    ]
    found = {path for session in sessions for path in session.reports.files_with_items()}
    ours = (path for path in found if classify(path, workspace.boundary) is Place.IN_ROOT)
    return tuple(sorted(path for path in ours if os.path.isfile(path)))


async def check_reported_files(service: Service, client: ClientSession, patience: Patience) -> DiagnosticsAnswer:
    """Every known file, checked for real. Raises `Unavailable` after `"lsp": false`."""
    service.workspaces.of(client).require_enabled()
    known = reported_files(service, client)
    if not known:
        return _nothing_known(service, client)
    checked = await service.check(client, known[:MAX_KNOWN], patience=patience)
    return replace(checked, meta=replace(checked.meta, truncated=len(known) > MAX_KNOWN))


def _nothing_known(service: Service, client: ClientSession) -> DiagnosticsAnswer:
    """Never fresh: that no server has complained says nothing about the files that none has seen."""
    workspace = service.workspaces.of(client)
    entries = service.pool.entries().items()
    running = sum(isinstance(entry.slot, Running) and workspace.holds(key.root) for key, entry in entries)
    caveat = "no file is known to have diagnostics; one that was not opened has not been checked"
    return answer_from(Operation.DIAGNOSTICS, {}, Effort(server_hits=running, caveats=(caveat,)))
