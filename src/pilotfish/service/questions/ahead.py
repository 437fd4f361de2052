"""Asking first and looking meanwhile: what was asked of a file before leaves for the same servers at once.

The answer never rests on this. The question goes its whole way: the configuration, the disk and the text are looked at
as if nothing had been asked. It takes over an early request only where it would send the same one to the same server,
and nothing was told to that server in between (`client.early`). So an answer is as fresh as without it, and what we do
costs no time as long as the server needs longer.
"""

import weakref

from msgspec import Struct

from pilotfish.api.questions import Operation, Question
from pilotfish.client.early import Early
from pilotfish.client.session import Session
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.operations.locate import place_in
from pilotfish.operations.request_context import RequestContext
from pilotfish.operations.rows import ROWS, Request
from pilotfish.protocol.positions import position_to_wire
from pilotfish.protocol.uris import uri_of
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.recent import Recent
from pilotfish.service.workspaces import ClientSession

MAX_REMEMBERED = 1_000
"""Files, once for each operation; a question about another one waits until everything was looked at."""

AT_A_PLACE = frozenset({
    Operation.DEFINITION,
    Operation.DECLARATION,
    Operation.TYPE_DEFINITION,
    Operation.IMPLEMENTATION,
    Operation.REFERENCES,
    Operation.HOVER,
    Operation.SIGNATURE,
})  # fmt: skip
"""What needs nothing but a place in a file, and changes nothing at a server."""

_Key = tuple[AbsPath, AbsPath, str | None, str, Operation]


class _Answered(Struct, frozen=True):
    """Who answered the last question of its kind about a file."""

    path: AbsPath
    sessions: "tuple[weakref.ref[Session], ...]"


class Errand(Struct):
    """One question on its way: what left early, and who has answered it."""

    key: "_Key | None" = None
    early: dict[Session, Early] = {}
    path: AbsPath | None = None
    answered: list[Session] = []

    def note(self, session: Session, path: AbsPath | None) -> None:
        """A server was asked about this file and answered."""
        self.path = path
        self.answered.append(session)


class Ahead:
    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._known: Recent[_Key, _Answered] = Recent(MAX_REMEMBERED)

    def begin(self, question: Question, client: ClientSession) -> Errand:
        """Send what can be sent by now; `end` must follow."""
        key = _key(question, client)
        errand, known = Errand(key), None if key is None else self._known.get(key)
        request = ROWS[question.operation].request
        if known is not None and request is not None:
            for reference in known.sessions:
                session = reference()
                early = None if session is None else self._early(question, request, known.path, session)
                if session is not None and early is not None:
                    errand.early[session] = early
        return errand

    def end(self, errand: Errand) -> None:
        """Give up what nobody took, and remember who answered."""
        for early in errand.early.values():
            early.drop()
        if errand.key is not None and errand.path is not None:
            self._known.put(errand.key, _Answered(errand.path, tuple(map(weakref.ref, errand.answered))))

    def _early(self, question: Question, request: Request, path: AbsPath, session: Session) -> Early | None:
        if session.failure is not None or not self._ledgers.of(session).is_calm(session):
            return None
        documents = session.documents
        if not documents.is_open(path) or question.line is None or question.character is None:
            return None
        text = documents.text(path)
        try:
            position = place_in(text, path, question.line, question.character)
        except Refused:
            return None
        place = position_to_wire(position, text, session.encoding)
        asked = RequestContext(question, uri=uri_of(path), position=place)
        return session.ask_early(request.method, request.build(asked), path)


def _key(question: Question, client: ClientSession) -> _Key | None:
    """What questions have in common that go to the same servers; None for one that cannot leave early."""
    if question.operation not in AT_A_PLACE or question.file_path is None:
        return None
    if question.symbol is not None or question.line is None or question.character is None:
        return None
    return client.root, client.cwd, client.host, question.file_path, question.operation
