"""Edits of one symbol by name: replace it, delete it, or insert text before or after it.

The edit is of whole lines. It is refused when the text of the symbol is not the one that the caller has seen
(`digest`), and a symbol that is used is not deleted.
"""

import re

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation, Question
from pilotfish.counting import counted
from pilotfish.errors import Code, Refused
from pilotfish.model import Encoding
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.operations.symbols import Lines, digest_of, lines_of, text_of_lines
from pilotfish.protocol.edits import EditPlan, Resource, TextChange, TextEdit
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WirePosition, WireRange
from pilotfish.service.changes.edit_proposals import EditProposal, Intent, Job, ProposedEdit
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.subject import DeclaredSymbol

LINE_END = re.compile(r"\r\n|\r|\n")
"""Of LSP; `str.splitlines` also cuts at U+2028 and form feeds, which stay as they are."""

EDITS = ("replace", "before", "after", "delete")

MAX_GAP = 2
"""Blank lines between two symbols."""

MAX_USES = 10
"""Uses that a refusal names."""


class SymbolEdits:
    def __init__(self, questions: QuestionRunner) -> None:
        self._questions = questions

    async def intent(self, job: Job) -> Intent:
        """Raises `Refused` when the symbol is not there, is another one by now, or is still used."""
        question = job.question
        if question.edit not in EDITS:
            raise Refused(Code.INVALID_INPUT, f"edit must be one of {', '.join(EDITS)}, not {question.edit!r}.")
        if question.edit != "delete" and question.text is None:
            raise Refused(Code.INVALID_INPUT, f"text is missing: what to {question.edit}.")
        declared = await self._questions.subjects.declaration(question, job.visit)
        lines = lines_of(declared.symbol, declared.text)
        seen = text_of_lines(lines, declared.text)
        if question.digest is not None and question.digest != digest_of(seen):
            hint = "Read its source again, then edit that."
            raise Refused(Code.STALE, f"{declared.symbol.name} has changed since you read it.", hint=hint)
        if question.edit == "delete":
            await self._refuse_used(job, declared)
        edit = edit_of(question, lines, declared.text)
        plan = EditPlan((TextChange(Resource(uri_of(declared.path), declared.path), None, (edit,)),))
        candidate = job.workspace.servers_for(declared.path).servers[0]
        texts = {declared.path: declared.text.string}
        proposal = EditProposal(candidate, Encoding.UTF16, ProposedEdit(plan), texts)
        return Intent(plan, proposal, hits=1)

    async def _refuse_used(self, job: Job, declared: DeclaredSymbol) -> None:
        place = declared.symbol
        question = Question(
            operation=Operation.REFERENCES,
            file_path=declared.path,
            line=place.line,
            character=place.character,
            limit=MAX_LIMIT,
        )
        answer = await self._questions.answer(question, job.visit)
        lines = lines_of(place, declared.text)
        uses = [
            one for one in answer.data or () if one.path != place.path or not lines.first <= one.line - 1 <= lines.last
        ]
        if uses:
            lines_used = [f"{path}:{line}" for path, line in dict.fromkeys((one.path, one.line) for one in uses)]
            shown, more = ", ".join(lines_used[:MAX_USES]), len(lines_used) - MAX_USES
            message = f"{place.name} is used in {counted(len(lines_used), 'line')}, so it was not deleted: {shown}"
            message += f" and {more} more." if more > 0 else "."
            raise Refused(Code.INVALID_INPUT, message, hint="Remove its uses first.")
        if answer.meta.state is not State.FRESH:
            message = f"Whether {place.name} is used is not certain, so it was not deleted: {answer.meta.reason}"
            raise Refused(Code.UNSUPPORTED, message)


def edit_of(question: Question, lines: Lines, text: Text) -> TextEdit:
    """The edit of whole lines that a question asks for."""
    end = "\r\n" if "\r\n" in text.string else "\n"
    new = LINE_END.sub(end, (question.text or "").rstrip("\r\n"))
    match question.edit:
        case "replace":
            return TextEdit(_whole(lines, text), new)
        case "before":
            return TextEdit(_at(lines.first, 0), new + end * (1 + _gap(lines, text)))
        case "after":
            return TextEdit(_at(lines.last, _length(lines.last, text)), end * (1 + _gap(lines, text)) + new)
        case _:
            return TextEdit(_with_gap(lines, text), "")


def _gap(lines: Lines, text: Text) -> int:
    """Blank lines between symbols here: those above this one, or below it where it is the first."""
    above = _blank(text, range(lines.first - 1, -1, -1))
    is_first = lines.first - above <= 0
    return _blank(text, range(lines.last + 1, text.line_count)) if is_first else above


def _blank(text: Text, numbers: range) -> int:
    """How many of the first of these lines are blank, at most `MAX_GAP`."""
    return next((n for n, line in enumerate(numbers[:MAX_GAP]) if text.line(line).strip()), len(numbers[:MAX_GAP]))


def _whole(lines: Lines, text: Text) -> WireRange:
    return WireRange(WirePosition(lines.first, 0), WirePosition(lines.last, _length(lines.last, text)))


def _with_gap(lines: Lines, text: Text) -> WireRange:
    """The lines with the end of the last one and the blank lines behind it, where blank lines stand before it too."""
    after = lines.last + 1
    is_apart = lines.first == 0 or not text.line(lines.first - 1).strip()
    while is_apart and after < text.line_count - 1 and not text.line(after).strip():
        after += 1
    if after >= text.line_count:
        return _whole(lines, text)
    return WireRange(WirePosition(lines.first, 0), WirePosition(after, 0))


def _at(line: int, character: int) -> WireRange:
    return WireRange(WirePosition(line, character), WirePosition(line, character))


def _length(line: int, text: Text) -> int:
    """In UTF-16 units, as the edit counts."""
    return len(text.line(line).encode("utf-16-le", "surrogatepass")) // 2
