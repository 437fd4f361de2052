"""One bare session as the marker tests see it: what is right here is right on the wire."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal, cast

import anyio
import msgspec

from pilotfish.api.answers import Diagnostic, Effort, Hover, Location, answer_from
from pilotfish.api.questions import Operation, Question
from pilotfish.client.session import Session, open_session
from pilotfish.model import AbsPath
from pilotfish.protocol.diagnostics import Pull, Push
from pilotfish.protocol.uris import path_of, uri_of
from pilotfish.protocol.wire import WireDiagnostic
from pilotfish.service.workspaces import Workspaces
from pilotfish.system.process import spawn
from support.markers.expectations import SEVERITIES
from support.oracles import naive_text
from support.servers.real import User
from support.via.surfaces import Accepts, Answer, Surface, client_of


class ViaSession:
    """Read with the least code that can.

    It knows nothing of freshness and of loading, so it asks again after every message until the answer is accepted, and
    after a moment without one: a message that came while it asked is not remembered.
    """

    gives_ends = True
    seconds: ClassVar = 30.0
    """A cold server on a busy machine needs ten; nothing that works comes near this."""
    moment: ClassVar = 0.5

    def __init__(self, session: Session, root: str, language_of: Callable[[str], str]) -> None:
        self._session = session
        self._root = root
        self._language_of = language_of

    @classmethod
    @asynccontextmanager
    async def opened(cls, user: User, file: str) -> AsyncGenerator[Surface]:
        workspace = Workspaces(user.places, user.environment).of(client_of(user))

        def path(name: str) -> AbsPath:
            return AbsPath(f"{user.workspace}/{name}")

        async def nothing_to_restore(*_: object) -> None:
            pass

        recipe = workspace.recipe(workspace.servers_for(path(file)).servers[0], nothing_to_restore)
        async with open_session(recipe.options(), spawn) as session:
            yield cls(
                session,
                str(user.workspace),
                lambda name: workspace.servers_for(path(name)).servers[0].language_id,
            )

    def takes(self, question: Question) -> bool:
        return question.operation in {Operation.DIAGNOSTICS, *_METHODS} and question.symbol is None

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        name = question.file_path or ""
        self._show(name)
        answer: Answer = answer_from(question.operation, None, Effort(caveats=("nothing has come yet",)))
        with anyio.move_on_after(self.seconds):
            while not accepts(answer):
                answer = await self._once(question, name)
                if not accepts(answer):
                    with anyio.move_on_after(self.moment):
                        await self._session.changed.wait()
        return answer

    def _show(self, name: str) -> None:
        """Make the server see the file as it is on disk."""
        path, documents = self._path(name), self._session.documents
        before = documents.version(path) if documents.is_open(path) else None
        if self._session.sync(path, self._language_of(name), self._text(name)) != before:
            self._session.save(path)

    async def _once(self, question: Question, name: str) -> Answer:
        if question.operation is Operation.DIAGNOSTICS:
            data = await self._diagnostics(name)
        else:
            data = await self._asked(question, name)
        if data is None:
            return answer_from(question.operation, None, Effort(caveats=("the server has said nothing yet",)))
        return answer_from(question.operation, data, Effort(server_hits=1))

    async def _diagnostics(self, name: str) -> Mapping[str, tuple[Diagnostic, ...]] | None:
        path = self._path(name)
        if self._session.supports("textDocument/diagnostic", path):
            await self._session.pull(path)
        channels = self._session.reports.of(path)
        pulled = [report for channel, report in channels.items() if isinstance(channel, Pull)]
        reports = pulled or [report for channel, report in channels.items() if channel == Push()]
        found = tuple(self._diagnostic(name, item) for report in reports for item in report.items)
        return {name: found} if reports else None

    def _diagnostic(self, name: str, item: WireDiagnostic) -> Diagnostic:
        severity = cast("Literal['error']", SEVERITIES[(item.severity or 1) - 1])
        place = self._extent(name, msgspec.to_builtins(item.range))
        return Diagnostic(**place, severity=severity, message=str(item.message), server=self._session.server)

    async def _asked(self, question: Question, name: str) -> tuple[Location, ...] | Hover | None:
        method, extra = _METHODS[question.operation]
        line, character = (question.line or 1) - 1, (question.character or 1) - 1
        before = naive_text.lines(self._text(name))[line][0][:character]
        params = {
            "textDocument": {"uri": uri_of(self._path(name))},
            "position": {"line": line, "character": naive_text.units(before, self._session.encoding)},
            **extra,
        }
        said = json.loads(bytes(await self._session.request(method, params, about=self._path(name))))
        if question.operation is Operation.HOVER:
            return None if said is None else Hover(_strings(said["contents"]))
        places = cast("list[dict[str, Any]]", said if isinstance(said, list) else [said] if said else [])
        return tuple(self._location(place) for place in places)

    def _location(self, place: dict[str, Any]) -> Location:
        path = path_of(place.get("targetUri") or place["uri"]) or ""
        if not path.startswith(f"{self._root}/"):
            return Location(path=path, external=True, line=1, character=1, end_line=1, end_character=1)
        name = path.removeprefix(f"{self._root}/")
        return Location(path=name, **self._extent(name, place.get("targetSelectionRange") or place["range"]))

    def _extent(self, name: str, wire: dict[str, dict[str, int]]) -> dict[str, Any]:
        def place(end: str) -> tuple[int, int]:
            at = wire[end]
            line, character = naive_text.place_from_units(text, at["line"], at["character"], self._session.encoding)
            return line + 1, character + 1

        text = self._text(name)
        return dict(zip(("line", "character", "end_line", "end_character"), place("start") + place("end"), strict=True))

    def _path(self, name: str) -> AbsPath:
        return AbsPath(f"{self._root}/{name}")

    def _text(self, name: str) -> str:
        with open(self._path(name), encoding="utf-8-sig", newline="") as file:
            return file.read()


def _strings(contents: Any) -> tuple[str, ...]:
    """Markup, a string, a string with its language, or a list of the latter two."""
    if isinstance(contents, list):
        return tuple(text for one in cast("list[Any]", contents) for text in _strings(one))
    return (contents if isinstance(contents, str) else str(contents["value"]),)


_METHODS: Mapping[Operation, tuple[str, dict[str, Any]]] = {
    Operation.DEFINITION: ("textDocument/definition", {}),
    Operation.REFERENCES: ("textDocument/references", {"context": {"includeDeclaration": True}}),
    Operation.HOVER: ("textDocument/hover", {}),
}
