"""The methods of the LLxprt service, over the same service as every other surface.

A check without a verdict is answered with no diagnostics, because the host knows no other answer and no failure may
disturb an edit. So that the file is not taken for clean, the notification `lsp/verdict` is sent before the answer, with
the reason; a host that does not know it ignores it.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

import anyio
from msgspec import Raw

from pilotfish.api.answers import Diagnostic, State, severity_of
from pilotfish.api.status import ServerRow
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code, Failure, Refused
from pilotfish.model import AbsPath, Severity
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME, MAX_PATH
from pilotfish.protocol.codec import Malformed, decode, fields, items
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.wire import JsonObject
from pilotfish.sanitise import escaped_message, sanitised
from pilotfish.service.recent import Recent
from pilotfish.service.service import SOON, Service
from pilotfish.service.status.activity import check_reported_files
from pilotfish.service.status.snapshot import state_of
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import Notify
from pilotfish.system.real_path import real_path

logger = logging.getLogger(__name__)

STOP_SECONDS = 2.5
"""For stopping all servers before `lsp/shutdown` is answered: the host gives us three."""

MAX_WAIT_SECONDS = 60.0
"""For a check that never comes."""


class LlxprtMethods:
    """One host. The epoch counts the checks that have ended, whatever came of them (DIAG-7)."""

    def __init__(self, service: Service, client: ClientSession, notify: Notify) -> None:
        self._service = service
        self._client = client
        self._notify = notify
        self._given = GivenTexts(client.cwd)
        self._epoch = 0
        self._checked = Pulse()
        self.table: Mapping[str, Callable[[Raw], Awaitable[object]]] = {
            "lsp/checkFile": self._check_file,
            "lsp/diagnostics": self._diagnostics,
            "lsp/getDiagnosticEpoch": self._epoch_now,
            "lsp/getAllDiagnosticsAfter": self._diagnostics_after,
            "lsp/status": self._status,
            "lsp/shutdown": self._shutdown,
        }

    async def _check_file(self, params: Raw) -> list[JsonObject]:
        given = _arguments(params, "filePath", "text")
        path, text = given.get("filePath"), given.get("text")
        if not isinstance(path, str) or not isinstance(text, str | None):
            raise Refused(Code.INVALID_INPUT, "lsp/checkFile takes {filePath, text?}")
        path = path_of(path) or path
        texts = None if text is None else {path: text}
        self._given.put(path, text)
        try:
            answer = await self._service.check(self._client, (path,), texts=texts, written=True, patience=SOON)
        finally:
            self._epoch += 1
            self._checked.notify()
        found = (answer.data or {}).items()
        facts = (path, answer.meta.state, answer.meta.duration_ms, sum(len(some) for _, some in found))
        logger.debug("checked path=%s state=%s ms=%d found=%d timed_out=%s", *facts, answer.meta.timed_out)
        if answer.meta.state is not State.FRESH:
            verdict = {"filePath": path, "state": answer.meta.state, "reason": answer.meta.reason}
            self._notify("lsp/verdict", verdict)
        severities = self._severities()
        return [one for shown, some in found for one in file_diagnostics(shown, some, severities)]

    async def _diagnostics(self, _: Raw) -> dict[str, list[JsonObject]]:
        try:
            answer = await check_reported_files(self._service, self._client, SOON, texts=self._given.in_force())
        except Failure as failure:
            logger.info("no diagnostics: %s", failure.message)
            return {}
        return all_diagnostics(answer.data or {}, self._severities())

    async def _epoch_now(self, _: Raw) -> int:
        return self._epoch

    async def _diagnostics_after(self, params: Raw) -> dict[str, list[JsonObject]]:
        """All diagnostics, after the next check that the caller has not seen, or after `waitMs`."""
        given = _arguments(params, "afterEpoch", "waitMs")
        after, wait = given.get("afterEpoch", given.get("epoch", 0)), given.get("waitMs", 0)
        if not isinstance(after, int) or not isinstance(wait, int | float):
            raise Refused(Code.INVALID_INPUT, "lsp/getAllDiagnosticsAfter takes {afterEpoch, waitMs}")
        with anyio.move_on_after(min(max(wait / 1000, 0.0), MAX_WAIT_SECONDS)):
            while self._epoch <= after:
                await self._checked.wait()
        return await self._diagnostics(params)

    async def _status(self, _: Raw) -> list[JsonObject]:
        workspace = self._service.workspaces.of(self._client)
        pids = {
            key.server: entry.session.pid
            for key, entry in self._service.pool.entries().items()
            if entry.session is not None and workspace.holds(key.root)
        }
        rows = sorted(self._service.status(self._client).rows, key=lambda row: row.server_id)
        return [
            server_status(
                row,
                next(iter(workspace.specs[row.server_id].languages), row.server_id),
                pids.get(row.server_id),
                None if row.disabled or (why := workspace.shortcoming(row.server_id)) is None else why.message,
            )
            for row in rows
        ]

    async def _shutdown(self, _: Raw) -> None:
        with anyio.move_on_after(STOP_SECONDS):
            await self._service.pool.stop_all()

    def _severities(self) -> Collection[Severity]:
        return self._service.workspaces.of(self._client).config.feedback.severities


def _arguments(params: Raw, *names: str) -> dict[str, object]:
    """Parameters by name, or by position in the order of `names`; null is absent."""
    try:
        value = decode(params, object)
    except Malformed as malformed:
        raise Refused(Code.INVALID_INPUT, str(malformed)) from None
    given = fields(value) or dict(zip(names, items(value), strict=False))
    return {name: item for name, item in given.items() if item is not None}


MAX_TEXTS = 100


class GivenTexts:
    """The texts that the host has sent for files, which count until a file changes on disk."""

    def __init__(self, cwd: AbsPath) -> None:
        self._cwd = cwd
        self._texts: Recent[AbsPath, tuple[str, tuple[int, ...]]] = Recent(MAX_TEXTS)

    def put(self, path: str, text: str | None) -> None:
        """The text of a file from now on; None: what is on disk."""
        real = AbsPath(real_path(os.path.join(self._cwd, path)))
        if text is None:
            self._texts.drop(lambda known: known == real)
        else:
            self._texts.put(real, (text, _disk_state(real)))

    def in_force(self) -> Mapping[AbsPath, str]:
        """By path; a text whose file has changed since is dropped."""
        self._texts.drop(self._is_over)
        kept = ((path, self._texts.get(path)) for path in self._texts)
        return {path: one[0] for path, one in kept if one is not None}

    def _is_over(self, path: AbsPath) -> bool:
        known = self._texts.get(path)
        return known is not None and known[1] != _disk_state(path)


def _disk_state(path: AbsPath) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


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
    counting = [one for one in found if severity_of(one.severity) in severities]
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
        "severity": "info" if found.severity == "information" else found.severity,
        "message": escaped_message(sanitised(found.message, MAX_MESSAGE)),
        **({} if found.code is None else {"code": escaped_message(sanitised(found.code, MAX_NAME))}),
        **({} if found.source is None else {"source": sanitised(found.source, MAX_NAME)}),
    }
