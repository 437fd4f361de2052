"""Diagnostics by `workspace/executeCommand`, for servers without pull; the catalogue names the command.

The only shape so far is that of tsserver: 1-based lines, 1-based UTF-16 offsets, a category word.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Raw, Struct

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Scene, ServerFailed
from pilotfish.model import AbsPath
from pilotfish.protocol.codec import Malformed, decode, decode_items
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.protocol.wire import DocumentDiagnosticReport, WireDiagnostic, WirePosition, WireRange
from pilotfish.servers.spec import OnDemand

COMMAND = "workspace/executeCommand"
ON_DEMAND = "on demand"
"""The identifier of these reports among those of pull providers."""

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
    shape, items = SHAPES[on_demand.shape], list[WireDiagnostic]()
    about = {"file": path, **({} if project is None else {"projectFileName": project})}
    asked = [_asked(on_demand, request, about) for request in on_demand.requests]
    for answer in await session.request_all(COMMAND, asked, timeout=timeout):
        items += shape(session, answer)
    return DocumentDiagnosticReport(items=Raw(msgspec.json.encode(items)))


async def project_of(session: Session, on_demand: OnDemand, path: AbsPath, *, timeout: float) -> str | None:
    """The file that describes the project of an open file; None where there is none."""
    asked = _asked(on_demand, on_demand.project, {"file": path, "needFileNameList": False})
    (answer,) = await session.request_all(COMMAND, [asked], timeout=timeout)
    try:
        return decode(decode(answer, _Reply).body, _Project).configFileName
    except Malformed:
        return None


async def reread(session: Session, changes: Iterable[PathChange]) -> bool:
    """Make a server that does not do so by itself read again what has changed on disk; False: it is too busy.

    The requests go out at once: what is asked after that is answered from what they have read. A server that refuses
    cannot be believed any more, and is ended. Raises its failure when it ends meanwhile.
    """
    on_demand = session.on_demand
    if on_demand is None or on_demand.reread is None:
        return True
    unopened = [found for found in session.wanted(changes) if not session.documents.is_open(found.path)]
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
