"""What a question is about: a file, a place in it, or a symbol that is named and must be found first."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Location, State, Symbol, error_of, error_text
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.model import AbsPath, Position, Range
from pilotfish.operations.fallback import no_server_for
from pilotfish.operations.locate import (
    MAX_CANDIDATES,
    Ambiguous,
    LocatedSymbol,
    Name,
    UnknownSymbol,
    assigned_members,
    at_character,
    line_in,
    located,
    located_on_line,
    main_name_in,
    member_at,
    mentions,
    name_of,
    place_in,
    refusal,
)
from pilotfish.operations.names import occurrences, word_at
from pilotfish.operations.rows import ROWS
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.operations.symbols import ALL, bodies
from pilotfish.paths import is_inside, shown_path
from pilotfish.policy.boundary import Want, admit, require_file
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import path_of
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.questions.project import ProjectFiles, is_code, listed
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.real_path import real_path
from pilotfish.system.source_files import files_below

MAX_PLACES = 5
"""Places that mention a name of which the first is taken that means something."""

MAX_OUTLINES = 20
"""Files that mention a name whose outline is looked at where no server finds it by name."""

MAX_COMPONENTS = 30
"""Components that one question is asked in."""

AskQuestion = Callable[[Question, Visit], Awaitable[Answer[Any]]]


class Subject(Struct, frozen=True):
    """What a question is about, before any server is asked."""

    path: AbsPath | None = None
    text: Text | None = None
    position: Position | None = None
    range: Range | None = None
    declared: Location | None = None
    """The declaration, where the subject was found by name."""
    also: tuple[Position, ...] = ()
    """Other declarations of it in the file, of other kinds: TypeScript's interface and constant of one name have uses
    each of their own."""


class DeclaredSymbol(Struct, frozen=True):
    path: AbsPath
    text: Text
    symbol: Symbol


class ComponentUse(Struct, frozen=True):
    """A place in a component that means what a question is about, and who can be asked there."""

    path: AbsPath
    subject: Subject
    servers: tuple[Candidate, ...]


class SubjectFinder:
    def __init__(self, texts: Texts, files: ProjectFiles, ask: AskQuestion) -> None:
        """`ask`: answers the questions by which a symbol is found."""
        self._texts = texts
        self._files = files
        self._ask = ask

    async def find(self, question: Question, visit: Visit) -> Subject:
        item = question.call_hierarchy_item or question.type_hierarchy_item
        if item is not None:
            path = path_of(item.uri)
            return Subject() if path is None else await self._file(path, visit.workspace)
        if question.file_path is None:
            if question.symbol is None:
                return Subject()
            return _at_name(question, await self._named_anywhere(question, visit))
        subject = await self._file(question.file_path, visit.workspace)
        if question.symbol is not None:
            return _at_name(question, await self._named(question, subject, visit))
        if question.line is None or subject.text is None:
            return subject
        if question.character is None and not ROWS[question.operation].takes_place:
            return replace(subject, range=line_in(subject.text, question.file_path, question.line))
        if question.character is None:
            called = not ROWS[question.operation].is_wide
            position = main_name_in(subject.text, question.file_path, question.line, called=called)
            return replace(subject, position=position)
        position = place_in(subject.text, question.file_path, question.line, question.character)
        return Subject(subject.path, subject.text, position, Range(position, position))

    async def declaration(self, question: Question, visit: Visit) -> DeclaredSymbol:
        """The symbol that a question is about, where it is declared; raises a `Failure`."""
        subject = await self.find(replace(question, operation=Operation.DEFINITION), visit)
        path, position = subject.path, subject.position
        if path is None or position is None:
            raise Refused(Code.INVALID_INPUT, "Name a symbol.")
        if found := await self._symbol_at(path, position, visit):
            return found
        for place in (await self._definition(path, position, visit)).data or ():
            if not place.external:
                there = admit(place.path, visit.workspace.boundary, Want.PLACE).path
                at = Position(place.line - 1, place.character - 1)
                if found := await self._symbol_at(there, at, visit, or_around=True):
                    return found
        if question.symbol is None and (found := await self._symbol_at(path, position, visit, or_around=True)):
            return found
        name = question.symbol or f"line {question.line}"
        raise Refused(Code.NOT_FOUND, f"{name} is not declared in this workspace.", hint="Ask for its definition.")

    async def outline(self, path: str, visit: Visit, name: Name | None = None) -> Sequence[Symbol]:
        """All that stands in a file, locals too; raises a `Failure`, which says how to search for the name."""
        word = None if name is None else name.parts[-1]
        everything = Question(
            operation=Operation.DOCUMENT_SYMBOL, file_path=path, kinds=ALL, limit=MAX_LIMIT, query=word
        )
        return await self._symbols(everything, visit)

    # --- By name -----------------------------------------------------------------------------------------------------

    async def _named(self, question: Question, subject: Subject, visit: Visit) -> Subject:
        """A symbol of one file: on the line that was named, as the file declares it, as it uses it, or anywhere."""
        name, path, text = name_of(question.symbol or ""), question.file_path or "", subject.text or Text("")
        symbols = await self.outline(path, visit, name)
        if question.line is not None:
            finding = located_on_line(name, text, path, question.line, symbols)
            if isinstance(finding, Ambiguous) and question.character is not None:
                finding = at_character(finding, question.character)
            if isinstance(finding, LocatedSymbol):
                return replace(subject, position=finding.position)
        members = assigned_members(text, shown_path(subject.path or "", visit.workspace.root), name, symbols)
        declared = located(name, [*symbols, *members])
        if isinstance(declared, LocatedSymbol):
            return replace(subject, position=declared.position, declared=declared.location)
        if isinstance(declared, Ambiguous):
            same = await self._same(declared, name, visit)
            return replace(subject, position=same.position, also=_others(declared, same))
        if used := await self._used(name, [path], visit):
            return used
        try:
            return await self._named_anywhere(question, visit)
        except Failure as elsewhere:
            raise refusal(declared) if declared.nearest else elsewhere from None

    async def _named_anywhere(self, question: Question, visit: Visit) -> Subject:
        """A symbol of the workspace, wherever it is declared; else where it is used first."""
        name = name_of(question.symbol or "")
        everywhere = Question(operation=Operation.WORKSPACE_SYMBOL, query=name.parts[-1], kinds=ALL, limit=MAX_LIMIT)
        inside = [one for one in await self._symbols(everywhere, visit) if not one.external]
        finding = located(name, inside)
        if isinstance(finding, UnknownSymbol):
            unlisted = await self._unlisted(name, everywhere, visit)
            if isinstance(unlisted, Subject):
                return unlisted
            finding = unlisted
        also = tuple[Position, ...]()
        if isinstance(finding, Ambiguous):
            same = await self._same(finding, name, visit)
            finding, also = same, _others(finding, same)
        subject = await self._file(finding.location.path, visit.workspace)
        return replace(subject, position=finding.position, declared=finding.location, also=also)

    async def _unlisted(self, name: Name, everywhere: Question, visit: Visit) -> LocatedSymbol | Ambiguous | Subject:
        """What no server finds by its whole name: by the outlines of files that mention it, those that are named like
        it first; else where it is used, or as a part of other names. Raises a `Failure`.
        """
        workspace, word = visit.workspace, name.parts[-1]
        found = sorted(await self._files.mentioning(workspace, workspace.root, word, ("",)) or ())
        code = [path for path in found if is_code(path, workspace)]
        code = sorted(code, key=lambda path: word.lower() not in os.path.basename(path).lower())[:MAX_OUTLINES]
        outlines = [await self.outline(path, visit) for path in code]
        finding = located(name, [symbol for outline in outlines for symbol in outline])
        if isinstance(finding, UnknownSymbol):
            if used := await self._used(name, code, visit):
                return used
            near = replace(everywhere, query=word[: max(2, len(word) // 2)])
            finding = located(name, await self._symbols(near, visit))
        if isinstance(finding, UnknownSymbol):
            # The server that would know it may not be here.
            choices = (workspace.servers_for(path) for path in found[:MAX_OUTLINES])
            missing = next((one.missing for one in choices if one.missing is not None), None)
            raise workspace.why_unavailable(missing) if missing else refusal(finding)
        return finding

    async def _used(self, name: Name, paths: Sequence[str], visit: Visit) -> Subject | None:
        """The first place of these files that mentions the name and means something: no comment, no string.

        Where servers do not say of all of a file that they mean nothing, its first place at all.
        """
        for path in paths[:MAX_PLACES]:
            subject, certain = await self._file(path, visit.workspace), True
            places = mentions(subject.text or Text(""), name)[:MAX_PLACES]
            for place in places:
                answer = await self._definition(path, place, visit)
                if answer.data:
                    return replace(subject, position=place)
                certain = certain and answer.meta.state is State.FRESH
            if places and not certain:
                return replace(subject, position=places[0])
        return None

    async def _same(self, finding: Ambiguous, name: Name, visit: Visit) -> LocatedSymbol:
        """The one symbol that all candidates are, by its definition: overloads, `exports.a = function a`, an alias."""
        places: list[tuple[Location, frozenset[tuple[str, int]]]] = []
        for one in finding.candidates[:MAX_CANDIDATES]:
            at, text = one.location, (await self._file(one.location.path, visit.workspace)).text or Text("")
            place = _name_from(text, LocatedSymbol(at).position, name)
            answer = await self._definition(at.path, place, visit)
            found = frozenset((place.path, place.line) for place in answer.data or ())
            places.append((at, found or frozenset({(at.path, at.line)})))
        common = frozenset[tuple[str, int]].intersection(*(found for _, found in places))
        if not common or len(finding.candidates) > MAX_CANDIDATES:
            raise refusal(finding)
        return LocatedSymbol(next((at for at, _ in places if (at.path, at.line) in common), places[0][0]))

    # --- In components -----------------------------------------------------------------------------------------------

    # `.svelte`, `.astro` and `.vue` files import those of TypeScript, whose server may not read them. Where such a file
    # mentions the name that a question over the project is about, its own servers are asked what is meant there, and if
    # it is the same symbol, for its uses. What could not be asked is named, and the answer is partial.

    async def component_uses(
        self, name: str, subject: Subject, servers: Sequence[Candidate], visit: Visit
    ) -> tuple[list[ComponentUse], list[str]]:
        """Where components mean the symbol at a place of a file, which these servers were asked about; and why other
        components that mention the name are not in the answer."""
        workspace, uses, unread = visit.workspace, list[ComponentUse](), dict[str, list[AbsPath]]()
        read = {extension for one in servers for extension in one.spec.extensions}
        others = {one for spec in component_servers(workspace, read) for one in spec.files.extensions} - read
        if not name or subject.path is None or subject.position is None or not others:
            return [], []
        found = sorted(await self._files.mentioning(workspace, workspace.root, name, others) or ())
        if not found:
            return [], []
        meant = await self._meaning(subject.path, subject.position, visit)
        if len(found) > MAX_COMPONENTS:
            unread[f"{len(found)} components mention it"] = found[MAX_COMPONENTS:]
        for path in found[:MAX_COMPONENTS]:
            try:
                choice = workspace.servers_for(path)
                if not choice.servers:
                    raise workspace.why_unavailable(choice.expected) if choice.expected else no_server_for(path)
                text = await self._texts.text(admit(path, workspace.boundary, Want.PLACE).path)
                for place in mentions(text, name_of(name))[:MAX_PLACES]:
                    if meant & await self._meaning(path, place, visit):
                        uses.append(ComponentUse(path, Subject(path, text, place), choice.servers))
                        break
            except Failure as failure:
                unread.setdefault(error_of(failure).message, []).append(path)
        return uses, [not_included(name, paths, why, workspace.root) for why, paths in unread.items()]

    async def _meaning(self, path: AbsPath, place: Position, visit: Visit) -> frozenset[tuple[str, int, int]]:
        """Where the name at a place is defined; raises a `Failure` where nobody can say."""
        answer = await self._definition(path, place, visit)
        require_ok(answer)
        return frozenset((one.path, one.line, one.character) for one in answer.data or ())

    # --- Asked -------------------------------------------------------------------------------------------------------

    async def _file(self, path: str, workspace: Workspace) -> Subject:
        admitted = admit(path, workspace.boundary, Want.PLACE)
        text = await self._texts.unchanged(admitted.path)
        if text is None:
            _refuse_folder(path, admitted.path)
            require_file(admitted)
            text = await self._texts.text(admitted.path)
        return Subject(admitted.path, text)

    async def _definition(self, path: str, at: Position, visit: Visit) -> Answer[Any]:
        line, character = at.line + 1, at.character + 1
        there = Question(operation=Operation.DEFINITION, file_path=path, line=line, character=character)
        return await self._ask(there, visit)

    async def _symbol_at(
        self, path: AbsPath, at: Position, visit: Visit, *, or_around: bool = False
    ) -> DeclaredSymbol | None:
        """The symbol whose name stands there: of several, such as a class and its constructor, the one with the most
        lines; else perhaps the innermost around it."""
        outline = await self.outline(path, visit)
        found = [one for one in outline if (one.line - 1, one.character - 1) == (at.line, at.character)]
        found.sort(key=lambda one: (one.first_line or one.line) - (one.last_line or one.line))
        if or_around and not found:
            found = [one.symbol for one in bodies(outline) if one.holds(at.line + 1)][-1:]
        return DeclaredSymbol(path, await self._texts.text(path), found[0]) if found else None

    async def _symbols(self, question: Question, visit: Visit) -> Sequence[Symbol]:
        answer = await self._ask(question, visit)
        if question.file_path is None and {error.code for error in answer.errors} == {Code.UNSUPPORTED}:
            # The outlines of files that mention the name may have it.
            return ()
        require_ok(answer)
        return [one for one in answer.data or () if isinstance(one, Symbol)]


def not_included(name: str, paths: Sequence[AbsPath], why: str, root: AbsPath) -> str:
    return f"{name} in {listed(paths, root)} is not included: {why or 'its servers do not offer this'}"


def _others(finding: Ambiguous, taken: LocatedSymbol) -> tuple[Position, ...]:
    """Of candidates that are one symbol, those beside the one that was taken, one of each further kind."""
    by_kind = {_kind(taken.location): taken.position}
    for one in finding.candidates:
        if one.location.path == taken.location.path:
            by_kind.setdefault(_kind(one.location), LocatedSymbol(one.location).position)
    return tuple(by_kind.values())[1:]


def _kind(location: Location) -> str | None:
    return location.kind if isinstance(location, Symbol) else None


def _at_name(question: Question, subject: Subject) -> Subject:
    """Where the name itself stands: outlines may give the beginning of what it is part of, such as an element.

    Whoever asks for all uses of a function asks for those of the member that it is assigned to.
    """
    if subject.text is None or subject.position is None:
        return subject
    name = name_of(question.symbol or "")
    position = _name_from(subject.text, subject.position, name)
    if ROWS[question.operation].is_wide or question.operation is Operation.RENAME:
        position = member_at(subject.text, position, name)
    return replace(subject, position=position)


def _name_from(text: Text, position: Position, name: Name) -> Position:
    """Where the name stands from a place on; the place itself where it does not."""
    if word_at(text, position) == name.parts[-1]:
        return position
    on_line = (one.start for one in occurrences(text, position.line, name.parts[-1]))
    return next((one for one in on_line if one.character >= position.character), position)


def require_ok(answer: Answer[Any]) -> None:
    """Raise `Unavailable` with the first error of an answer that no server gave."""
    if not answer.ok:
        first = answer.errors[0] if answer.errors else None
        message = error_text(first) if first else answer.meta.reason or "no server answered"
        raise Unavailable(first.code if first else Code.SERVER_ERROR, message)


# --- A path where nothing is -----------------------------------------------------------------------------------------


MAX_FILES = 20_000
"""Files that are looked at, which takes about a second on a cold disk; beyond it nothing is known to be unique."""

MAX_NEAREST = 5
SIMILAR = 0.6
"""How much of a name must agree, as `difflib` measures it."""


class Candidates(Struct, frozen=True):
    """Files that a path may mean, relative to the workspace."""

    ending: tuple[str, ...]
    """Those whose last segments are the path."""
    similar: tuple[str, ...] = ()


def candidates(named: str, files: Iterable[str]) -> Candidates:
    """Pure: the files among `files` that `named` may mean."""
    known = list(files)
    wanted = os.path.normpath(named).lstrip("/")
    ending = tuple(path for path in known if path == wanted or path.endswith(f"/{wanted}"))
    if ending:
        return Candidates(ending)
    name = os.path.basename(wanted)
    by_name: dict[str, list[str]] = {}
    for path in known:
        by_name.setdefault(os.path.basename(path), []).append(path)
    near = get_close_matches(name, by_name, MAX_NEAREST, SIMILAR)
    paths = [path for one in near for path in by_name[one]]
    return Candidates((), tuple(paths[:MAX_NEAREST]))


def _refuse_folder(named: str, path: AbsPath) -> None:
    if os.path.isdir(path):
        hint = f"Name a file in it, or find a symbol in all files by its name: {ROWS[Operation.WORKSPACE_SYMBOL].tool}."
        raise Refused(Code.NOT_A_FILE, f"{named} is a folder.", hint=hint)


async def with_existing_file(question: Question, client: ClientSession) -> Question:
    """The question about a file that exists; raises `Refused` with the nearest paths where it is not certain which."""
    named = question.file_path
    if named is None or question.text is not None or _exists(named, client):
        return question
    path = await anyio.to_thread.run_sync(_found, named, client.root)
    return replace(question, file_path=path)


def _found(named: str, root: AbsPath) -> str:
    """The file that is meant; reads folders, so run it in a worker thread."""
    real = AbsPath(real_path(root))
    files = list(islice(files_below(real), MAX_FILES))
    found = candidates(named.removeprefix("@"), (os.path.relpath(path, real) for path in files))
    if len(found.ending) == 1 and len(files) < MAX_FILES and not os.path.isabs(named):
        return os.path.join(real, found.ending[0])
    nearest = (found.ending or found.similar)[:MAX_NEAREST]
    hint = f"Nearest: {', '.join(nearest)}." if nearest else None
    raise Refused(Code.FILE_MISSING, f"{named} does not exist.", hint=hint)


def _exists(named: str, client: ClientSession) -> bool:
    path = os.path.normpath(os.path.join(client.cwd, named.removeprefix("@")))
    # What cannot be a path, or lies outside, is for the boundary to refuse.
    return "\0" in path or os.path.lexists(path) or not is_inside(path, client.root)
