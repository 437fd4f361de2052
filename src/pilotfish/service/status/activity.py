"""The diagnostics of a workspace and what its agents were told, as the page and the panel show them."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain

from msgspec.structs import replace

from pilotfish.api.answers import DiagnosticsAnswer, Effort, answer_from, severity_word
from pilotfish.api.questions import Operation
from pilotfish.api.status import Activity, ChangedLines, FeedbackShown, FileReport, QuestionShown, Said
from pilotfish.model import AbsPath, Severity
from pilotfish.policy.boundary import Place, classify
from pilotfish.pool.plan import Running
from pilotfish.sanitise import sanitised
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.service import Service
from pilotfish.service.status.recent_feedback import AnsweredQuestion, ShownFeedback
from pilotfish.service.status.snapshot import CurrentDiagnostic, counts_of, current_diagnostics
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession

MAX_FILES = 40
MAX_DIAGNOSTICS = 10
"""What is shown of a workspace, and of a file; the rest is counted."""

MAX_CHANGES = 6
MAX_LINES = 8
MAX_LINE = 200
"""What is shown of an edit: its places, lines of each, characters of a line."""

MAX_COMPARED = 400
"""Lines of either side that are compared; more are one place."""


def activity(service: Service, client: ClientSession) -> Activity:
    """Of the client's workspace. Raises `Failure` when that cannot be read."""
    files = current_diagnostics(service.states, service.pool.entries(), service.workspaces.of(client))

    def weight(path: AbsPath) -> tuple[int, ...]:
        """The most errors first, then warnings and so on."""
        return tuple(-sum(one.severity is severity for one in files[path]) for severity in Severity)

    worst = sorted(files, key=lambda path: (weight(path), path))
    return Activity(
        files=tuple(_report(path, files[path], client.root) for path in worst[:MAX_FILES]),
        more_files=max(0, len(files) - MAX_FILES),
        feedback=tuple(
            feedback_shown(shown) for shown in service.recent_feedback.all() if shown.client.root == client.root
        ),
    )


def feedback_shown(shown: ShownFeedback) -> FeedbackShown:
    root = shown.client.root
    places = (_changed(os.path.relpath(one.path, root), one.before, one.after) for one in shown.edits)
    return FeedbackShown(
        at=round(shown.at * 1000),
        root=root,
        host=shown.client.host,
        session=shown.client.id,
        conversation=shown.client.conversation,
        paths=shown.paths,
        feedback=shown.feedback,
        changes=tuple(chain.from_iterable(places)),
    )


def question_shown(asked: AnsweredQuestion) -> QuestionShown:
    question, client = asked.question, asked.client
    file = question.file_path and os.path.relpath(os.path.join(client.cwd, question.file_path), client.root)
    place = ":".join(str(part) for part in (file, question.line, question.character) if part)
    about = " ".join(filter(None, (place, question.symbol, question.query, question.new_name or question.new_path)))
    return QuestionShown(
        at=round(asked.at * 1000),
        root=client.root,
        host=client.host,
        session=client.id,
        conversation=client.conversation,
        operation=question.operation,
        about=sanitised(about, MAX_LINE),
        state=asked.meta.state,
        duration_ms=asked.meta.duration_ms,
        results=asked.meta.total,
    )


def _report(path: AbsPath, reported: Sequence[CurrentDiagnostic], root: AbsPath) -> FileReport:
    return FileReport(
        path=os.path.relpath(path, root),
        diagnostics=tuple(
            Said(line=one.line, severity=severity_word(one.severity), message=one.message, server=one.server)
            for one in reported[:MAX_DIAGNOSTICS]
        ),
        counts=counts_of(reported),
        more=max(0, len(reported) - MAX_DIAGNOSTICS),
        outdated=any(one.outdated for one in reported),
    )


@lru_cache(maxsize=128)
def _changed(path: str, before: str, after: str) -> tuple[ChangedLines, ...]:
    old, new = before.splitlines(), after.splitlines()
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    same = 0
    while same < min(len(old), len(new)) - start and old[-1 - same] == new[-1 - same]:
        same += 1
    old, new = old[start : len(old) - same], new[start : len(new) - same]
    if max(len(old), len(new)) > MAX_COMPARED:
        places = [(0, old, new)]
    else:
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        places = [(at, old[first:last], new[at:end]) for kind, first, last, at, end in codes if kind != "equal"]
    return tuple(
        ChangedLines(
            path=path,
            line=start + first + 1,
            old=tuple(_clean(line) for line in removed[:MAX_LINES]),
            new=tuple(_clean(line) for line in added[:MAX_LINES]),
            more=max(0, len(removed) - MAX_LINES) + max(0, len(added) - MAX_LINES),
        )
        for first, removed, added in places[:MAX_CHANGES]
    )


def _clean(line: str) -> str:
    """The line without control characters; its indentation stays."""
    bare = line.expandtabs(4).lstrip(" ")
    return " " * min(MAX_LINE, len(line.expandtabs(4)) - len(bare)) + sanitised(bare, MAX_LINE)


# --- Every file that servers have reported on, checked again (DIAG-6) -------------------------------------------------

MAX_CHECKED = 50
"""Files that are checked at once. A server that reports on a whole project may hold thousands."""


async def check_reported_files(
    service: Service,
    client: ClientSession,
    patience: Patience,
    texts: Mapping[AbsPath, str] | None = None,
) -> DiagnosticsAnswer:
    """Check every file of which any running server holds diagnostics: what it said then is no answer after an edit.

    Those in `texts` with these, and not as they are on disk. Raises `Unavailable` after `"lsp": false`.
    """
    workspace, given = service.workspaces.of(client), texts or {}
    workspace.require_enabled()
    entries = [entry for key, entry in service.pool.entries().items() if workspace.holds(key.root)]
    reported = {path for entry in entries if entry.session for path in entry.session.reports.files_with_items()}
    known = _still_there(workspace, reported, given)
    if not known:
        # Never fresh: no report says nothing about files that no server has read.
        running = sum(isinstance(entry.slot, Running) for entry in entries)
        caveat = "no server has reported diagnostics; files that were not opened were not checked"
        return answer_from(Operation.DIAGNOSTICS, {}, Effort(server_hits=running, caveats=(caveat,)))
    asked = known[:MAX_CHECKED]
    proposed: dict[str, str] = {path: text for path, text in given.items() if path in asked}
    checked = await service.check(client, asked, texts=proposed, written=True, patience=patience, workspace=workspace)
    return replace(checked, meta=replace(checked.meta, truncated=len(known) > MAX_CHECKED))


def _still_there(workspace: Workspace, reported: Iterable[AbsPath], given: Collection[AbsPath]) -> list[AbsPath]:
    """The files of the workspace; those of a proposed text need not be on disk."""
    ours = (path for path in reported if classify(path, workspace.boundary) is Place.IN_ROOT)
    return sorted(path for path in ours if path in given or os.path.isfile(path))
