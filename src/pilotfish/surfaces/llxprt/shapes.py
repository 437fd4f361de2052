"""Diagnostics and status as LLxprt has them on its wire. Pure.

There are two shapes of each: that of its specification and that of the program it ships. What we send has the members
of both, so either reader finds its own. Its formatter puts a message between tags as it comes, so it leaves here clean,
on one line and escaped.
"""

from collections.abc import Collection, Iterable, Mapping

from pilotfish.api.answers import Diagnostic
from pilotfish.api.status import ServerRow
from pilotfish.model import Severity
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME, MAX_PATH
from pilotfish.protocol.wire import JsonObject
from pilotfish.sanitise import escaped_message, sanitised
from pilotfish.service.status.snapshot import state_of

SEVERITIES: Mapping[str, tuple[str, Severity]] = {
    "error": ("error", Severity.ERROR),
    "warning": ("warning", Severity.WARNING),
    "information": ("info", Severity.INFORMATION),
    "hint": ("hint", Severity.HINT),
}
"""Our word → theirs, and what a configuration calls it."""

STATES: Mapping[str, tuple[str, str | None]] = {
    "connected": ("active", "ok"),
    "spawning": ("starting", "starting"),
    "broken": ("broken", "broken"),
    "disabled": ("disabled", None),
    "idle": ("idle", "idle"),
    "unavailable": ("unavailable", None),
}
"""Our state → `status` of the specification, `state` of the program, which has no word for some and then shows the
other."""


def file_diagnostics(path: str, found: Iterable[Diagnostic], severities: Collection[Severity]) -> list[JsonObject]:
    """What is wrong with one file, of the severities that count, by line and column."""
    counting = [one for one in found if SEVERITIES[one.severity][1] in severities]
    return [_diagnostic(path, one) for one in sorted(counting, key=lambda one: (one.line, one.character))]


def all_diagnostics(
    found: Mapping[str, Iterable[Diagnostic]], severities: Collection[Severity]
) -> dict[str, list[JsonObject]]:
    """By path ascending, files without any left out."""
    files = {sanitised(path, MAX_PATH): file_diagnostics(path, found[path], severities) for path in sorted(found)}
    return {path: listed for path, listed in files.items() if listed}


def server_status(row: ServerRow, language: str, pid: int | None, shortcoming: str | None) -> JsonObject:
    """One server. `shortcoming` says why it could not be started; None when it could, or runs."""
    state = state_of(row)
    if state == "idle" and shortcoming is not None:
        state = "unavailable"
    status, theirs = STATES[state]
    detail = row.broken.last_error if row.broken is not None else shortcoming if state == "unavailable" else None
    return {
        "id": row.server_id,
        "serverId": row.server_id,
        "status": status,
        **({} if theirs is None else {"state": theirs}),
        "healthy": state == "connected",
        "language": language,
        **({} if pid is None else {"serverPid": pid}),
        **({} if detail is None else {"detail": sanitised(detail, MAX_MESSAGE)}),
    }


def _diagnostic(path: str, found: Diagnostic) -> JsonObject:
    return {
        "file": sanitised(path, MAX_PATH),
        "line": found.line,
        "column": found.character,
        "character": found.character,
        "severity": SEVERITIES[found.severity][0],
        "message": escaped_message(sanitised(found.message, MAX_MESSAGE)),
        **({} if found.code is None else {"code": escaped_message(sanitised(found.code, MAX_NAME))}),
        **({} if found.source is None else {"source": sanitised(found.source, MAX_NAME)}),
    }
