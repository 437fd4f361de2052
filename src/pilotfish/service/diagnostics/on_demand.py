"""Diagnostics by `workspace/executeCommand`, for servers without pull; the catalogue names the command.

The only shape of an answer so far is that of tsserver: 1-based lines, 1-based UTF-16 offsets, a category word. Without
one, what the server has published before it answers is the answer.

A file that is not open is asked about where a server judges those rightly, by this command or by a pull: opening many
files costs it much. The text is the one on disk, and the server was told of every change there before. The project is
that of an open file with the same project file nearest to it: another project may judge a file in another way.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, UnsetType

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Scene, ServerFailed
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.paths import ancestors, is_inside
from pilotfish.protocol.codec import Malformed, decode, decode_items
from pilotfish.protocol.diagnostics import Push, Report, diagnostics_of, merged
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.protocol.wire import UNSET, DocumentDiagnosticReport, WireDiagnostic, WirePosition, WireRange
from pilotfish.servers.spec import OnDemand
from pilotfish.service.diagnostics.ledger import FileToSend, Ledger
from pilotfish.system.clock import current_time

COMMAND = "workspace/executeCommand"
ON_DEMAND = "on demand"
"""The identifier of these reports among those of pull providers."""

TRIES = 3
"""An answer during which something was sent may be of two states."""

T = TypeVar("T")

MAX_REREAD = 50
"""Files that are named one by one: from some hundred on, reading all of a thousand again takes no longer."""


class _Place(Struct, frozen=True):
    line: int
    offset: int


class _Finding(Struct, frozen=True):
    start: _Place
    end: _Place
    text: str
    category: str = "error"
    code: int | None = None
    source: str | None = None


class _Reply(Struct, frozen=True):
    success: bool = False
    """Not said where there was nobody to ask: a server may outlive what does its work."""
    message: str = ""
    body: Raw = Raw(b"[]")


class _Project(Struct, frozen=True):
    configFileName: str | None = None  # noqa: N815 -- as tsserver spells it


_CATEGORIES = {"error": 1, "warning": 2, "suggestion": 4, "message": 3}


async def ask_on_demand(
    session: Session, on_demand: OnDemand, path: AbsPath, *, timeout: float, project: str | None = None
) -> DocumentDiagnosticReport:
    """Run every request of the command for one file; one that fails fails the whole.

    `project`: the project of a file that is not open.
    """
    assert on_demand.shape is not None  # else `ask_to_publish` is the way
    shape, items = SHAPES[on_demand.shape], list[WireDiagnostic]()
    about = {"file": path, **({} if project is None else {"projectFileName": project})}
    asked = [_asked(on_demand, request, about) for request in on_demand.requests]
    for answer in await session.request_all(COMMAND, asked, timeout=timeout):
        items += shape(session, answer)
    return DocumentDiagnosticReport(items=Raw(msgspec.json.encode(items)))


async def ask_to_publish(session: Session, on_demand: OnDemand, path: AbsPath, *, timeout: float) -> Report | None:
    """Run the command for one file; None where the server has answered and published nothing."""
    arrivals = session.reports.arrivals
    asked = {"command": on_demand.command, "arguments": [uri_of(path), *on_demand.arguments]}
    await session.request(COMMAND, asked, timeout=timeout)
    push = session.reports.of(path).get(Push())
    return push if push is not None and push.arrival > arrivals else None


async def ask_about(
    session: Session,
    on_demand: OnDemand,
    request: str | None,
    about: Iterable[Mapping[str, object]],
    kind: type[T],
    *,
    timeout: float,
) -> list[T]:
    """The body of each answer; raises `Malformed` where one is of another kind, and as `Session.request`."""
    asked = [_asked(on_demand, request, one) for one in about]
    answers = await session.request_all(COMMAND, asked, timeout=timeout)
    return [decode(decode(answer, _Reply).body, kind) for answer in answers]


class Unopened:
    """One file that is not open at one server."""

    def __init__(self, session: Session, ledger: Ledger, file: FileToSend) -> None:
        self._session = session
        self._ledger = ledger
        self._file = file

    async def pulled(self, deadline: float) -> tuple[Diagnostic, ...] | None:
        """What the server answers to a pull; None where the file must be opened. Raises the session's failure."""

        async def ask() -> tuple[Diagnostic, ...] | None:
            reports = await self._session.pull_unopened(self._file.path, timeout=deadline - current_time())
            lists = [self._diagnostics(report.items) for report in reports]
            found = [one for one in lists if one is not None]
            return merged(found) if reports and len(found) == len(lists) else None

        return await self._answered(ask)

    async def commanded(self, on_demand: OnDemand, deadline: float) -> tuple[Diagnostic, ...] | None:
        """What the server answers to a command; None where the file must be opened. Raises the session's failure."""
        if on_demand.project is None:
            return None

        async def ask() -> tuple[Diagnostic, ...] | None:
            project = await self._project(on_demand, deadline)
            if project is None:
                return None
            left = deadline - current_time()
            answer = await ask_on_demand(self._session, on_demand, self._file.path, timeout=left, project=project)
            return self._diagnostics(Raw(b"[]") if answer.items is UNSET else answer.items)

        async with self._ledger.commanding(self._session):
            return await self._answered(ask)

    async def _answered(
        self, ask: Callable[[], Awaitable[tuple[Diagnostic, ...] | None]]
    ) -> tuple[Diagnostic, ...] | None:
        try:
            for _ in range(TRIES):
                changes, started = self._ledger.changes, current_time()
                found = await ask()
                self._ledger.costs.learn(self._file.path, current_time() - started)
                if await self._ledger.is_as_before(changes):
                    return found
        except ServerFailed:
            if self._session.failure is not None:
                raise
        return None

    async def _project(self, on_demand: OnDemand, deadline: float) -> str | None:
        """The project of the nearest project file, if an open file near it is of that project.

        That file may only name others: then the one of these that has all open files near it. Where it does not have
        ours, the server refuses to answer.
        """
        session, known, nearest = self._session, self._ledger.projects, self._nearest(on_demand, self._file.path)
        if nearest is None or self._file.path in known:
            return known.get(self._file.path)
        near = [path for path in session.documents.paths if self._nearest(on_demand, path) == nearest]
        unknown = [path for path in near if path not in known]
        about, left = [{"file": path, "needFileNameList": False} for path in unknown], deadline - current_time()
        try:
            said = await ask_about(session, on_demand, on_demand.project, about, _Project, timeout=left)
        except Malformed:
            return None
        known |= {path: one.configFileName for path, one in zip(unknown, said, strict=True)}
        found = {known[path] for path in near}
        if nearest in found:
            return nearest
        project = found.pop() if len(found) == 1 else None
        return project if project is not None and is_inside(project, os.path.dirname(nearest)) else None

    def _diagnostics(self, items: Raw | UnsetType) -> tuple[Diagnostic, ...] | None:
        try:
            decoded = decode_items(items, WireDiagnostic) if items is not UNSET else None
        except Malformed:
            return None
        if decoded is None:
            return None
        report = Report(decoded.items, None, 0)
        encoding, server = self._session.encoding, self._session.server
        text, path = Text(self._file.text), self._file.path
        return diagnostics_of(report, text=text, encoding=encoding, server=server, path=path)

    def _nearest(self, on_demand: OnDemand, path: AbsPath) -> str | None:
        """The project file nearest to a file, not above the root."""
        for folder in ancestors(os.path.dirname(path), self._session.root):
            for name in on_demand.project_files:
                if os.path.isfile(os.path.join(folder, name)):
                    return os.path.join(folder, name)
        return None


async def reread(session: Session, changes: Iterable[PathChange]) -> bool:
    """Make a server that does not do so by itself read again what has changed on disk; False: it is too busy.

    The requests go out at once: what is asked after that is answered from what they have read. A server that refuses
    cannot be believed any more, and is ended. Raises its failure when it ends meanwhile.
    """
    on_demand = session.freshness.on_demand
    if on_demand is None or on_demand.reread is None:
        return True
    is_open = session.documents.is_open
    # One that is gone is closed after this.
    unopened = [one for one in session.wanted(changes) if one.change is Change.DELETED or not is_open(one.path)]
    asked = [_asked(on_demand, *one) for one in _rereading(on_demand, unopened)]
    try:
        answers = await session.request_all(COMMAND, asked) if asked else []
        is_done = all(decode(answer, _Reply).success for answer in answers)
    except (Failure, Malformed) as refusal:
        if session.failure is not None:
            raise session.failure from refusal
        if isinstance(refusal, Failure) and refusal.code is Code.REQUEST_TIMEOUT:
            return False
        is_done = False
    if not is_done:
        session.fail("did not read again what has changed on disk")
    return is_done


def _rereading(on_demand: OnDemand, unopened: list[PathChange]) -> list[tuple[str, dict[str, str]]]:
    assert on_demand.reread is not None
    is_known = all(found.change is Change.CHANGED for found in unopened)
    if unopened and on_demand.reread_all is not None and not (is_known and len(unopened) <= MAX_REREAD):
        return [(on_demand.reread_all, {})]
    return [(on_demand.reread, {"file": found.path, "tmpfile": found.path}) for found in unopened]


def _asked(on_demand: OnDemand, request: str | None, about: Mapping[str, object]) -> Mapping[str, object]:
    return {"command": on_demand.command, "arguments": [request, about]}


def _tsserver(session: Session, answer: Raw) -> list[WireDiagnostic]:
    scene = Scene(server=session.server, root=session.root, pid=session.pid)
    try:
        reply = decode(answer, _Reply)
        findings = decode_items(reply.body, _Finding)
    except Malformed as malformed:
        raise ServerFailed(Code.PROTOCOL_ERROR, f"{session.server}: {malformed}", scene=scene) from malformed
    if not reply.success or findings.skipped:
        raise ServerFailed(Code.SERVER_ERROR, f"{session.server}: {reply.message or 'malformed answer'}", scene=scene)
    return [_wire(finding) for finding in findings.items]


def _wire(finding: _Finding) -> WireDiagnostic:
    place = WireRange(_position(finding.start), _position(finding.end))
    return WireDiagnostic(
        range=place,
        message=finding.text,
        severity=_CATEGORIES.get(finding.category, 1),
        code=finding.code,
        source=finding.source or "typescript",
    )


def _position(place: _Place) -> WirePosition:
    return WirePosition(place.line - 1, place.offset - 1)


SHAPES: Mapping[str, Callable[[Session, Raw], list[WireDiagnostic]]] = {"tsserver": _tsserver}
