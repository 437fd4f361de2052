"""The views of the panel besides the list of servers, as lines: diagnostics, feedback, the log of a server. Pure.

Everything that comes from a server or a file is sanitised here (T32).
"""

import time
from collections.abc import Iterator

from pilotfish.api.status import Activity, ChangedLines, FeedbackShown, FileReport
from pilotfish.counting import counted
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.terminal.status_text import relative
from pilotfish.surfaces.cli.terminal.units import latency

MAX_TEXT = 500

TITLES = {"diagnostics": "Diagnostics", "feedback": "What agents were told", "log": "Log"}


def diagnostics_lines(activity: Activity) -> Iterator[str]:
    """By file, the worst first."""
    if not activity.files:
        yield "no diagnostics in the files that servers have seen"
    for file in activity.files:
        yield f"{sanitised(file.path, MAX_TEXT)}: {_counts(file)}"
        for said in file.diagnostics:
            message = sanitised(said.message.replace("\n", " "), MAX_TEXT)
            yield f"  {said.line}: {said.severity}: {message} ({said.server})"
        if file.more:
            yield f"  … and {file.more} more"
    if activity.more_files:
        yield f"… and {counted(activity.more_files, 'more file')}"


def feedback_lines(activity: Activity) -> Iterator[str]:
    """The newest first: the edit, then what its agent read."""
    if not activity.feedback:
        yield "no edits yet"
    for shown in activity.feedback:
        yield from _feedback(shown)
        yield ""


def log_lines(lines: tuple[str, ...]) -> Iterator[str]:
    if not lines:
        yield "it has written nothing"
    yield from (sanitised(line, MAX_TEXT) for line in lines)


def _counts(file: FileReport) -> str:
    severities = [said.severity for said in file.diagnostics]
    found = [(name, severities.count(name)) for name in ("error", "warning")]
    others = len(severities) - sum(number for _, number in found) + file.more
    return ", ".join(counted(number, name) for name, number in (*found, ("other", others)) if number)


def _feedback(shown: FeedbackShown) -> Iterator[str]:
    at = time.strftime("%H:%M:%S", time.localtime(shown.at / 1000))
    files = ", ".join(sanitised(relative(path, shown.root), MAX_TEXT) for path in shown.paths)
    feedback = shown.feedback
    facts = f"{feedback.introduced} new, {feedback.fixed} fixed, {latency(feedback.duration_ms)}"
    yield f"{at} {shown.host or 'a client'} {files}: {feedback.state}, {facts}"
    for change in shown.changes:
        yield from _change(change)
    for line in (feedback.text or "nothing was told: this edit caused no error").splitlines():
        yield f"  {sanitised(line, MAX_TEXT)}"


def _change(change: ChangedLines) -> Iterator[str]:
    yield f"  {sanitised(change.path, MAX_TEXT)}:{change.line}"
    yield from (f"  - {line}" for line in change.old)
    yield from (f"  + {line}" for line in change.new)
    if change.more:
        yield f"  … and {counted(change.more, 'more line')}"
