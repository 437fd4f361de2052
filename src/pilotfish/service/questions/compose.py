"""Questions that take several requests: the text of symbols, all about one, and what changes touch."""

import os
import re
from collections import defaultdict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from functools import partial
from itertools import filterfalse
from typing import Any, Protocol

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
    diagnostic_of,
)
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.feedback.delta import Delta
from pilotfish.feedback.linemap import line_map, lines_of
from pilotfish.feedback.shapes.changes import names_gone
from pilotfish.model import AbsPath
from pilotfish.operations.names import bare_name
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.operations.symbols import bodies, grouped, source_of
from pilotfish.paths import shown_path
from pilotfish.service.diagnostics.notices import Notices
from pilotfish.service.diagnostics.preview import Previews
from pilotfish.service.questions.ask import QuestionRunner
from pilotfish.service.questions.project import listed
from pilotfish.service.questions.subject import DeclaredSymbol
from pilotfish.service.whole_project import USERS_UNKNOWN, certain
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.git import changed_files, committed_content, why_silent

MAX_CHANGED_FILES = 30
MAX_CHANGED_SYMBOLS = 30
MAX_CHECKED = 60
"""Files that are checked to say what is broken now; the changed ones first."""

_NAMES = re.compile(r",\s*(?![^()<>\[\]]*[)>\]])")
"""Between several names."""


class CheckFiles(Protocol):
    def __call__(
        self, client: ClientSession, paths: Sequence[str], *, workspace: Workspace
    ) -> Awaitable[DiagnosticsAnswer]: ...


COMPOSED = frozenset({Operation.SOURCE, Operation.EXPLORE, Operation.IMPACT})


class _Composition:
    """The questions that one answer is made from, and how their answers came about."""

    def __init__(self, questions: QuestionRunner, visit: Visit) -> None:
        self._questions = questions
        self.visit = visit
        self.workspace = visit.workspace
        self._hits = 0
        self.caveats: dict[str, None] = {}
        self._started = current_time()

    def count(self, answer: Answer[Any], reason: str | None = None) -> None:
        """`reason`: why it is not fresh, where that is said in other words than the answer's own."""
        self._hits += answer.meta.server_hits
        if answer.meta.state is not State.FRESH and (why := reason or answer.meta.reason):
            self.caveats[why] = None

    def effort(self) -> Effort:
        duration = round((current_time() - self._started) * 1000)
        return Effort(duration, max(1, self._hits), caveats=tuple(self.caveats))

    async def ask_at(self, declared: DeclaredSymbol, operation: Operation, **more: Any) -> Any:
        """The data of an answer about the place of a declaration."""
        line, character = declared.symbol.line, declared.symbol.character
        question = Question(operation=operation, file_path=declared.path, line=line, character=character, **more)
        answer = await self._questions.answer(question, self.visit)
        self.count(answer)
        return answer.data

    async def uses(self, declared: DeclaredSymbol) -> tuple[Location, ...]:
        """Every place but the declaration itself."""
        own = declared.symbol
        return tuple(
            place
            for place in await self.ask_at(declared, Operation.REFERENCES, limit=MAX_LIMIT) or ()
            if (place.path, place.line, place.character) != (own.path, own.line, own.character)
        )


class QuestionComposer:
    def __init__(self, questions: QuestionRunner, check: CheckFiles, previews: Previews, notices: Notices) -> None:
        self._questions = questions
        self._check = check
        self._previews = previews
        self._notices = notices

    async def compose(self, question: Question, visit: Visit) -> Answer[Any]:
        """Raises a `Failure`."""
        visit.workspace.require_enabled()
        made = _Composition(self._questions, visit)
        match question.operation:
            case Operation.SOURCE:
                data = await self._sources(question, made)
            case Operation.EXPLORE:
                data = await self._explored(question, made)
            case _:
                data = await self._impact(question, made)
        return answer_from(question.operation, data, made.effort())

    # --- Text --------------------------------------------------------------------------------------------------------

    async def _sources(self, question: Question, made: _Composition) -> tuple[object, ...]:
        names = [name.strip() for name in _NAMES.split(question.symbol)] if question.symbol else [None]
        found: list[object] = []
        for name in names:
            try:
                declared = await self._questions.subjects.declaration(replace(question, symbol=name), made.visit)
            except Failure as failure:
                if len(names) == 1:
                    raise
                made.caveats[failure.message] = None
                continue
            found.append(source_of(declared.symbol, declared.text))
        if not found:
            raise Refused(Code.NOT_FOUND, "; ".join(made.caveats))
        return tuple(found)

    async def _explored(self, question: Question, made: _Composition) -> Exploration:
        declared = await self._questions.subjects.declaration(question, made.visit)
        hover = await made.ask_at(declared, Operation.HOVER)
        places = await made.uses(declared)
        return Exploration(
            symbol=source_of(declared.symbol, declared.text),
            contents=hover.contents if isinstance(hover, Hover) else (),
            uses=grouped(places),
            total=len(places),
        )

    # --- Impact ------------------------------------------------------------------------------------------------------

    async def _impact(self, question: Question, made: _Composition) -> Impact:
        if question.symbol is not None or question.file_path is not None:
            declared = await self._questions.subjects.declaration(question, made.visit)
            found = await self._impact_of([declared], {}, frozenset(), made)
            return replace(found, named=True)
        edited = await anyio.to_thread.run_sync(_edited, made.workspace)
        gone = list(filterfalse(os.path.lexists, edited))
        users = await self._previews.who_used(made.workspace, gone)
        if not users.complete:
            made.caveats[USERS_UNKNOWN] = None
        changed, unlisted, removed = list[DeclaredSymbol](), dict[AbsPath, None](), set[str]()
        unknown, lost = dict[str, list[AbsPath]](), set[str]()
        for path, before in edited.items():
            if path in gone:
                lost |= {os.path.basename(path).partition(".")[0], *names_gone(path, before, "")}
                continue
            try:
                found, dropped = await self._changed_symbols(path, before, made)
            except Failure as failure:
                unknown.setdefault(failure.message, []).append(path)
                found, dropped = [], set[str]()
            removed |= dropped
            changed += found
            if not found:
                unlisted[path] = None
        if len(changed) > MAX_CHANGED_SYMBOLS:
            made.caveats[f"{MAX_CHANGED_SYMBOLS} of {len(changed)} changed symbols were looked at"] = None
        root = made.workspace.root
        for why, paths in unknown.items():
            made.caveats[f"which symbols changed in {listed(paths, root)} is not known: {why.rstrip('.')}"] = None
        found = await self._impact_of(changed[:MAX_CHANGED_SYMBOLS], unlisted, frozenset(removed), made, users.files)
        found = replace(found, deleted=tuple(shown_path(path, root) for path in gone))
        hidden = {shown_path(path, root) for paths in unknown.values() for path in paths}
        found = replace(found, files=tuple(path for path in found.files if path not in hidden))
        return await self._introduced(found, edited, removed | lost, made) if found.broken else found

    async def _introduced(
        self, found: Impact, before: Mapping[AbsPath, str], removed: Collection[str], made: _Composition
    ) -> Impact:
        """Without the errors that the files have, too, if the changed ones are as they were committed."""
        # A file that is gone cannot be shown to every server as it was.
        gone = {} if found.deleted else await self._mended_before(found, before, made)
        edited = {shown_path(path, made.workspace.root) for path in before}
        concerns = partial(_concerns, _lines_of_uses(found), {*removed, *_names(found)})
        kept, unknown = dict[str, tuple[Diagnostic, ...]](), dict[str, int]()
        for path, errors in found.broken.items():
            if path in gone:
                new = tuple(one for one in errors if replace(one, introduced=None) in gone[path])
            else:
                new = tuple(one for one in errors if path in edited or concerns(path, one))
                unknown |= {path: len(errors) - len(new)} if len(errors) > len(new) else {}
            kept |= {path: new} if new else {}
        older = sum(len(errors) - len(kept.get(path, ())) for path, errors in found.broken.items() if path in gone)
        return replace(found, broken=kept, older=older, possibly_older=bool(kept.keys() - gone.keys()), unknown=unknown)

    async def _mended_before(
        self, found: Impact, before: Mapping[AbsPath, str], made: _Composition
    ) -> dict[str, set[Diagnostic]]:
        """By path, the errors that would be gone with the old texts: they came with the new ones."""
        root, texts = made.workspace.root, {str(path): text for path, text in before.items()}
        paths = [os.path.join(root, path) for path in found.broken]
        try:
            was = await self._previews.run(made.visit, paths, texts, certain(made.workspace))
        except Failure:
            return {}
        return {
            shown_path(one.path, root): {diagnostic_of(each) for each in change.fixed}
            for one in was.asked
            if one.is_final and isinstance(change := was.changes.get(one.path), Delta)
        }

    async def _changed_symbols(
        self, path: AbsPath, before: str, made: _Composition
    ) -> tuple[list[DeclaredSymbol], set[str]]:
        """The symbols of a file that hold changed lines, and the names that it defines no more.

        Raises a `Failure` where a server would know.
        """
        try:
            text = await self._questions.text(path)
            outline = await self._questions.subjects.outline(path, made.visit)
        except Failure as failure:
            missing = made.workspace.servers_for(path).expected
            is_no_code = failure.code is Code.UNSUPPORTED or (missing is not None and not missing.spec.serves_code)
            if isinstance(failure, Refused) or is_no_code:
                return [], set()
            raise
        chosen = innermost(outline, changed_lines(before, text.string))
        gone = await anyio.to_thread.run_sync(names_gone, path, before, text.string)
        return [DeclaredSymbol(path, text, symbol) for symbol in chosen], set(gone)

    async def _impact_of(
        self,
        declared: Sequence[DeclaredSymbol],
        unlisted: Mapping[AbsPath, None],
        removed: frozenset[str],
        made: _Composition,
        also: Sequence[AbsPath] = (),
    ) -> Impact:
        workspace, changed = made.workspace, list[UsedSymbol]()
        touched = dict[str, None].fromkeys([*(one.path for one in declared), *unlisted, *also])
        for one in declared:
            places = await made.uses(one)
            touched |= dict.fromkeys(os.path.join(workspace.root, place.path) for place in places if not place.external)
            changed.append(UsedSymbol(symbol=one.symbol, uses=grouped(places), total=len(places)))
        for name in sorted(removed):
            mentioning = await self._questions.files.mentioning(workspace, workspace.root, name, ("",)) or ()
            touched |= dict.fromkeys(sorted(mentioning))
        served = [path for path in touched if workspace.servers_for(AbsPath(path)).servers]
        broken: dict[str, tuple[Diagnostic, ...]] = {}
        if served:
            answer = await self._check(made.visit.client, served[:MAX_CHECKED], workspace=workspace)
            made.count(answer, self._notices.reason(made.visit.client, answer))
            broken = {
                path: errors
                for path, found in (answer.data or {}).items()
                if (errors := tuple(one for one in found if one.severity == "error"))
            }
        if len(served) > MAX_CHECKED:
            made.caveats[f"{MAX_CHECKED} of {len(served)} files were checked"] = None
        files = tuple(shown_path(path, workspace.root) for path in unlisted)
        return Impact(changed=tuple(changed), broken=broken, checked=len(served[:MAX_CHECKED]), files=files)


def _names(found: Impact) -> set[str]:
    return {bare_name(one.symbol.name) for one in found.changed}


def _lines_of_uses(found: Impact) -> Mapping[str, set[int]]:
    """By path, where what changed is used."""
    lines = defaultdict[str, set[int]](set)
    for one in found.changed:
        for use in one.uses:
            lines[use.path].update(use.lines)
    return lines


def _concerns(used: Mapping[str, set[int]], names: Collection[str], path: str, error: Diagnostic) -> bool:
    """Whether an error is on a line that uses what changed, or names it."""
    return error.line in used.get(path, ()) or not set(re.findall(r"\w+", error.message)).isdisjoint(names)


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
        holding = [one.symbol for one in known if one.holds(line)] or [one for one in top if one.line == line]
        if holding:
            chosen.setdefault(id(holding[-1]), holding[-1])
    return list(chosen.values())


def _edited(workspace: Workspace) -> dict[AbsPath, str]:
    """The changed source files and what the last commit has of each. Blocking; raises `Unavailable`."""
    git = workspace.program("git")
    found = None if git is None else changed_files(git, workspace.root)
    if git is None or found is None:
        message = f"What has changed is unknown: {why_silent(workspace.root, git)}"
        raise Unavailable(Code.UNSUPPORTED, message, hint="Name a symbol instead.")
    served = [path for path in found if workspace.serves(path)][:MAX_CHANGED_FILES]
    return {path: (committed_content(git, path) or b"").decode("utf-8", "replace") for path in served}
