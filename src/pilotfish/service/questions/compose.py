"""Questions that take several requests: the text of symbols, all about one, and what changes touch."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from msgspec.structs import replace

from pilotfish.api.answers import (
    Answer,
    Diagnostic,
    DiagnosticsAnswer,
    Effort,
    Exploration,
    Hover,
    Impact,
    Location,
    State,
    Symbol,
    UsedSymbol,
    answer_from,
)
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.feedback.changed_names import defined_names
from pilotfish.feedback.linemap import line_map, lines_of
from pilotfish.model import AbsPath
from pilotfish.operations.outlines.enclosing import bodies
from pilotfish.operations.outlines.sources import source_of
from pilotfish.operations.outlines.uses import grouped
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.paths import shown_path
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.symbols_at import DeclaredSymbol, SymbolsAt
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.git import changed_files, committed_content

MAX_CHANGED_FILES = 30
MAX_CHANGED_SYMBOLS = 30
MAX_CHECKED = 60
"""Files that are checked to say what is broken now; the changed ones first."""

_NAMES = re.compile(r",\s*(?![^()<>\[\]]*[)>\]])")
"""Between several names."""

CheckFiles = Callable[[ClientSession, Sequence[str], Workspace], Awaitable[DiagnosticsAnswer]]

COMPOSED = frozenset({Operation.SOURCE, Operation.EXPLORE, Operation.IMPACT})


class _Gathered:
    """How the answers came about from which another one is made."""

    def __init__(self) -> None:
        self.hits = 0
        self.caveats: dict[str, None] = {}
        self.started = current_time()

    def take(self, answer: Answer[Any]) -> None:
        self.hits += answer.meta.server_hits
        if answer.meta.state is not State.FRESH and answer.meta.reason:
            self.caveats[answer.meta.reason] = None

    def effort(self) -> Effort:
        duration = round((current_time() - self.started) * 1000)
        return Effort(duration, max(1, self.hits), caveats=tuple(self.caveats))


class QuestionComposer:
    def __init__(self, questions: QuestionRunner, check: CheckFiles) -> None:
        self._questions = questions
        self._check = check
        self.symbols = SymbolsAt(questions)

    async def run(self, question: Question, client: ClientSession, workspace: Workspace) -> Answer[Any]:
        """Raises a `Failure`."""
        workspace.require_enabled()
        gathered = _Gathered()
        match question.operation:
            case Operation.SOURCE:
                data = await self._sources(question, client, workspace, gathered)
            case Operation.EXPLORE:
                data = await self._explored(question, client, workspace, gathered)
            case _:
                data = await self._impact(question, client, workspace, gathered)
        return answer_from(question.operation, data, gathered.effort())

    # --- Text --------------------------------------------------------------------------------------------------------

    async def _sources(
        self, question: Question, client: ClientSession, workspace: Workspace, gathered: _Gathered
    ) -> tuple[object, ...]:
        names = [name.strip() for name in _NAMES.split(question.symbol)] if question.symbol else [None]
        found: list[object] = []
        for name in names:
            try:
                declared = await self.symbols.find(replace(question, symbol=name), client, workspace)
            except Failure as failure:
                if len(names) == 1:
                    raise
                gathered.caveats[failure.message] = None
                continue
            found.append(source_of(declared.symbol, declared.text))
        if not found:
            raise Refused(Code.NOT_FOUND, "; ".join(gathered.caveats))
        return tuple(found)

    async def _explored(
        self, question: Question, client: ClientSession, workspace: Workspace, gathered: _Gathered
    ) -> Exploration:
        declared = await self.symbols.find(question, client, workspace)
        at = partial(self._at, declared, client, workspace, gathered)
        hover = await at(Operation.HOVER)
        places = await self._uses(declared, client, workspace, gathered)
        contents = hover.contents if isinstance(hover, Hover) else ()
        return Exploration(
            symbol=source_of(declared.symbol, declared.text),
            contents=contents,
            uses=grouped(places),
            total=len(places),
        )

    async def _uses(
        self, declared: DeclaredSymbol, client: ClientSession, workspace: Workspace, gathered: _Gathered
    ) -> tuple[Location, ...]:
        """Every place but the declaration itself."""
        found = await self._at(declared, client, workspace, gathered, Operation.REFERENCES, limit=MAX_LIMIT)
        own = declared.symbol
        return tuple(
            place
            for place in found or ()
            if (place.path, place.line, place.character) != (own.path, own.line, own.character)
        )

    async def _at(
        self,
        declared: DeclaredSymbol,
        client: ClientSession,
        workspace: Workspace,
        gathered: _Gathered,
        operation: Operation,
        **more: Any,
    ) -> Any:
        place = declared.symbol
        question = Question(
            operation=operation, file_path=declared.path, line=place.line, character=place.character, **more
        )
        answer = await self._questions.run(question, client, workspace)
        gathered.take(answer)
        return answer.data

    # --- Impact ------------------------------------------------------------------------------------------------------

    async def _impact(
        self, question: Question, client: ClientSession, workspace: Workspace, gathered: _Gathered
    ) -> Impact:
        if question.symbol is not None or question.file_path is not None:
            declared = [await self.symbols.find(question, client, workspace)]
            return await self._impact_of(declared, {}, frozenset(), client, workspace, gathered)
        edited = await anyio.to_thread.run_sync(_edited, workspace)
        declared, unlisted, removed = list[DeclaredSymbol](), dict[AbsPath, None](), set[str]()
        for path, before in edited.items():
            found, gone = await self._changed_symbols(path, before, client, workspace)
            removed |= gone
            declared += found
            if not found:
                unlisted[path] = None
        if len(declared) > MAX_CHANGED_SYMBOLS:
            gathered.caveats[f"{MAX_CHANGED_SYMBOLS} of {len(declared)} changed symbols were looked at"] = None
        return await self._impact_of(
            declared[:MAX_CHANGED_SYMBOLS], unlisted, frozenset(removed), client, workspace, gathered
        )

    async def _changed_symbols(
        self, path: AbsPath, before: str, client: ClientSession, workspace: Workspace
    ) -> tuple[list[DeclaredSymbol], set[str]]:
        """The symbols of a file that hold changed lines, and the names that it defines no more."""
        try:
            text = await self._questions.text(path)
            outline = await self._questions.subjects.outline(path, client, workspace)
        except Failure:
            return [], set()
        after = text.string
        lines = changed_lines(before, after)
        chosen = innermost(outline, lines)
        gone = defined_names(before) - defined_names(after)
        return [DeclaredSymbol(path, text, symbol) for symbol in chosen], set(gone)

    async def _impact_of(
        self,
        declared: Sequence[DeclaredSymbol],
        unlisted: Mapping[AbsPath, None],
        removed: frozenset[str],
        client: ClientSession,
        workspace: Workspace,
        gathered: _Gathered,
    ) -> Impact:
        changed: list[UsedSymbol] = []
        touched = dict[str, None].fromkeys([*(one.path for one in declared), *unlisted])
        for one in declared:
            places = await self._uses(one, client, workspace, gathered)
            touched |= dict.fromkeys(os.path.join(workspace.root, place.path) for place in places if not place.external)
            changed.append(UsedSymbol(symbol=one.symbol, uses=grouped(places), total=len(places)))
        for name in sorted(removed):
            mentioning = await self._questions.files.mentioning(workspace, workspace.root, name, ("",)) or ()
            touched |= dict.fromkeys(sorted(mentioning))
        served = [path for path in touched if workspace.servers_for(AbsPath(path)).servers]
        broken: dict[str, tuple[Diagnostic, ...]] = {}
        if served:
            answer = await self._check(client, served[:MAX_CHECKED], workspace)
            gathered.take(answer)
            broken = {
                path: errors
                for path, found in (answer.data or {}).items()
                if (errors := tuple(one for one in found if one.severity == "error"))
            }
        if len(served) > MAX_CHECKED:
            gathered.caveats[f"{MAX_CHECKED} of {len(served)} files were checked"] = None
        files = tuple(shown_path(path, workspace.root) for path in unlisted)
        return Impact(changed=tuple(changed), broken=broken, checked=len(served[:MAX_CHECKED]), files=files)


def changed_lines(before: str, after: str) -> frozenset[int]:
    """The lines (from 1) of the new text that changed, and those where something was removed."""
    old, new = lines_of(before), lines_of(after)
    known = line_map(old, new)
    changed = {number + 1 for number, gap in enumerate(known.new_gaps) if gap is not None}
    for number, moved in enumerate(known.moved):
        if moved is None:
            following = next((line for line in known.moved[number:] if line is not None), len(new) - 1)
            changed.add(max(1, min(following + 1, len(new))))
    return frozenset(changed)


def innermost(outline: Sequence[Symbol], lines: frozenset[int]) -> list[Symbol]:
    """The symbols that hold these lines, each line by the innermost one that is not local to a function."""
    known = [one for one in bodies(outline) if not one.is_local]
    top = [symbol for symbol in outline if symbol.depth == 0 and (symbol.last_line or symbol.line) == symbol.line]
    chosen: dict[int, Symbol] = {}
    for line in sorted(lines):
        holding = [one.symbol for one in known if _spans(one.symbol, line)] or [one for one in top if one.line == line]
        if holding:
            chosen.setdefault(id(holding[-1]), holding[-1])
    return list(chosen.values())


def _spans(symbol: Symbol, line: int) -> bool:
    return (symbol.first_line or symbol.line) <= line <= (symbol.last_line or symbol.line)


def _edited(workspace: Workspace) -> dict[AbsPath, str]:
    """The changed source files and what the last commit has of each. Blocking; raises `Unavailable`."""
    git = workspace.program("git")
    found = None if git is None else changed_files(git, workspace.root)
    if git is None or found is None:
        message = "git does not say what changed here: this is no repository, or git is not installed."
        raise Unavailable(Code.UNSUPPORTED, message, hint="Name a symbol instead.")
    served = [path for path in found if workspace.serves(path)][:MAX_CHANGED_FILES]
    return {path: (committed_content(git, path) or b"").decode("utf-8", "replace") for path in served}
