"""What is wrong in the files of a workspace now, as far as anybody knows: for people who watch, and not a verdict.

It asks nothing and opens nothing. What a file had when it was last checked goes before what servers say of it: they
forget files that are closed, and speak of texts that were only proposed. What is known to be of an older text is left
out, and what something that was changed since may have mended is marked. Lines are counted from 1.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from pilotfish.api.status import Counts
from pilotfish.client.session import Session
from pilotfish.model import AbsPath, Severity
from pilotfish.policy.boundary import Place, classify
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Key
from pilotfish.protocol.diagnostics import Push, words_of
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.workspace import Workspace


class CurrentDiagnostic(Struct, frozen=True):
    line: int
    severity: Severity
    message: str
    server: str
    outdated: bool = False
    """Whether something was changed since that may have mended it."""


ByFile = Mapping[AbsPath, tuple[CurrentDiagnostic, ...]]


def current_diagnostics(states: FileStates, entries: Mapping[Key, Entry], workspace: Workspace) -> ByFile:
    """By file, the most severe first; files without diagnostics are not listed."""
    found = dict[AbsPath, list[CurrentDiagnostic]]()
    for path, last in states.last().items():
        if last and classify(path, workspace.boundary) is Place.IN_ROOT:
            outdated = not states.is_current(path)
            found[path] = [
                CurrentDiagnostic(one.range.start.line + 1, one.severity, one.message, one.server, outdated)
                for one in last
            ]
    for key, entry in entries.items():
        if entry.session is not None and workspace.holds(key.root):
            for path in entry.session.reports.files_with_items():
                if not states.knows(path):
                    found.setdefault(path, []).extend(_said(entry.session, path))
    # Two places in one line look alike here.
    listed = {path: dict.fromkeys(found[path]) for path in sorted(found) if found[path]}
    return {path: tuple(sorted(listed[path], key=lambda one: (one.severity, one.line))) for path in listed}


def _said(session: Session, path: AbsPath) -> Iterator[CurrentDiagnostic]:
    """What a server said of the text that it has now. A file that was both pushed and pulled counts as pulled."""
    documents, channels = session.documents, session.reports.of(path)
    version = documents.version(path) if documents.is_open(path) else None
    pulled = [report for channel, report in channels.items() if channel != Push()]
    for report in pulled or channels.values():
        if version is None or report.version in (None, version):
            for item in report.items:
                severity = Severity(min(max(item.severity or 1, 1), 4))
                yield CurrentDiagnostic(item.range.start.line + 1, severity, words_of(item)[1], session.server)


def counts_of(found: Iterable[CurrentDiagnostic]) -> Counts:
    by_severity = Counter(one.severity for one in found)
    error, warning, info, hint = (by_severity[severity] for severity in Severity)
    return Counts(error, warning, info, hint, by_severity.total())
