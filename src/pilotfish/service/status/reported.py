"""What servers have reported about the files of a workspace: as they said it, or checked again (DIAG-6).

`reported_diagnostics` asks nothing and opens nothing: it is for people who watch, and not a verdict. Its lines are
the servers' own, counted from 1, which is the same in all encodings.
`check_reported_files` checks every file of which any running server holds diagnostics: what a server said before an
edit is not an answer after it.
"""

import os
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import DiagnosticsAnswer, Effort, answer_from
from pilotfish.api.questions import Operation
from pilotfish.client.session import Session
from pilotfish.model import AbsPath, Severity
from pilotfish.policy.boundary import Place, classify
from pilotfish.pool.plan import Running
from pilotfish.protocol.diagnostics import Push, Report, words_of
from pilotfish.protocol.wire import WireDiagnostic
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.service import Service
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession

MAX_CHECKED = 50
"""Files that are checked at once. A server that reports on a whole project may hold thousands."""


class ReportedDiagnostic(Struct, frozen=True):
    """One diagnostic that a server reported last."""

    line: int
    severity: Severity
    message: str
    server: str


def reported_diagnostics(service: Service, workspace: Workspace) -> Mapping[AbsPath, tuple[ReportedDiagnostic, ...]]:
    """By file, the most severe first; files without diagnostics are not listed.

    What a file had when it was last checked goes before what servers say of it: they forget files that are closed, and
    speak of texts that were only proposed.
    """
    checked = service.states.last()
    found = {
        path: [ReportedDiagnostic(one.range.start.line + 1, one.severity, one.message, one.server) for one in last]
        for path, last in checked.items()
        if last and classify(path, workspace.boundary) is Place.IN_ROOT
    }
    for key, entry in service.pool.entries().items():
        if entry.session is not None and workspace.holds(key.root):
            for path, diagnostic in _of(entry.session, key.server):
                if path not in checked:
                    found.setdefault(path, []).append(diagnostic)
    # Two places in one line look alike here.
    listed = {path: dict.fromkeys(found[path]) for path in sorted(found)}
    return {path: tuple(sorted(listed[path], key=lambda one: (one.severity, one.line))) for path in listed}


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


def _of(session: Session, server: str) -> Iterator[tuple[AbsPath, ReportedDiagnostic]]:
    for path in session.reports.files_with_items():
        for item in _items(session, path):
            severity = Severity(min(max(item.severity or 1, 1), 4))
            yield path, ReportedDiagnostic(item.range.start.line + 1, severity, words_of(item)[1], server)


def _items(session: Session, path: AbsPath) -> Iterator[WireDiagnostic]:
    """A file that was both pushed and pulled counts as pulled."""
    channels = session.reports.of(path)
    pulled: list[Report] = [report for channel, report in channels.items() if channel != Push()]
    for report in pulled or channels.values():
        yield from report.items
