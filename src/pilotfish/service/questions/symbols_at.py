"""The declaration of a symbol that a question names: the file, the symbol in its outline, and its text."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Symbol
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath, Position
from pilotfish.operations.outlines import bodies
from pilotfish.policy.boundary import Want, admit
from pilotfish.protocol.positions import Text
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.subject import Subject
from pilotfish.service.workspaces import Visit


class DeclaredSymbol(Struct, frozen=True):
    path: AbsPath
    text: Text
    symbol: Symbol


class SymbolsAt:
    def __init__(self, questions: QuestionRunner) -> None:
        self._questions = questions

    async def find(self, question: Question, visit: Visit) -> DeclaredSymbol:
        """The symbol that a question is about, where it is declared; raises a `Failure`."""
        asked = replace(question, operation=Operation.DEFINITION)
        subject = await self._questions.subjects.find(asked, visit)
        if subject.path is None or subject.text is None or subject.position is None:
            raise Refused(Code.INVALID_INPUT, "Name a symbol.")
        here = await self._declared(subject.path, subject.position, visit)
        return here or await self._defined(subject, question, visit)

    async def _declared(self, path: AbsPath, position: Position, visit: Visit) -> DeclaredSymbol | None:
        outline = await self._questions.subjects.outline(path, visit)
        found = [one for one in outline if (one.line - 1, one.character - 1) == (position.line, position.character)]
        return None if not found else DeclaredSymbol(path, await self._questions.text(path), _largest(found))

    async def _defined(self, subject: Subject, question: Question, visit: Visit) -> DeclaredSymbol:
        """By the definition of what stands at a place; else the symbol around it."""
        assert subject.path is not None
        assert subject.position is not None
        line, character = subject.position.line + 1, subject.position.character + 1
        there = Question(operation=Operation.DEFINITION, file_path=subject.path, line=line, character=character)
        answer = await self._questions.answer(there, visit)
        for place in answer.data or ():
            if place.external:
                continue
            path = admit(place.path, visit.workspace.boundary, Want.PLACE).path
            found = await self._declared(path, Position(place.line - 1, place.character - 1), visit)
            found = found or await self._around(path, place.line, visit)
            if found is not None:
                return found
        found = await self._around(subject.path, line, visit) if question.symbol is None else None
        if found is None:
            name = question.symbol or f"line {question.line}"
            raise Refused(Code.NOT_FOUND, f"{name} is not declared in this workspace.", hint="Ask for its definition.")
        return found

    async def _around(self, path: AbsPath, line: int, visit: Visit) -> DeclaredSymbol | None:
        outline = await self._questions.subjects.outline(path, visit)
        holding = [one.symbol for one in bodies(outline) if one.holds(line)]
        return DeclaredSymbol(path, await self._questions.text(path), holding[-1]) if holding else None


def _largest(found: Sequence[Symbol]) -> Symbol:
    """Of several with one name, such as a class and its constructor, the one with the most lines."""
    return max(found, key=lambda one: (one.last_line or one.line) - (one.first_line or one.line))
