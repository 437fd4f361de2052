"""What the servers of a workspace said last about its files, as they said it: for people who watch, and no verdict.

Nothing is asked and nothing is opened. Lines are the servers' own, counted from 1, which is the same in all encodings.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.model import AbsPath, Severity
from pilotfish.protocol.diagnostics import Push, Report
from pilotfish.protocol.wire import WireDiagnostic
from pilotfish.service.service import Service
from pilotfish.service.workspace import Workspace


class ReportedDiagnostic(Struct, frozen=True):
    """One diagnostic that a server holds."""

    line: int
    severity: Severity
    message: str
    server: str


def reported_diagnostics(service: Service, workspace: Workspace) -> Mapping[AbsPath, tuple[ReportedDiagnostic, ...]]:
    """By file, the gravest first; files without any are not there."""
    found: dict[AbsPath, list[ReportedDiagnostic]] = {}
    for key, entry in service.pool.entries().items():
        if entry.session is not None and workspace.holds(key.root):
            for path, diagnostic in _of(entry.session, key.server):
                found.setdefault(path, []).append(diagnostic)
    return {path: tuple(sorted(found[path], key=lambda one: (one.severity, one.line))) for path in sorted(found)}


def _of(session: Session, server: str) -> Iterator[tuple[AbsPath, ReportedDiagnostic]]:
    for path in session.reports.files_with_items():
        for item in _items(session, path):
            severity = Severity(min(max(item.severity or 1, 1), 4))
            yield path, ReportedDiagnostic(item.range.start.line + 1, severity, _message(item), server)


def _items(session: Session, path: AbsPath) -> Iterator[WireDiagnostic]:
    """A file that was both pushed and pulled counts as pulled."""
    channels = session.reports.of(path)
    pulled: list[Report] = [report for channel, report in channels.items() if channel != Push()]
    for report in pulled or channels.values():
        yield from report.items


def _message(item: WireDiagnostic) -> str:
    """A string, or since 3.18 markup."""
    message: object = item.message
    if isinstance(message, dict):
        message = cast("dict[str, object]", message).get("value", "")
    return str(message)
