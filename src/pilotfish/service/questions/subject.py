"""What a question is about: a file, a place in it, or a symbol that is named and must be found first."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Symbol, error_text
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Unavailable
from pilotfish.model import AbsPath, Position, Range
from pilotfish.operations.locate import (
    LocatedSymbol,
    first_name_in,
    line_in,
    located,
    located_on_line,
    name_of,
    place_in,
    refusal,
)
from pilotfish.operations.rows import ROWS
from pilotfish.policy.boundary import Want, admit, require_file
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import path_of
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession

AskQuestion = Callable[[Question, ClientSession, Workspace], Awaitable[Answer[Any]]]


class Subject(Struct, frozen=True):
    """What a question is about, before any server is asked."""

    path: AbsPath | None = None
    text: Text | None = None
    position: Position | None = None
    range: Range | None = None
    new_path: AbsPath | None = None


class SubjectFinder:
    def __init__(self, texts: Texts, ask: AskQuestion) -> None:
        """`ask`: answers the questions by which a symbol is found."""
        self._texts = texts
        self._ask = ask

    async def find(self, question: Question, client: ClientSession, workspace: Workspace) -> Subject:
        item = question.call_hierarchy_item or question.type_hierarchy_item
        if item is not None:
            path = path_of(item.uri)
            return Subject() if path is None else await self._file(path, workspace)
        if question.file_path is None:
            if question.symbol is None:
                return Subject()
            return await self._named_anywhere(question, client, workspace)
        subject = await self._file(question.file_path, workspace)
        if question.new_path is not None:
            return replace(subject, new_path=admit(question.new_path, workspace.boundary, Want.TARGET).path)
        if question.symbol is not None:
            return await self._named(question, subject, client, workspace)
        if question.line is None or subject.text is None:
            return subject
        if question.character is None and not ROWS[question.operation].takes_place:
            return replace(subject, range=line_in(subject.text, question.file_path, question.line))
        if question.character is None:
            return replace(subject, position=first_name_in(subject.text, question.file_path, question.line))
        position = place_in(subject.text, question.file_path, question.line, question.character)
        return Subject(subject.path, subject.text, position, Range(position, position))

    async def _file(self, path: str, workspace: Workspace) -> Subject:
        admitted = admit(path, workspace.boundary, Want.PLACE)
        text = await self._texts.unchanged(admitted.path)
        if text is None:
            require_file(admitted)
            text = await self._texts.text(admitted.path)
        return Subject(admitted.path, text)

    async def _named(
        self, question: Question, subject: Subject, client: ClientSession, workspace: Workspace
    ) -> Subject:
        """A symbol of one file: by its outline, or on the line that was named."""
        outline = Question(operation=Operation.DOCUMENT_SYMBOL, file_path=question.file_path)
        symbols = await self._symbols(outline, client, workspace)
        name, path = name_of(question.symbol or ""), question.file_path or ""
        if question.line is not None and subject.text is not None:
            finding = located_on_line(name, subject.text, path, question.line, symbols)
        else:
            finding = located(name, symbols)
        if not isinstance(finding, LocatedSymbol):
            raise refusal(finding)
        return replace(subject, position=finding.position)

    async def _named_anywhere(self, question: Question, client: ClientSession, workspace: Workspace) -> Subject:
        """A symbol of the workspace, wherever it is declared."""
        name = name_of(question.symbol or "")
        everywhere = Question(operation=Operation.WORKSPACE_SYMBOL, query=name.parts[-1])
        inside = [one for one in await self._symbols(everywhere, client, workspace) if not one.external]
        finding = located(name, inside)
        if not isinstance(finding, LocatedSymbol):
            raise refusal(finding)
        subject = await self._file(finding.location.path, workspace)
        return replace(subject, position=finding.position)

    async def _symbols(self, question: Question, client: ClientSession, workspace: Workspace) -> Sequence[Symbol]:
        answer = await self._ask(question, client, workspace)
        require_ok(answer)
        return [one for one in answer.data or () if isinstance(one, Symbol)]


def require_ok(answer: Answer[Any]) -> None:
    """Raise `Unavailable` with the first error of an answer that no server gave."""
    if not answer.ok:
        first = answer.errors[0] if answer.errors else None
        message = error_text(first) if first else answer.meta.reason or "no server answered"
        raise Unavailable(first.code if first else Code.SERVER_ERROR, message)
