"""Our own questions and answers: all that a surface sees.

On the wire names are camel case, and what is absent is left out.
Lines and characters are 1-based here, as people and models count, and a character is a Unicode code point; an end is
where the thing has ended, so a name of three characters at 1:5 ends at 1:8.

Invariant: an answer says how much it can be believed. Its state follows from how it came about (`Effort`) and is never
chosen; `answer` is the one way to make an answer, and `Answer` refuses any other, read from a wire or not.
Only a fresh answer can be `empty`: a failure, a time-out or a server that is still indexing never is.

The file is long because it is a list: one shape after the other, and no behaviour but that invariant.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar, cast, get_args

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from pilotfish.errors import Bug, Code, Failure
from pilotfish.model import Diagnostic as ModelDiagnostic
from pilotfish.model import Range, Severity

OURSELVES = "pilotfish"
"""The `serverId` of an error that is no server's."""


TIMEOUTS = frozenset({Code.INIT_TIMEOUT, Code.REQUEST_TIMEOUT, Code.SERVER_HUNG})


class State(StrEnum):
    """How much an answer can be believed."""

    FRESH = "fresh"
    """Everybody who should answer did, about the text as it is."""
    PARTIAL = "partial"
    """What is here is right, but there may be more."""
    STALE = "stale"
    """About an older text."""
    UNAVAILABLE = "unavailable"
    """Nobody answered."""


class Api(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Common settings of every shape here."""


# --- Places -------------------------------------------------------------------------------------------------------


class Extent(Api, frozen=True):
    """From a character up to but not including another."""

    line: int
    character: int
    end_line: int
    end_character: int


def counted_from_one(place: Range) -> tuple[int, int, int, int]:
    """The fields of an `Extent`."""
    return place.start.line + 1, place.start.character + 1, place.end.line + 1, place.end.character + 1


class Location(Extent, frozen=True, kw_only=True):
    """A place in a file.

    `path` is relative to the workspace, absolute outside of it, and the URI itself where that names no file.
    An external file is never read: there is no `text`, and its characters are in the server's units, which are the same
    for a line of ASCII.
    """

    path: str
    external: bool = False
    text: str | None = None
    """The source line; of a very long one, the part around the place, with `…` where it was cut."""
    within: str | None = None
    """Of a reference: the symbol around it, such as `Class.method`."""
    cell: int | None = None
    """In a notebook: the number of the cell, from 1. `line` counts in the text of all its code cells."""
    cell_line: int | None = None
    """The line in that cell, from 1."""


class Symbol(Location, frozen=True, kw_only=True):
    """A named thing. The place is that of its name; `first_line` and `last_line` bound all of it."""

    name: str
    kind: str
    detail: str | None = None
    container: str | None = None
    depth: int = 0
    first_line: int | None = None
    last_line: int | None = None
    deprecated: bool = False


class SymbolText(Symbol, frozen=True, kw_only=True):
    """A symbol with its whole text: its lines, decorators included."""

    source: str
    digest: str
    """Of the text: an edit that names it is refused when the text is another one."""


class Use(Api, frozen=True, kw_only=True):
    """Where something is used: all places within one symbol of one file."""

    path: str
    lines: tuple[int, ...]
    within: str | None = None
    text: str | None = None
    """The source line of the first place."""


class Exploration(Api, frozen=True, kw_only=True):
    """All about one symbol."""

    symbol: SymbolText
    contents: tuple[str, ...] = ()
    """Type and documentation."""
    uses: tuple[Use, ...] = ()
    total: int = 0
    """How many places use it."""


class UsedSymbol(Api, frozen=True, kw_only=True):
    symbol: Symbol
    uses: tuple[Use, ...] = ()
    total: int = 0


class Impact(Api, frozen=True, kw_only=True):
    """What a change touches: the symbols that changed, or the one that was named, who uses them, and what is broken."""

    changed: tuple[UsedSymbol, ...]
    broken: Mapping[str, tuple["Diagnostic", ...]]
    """Errors of the changed files and of those that use what changed, by path: those that the change introduced."""
    older: int = 0
    """Errors of these files that were there before the change."""
    possibly_older: bool = False
    """Of some in `broken` it could not be known whether they were there before."""
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])
    """By path, how many other errors there are of which that is not known. None is about what changed: neither does it
    name that, nor does its line use it."""
    checked: int = 0
    """Files that were checked."""
    files: tuple[str, ...] = ()
    """Changed files in which no symbol changed."""
    deleted: tuple[str, ...] = ()
    """Files that the last commit has, and that are gone; who used them is checked."""
    named: bool = False
    """Nothing is known to have changed: it is about a symbol that the caller named."""


class Hover(Api, frozen=True):
    contents: tuple[str, ...]
    range: Extent | None = None


class Signature(Api, frozen=True):
    label: str
    documentation: str | None = None
    parameters: tuple[str, ...] = ()
    active_parameter: int | None = None
    """An index into `parameters`."""
    active: bool = False


# --- Hierarchies --------------------------------------------------------------------------------------------------


class Point(Api, frozen=True):
    """A position word for word as a server gave it: 0-based, in the server's units."""

    line: int
    character: int


class Span(Api, frozen=True):
    start: Point
    end: Point


class ItemReference(Api, frozen=True, kw_only=True):
    """An item of a call or type hierarchy as the protocol has it, to be handed back as it came."""

    name: str
    uri: str
    range: Span
    selection_range: Span
    kind: int = 0
    detail: str | None = None
    tags: tuple[int, ...] | None = None
    data: Any = UNSET
    server: str | None = None
    """Who gave it: nobody else understands its `data`."""


class HierarchyItem(ItemReference, frozen=True, kw_only=True):
    """An item, and where its name is."""

    location: Location


class Edge(Api, frozen=True):
    """Who calls (`from`) or is called (`to`), and every place where that is written."""

    calls: tuple[Location, ...]
    caller: HierarchyItem | None = field(name="from", default=None)
    callee: HierarchyItem | None = field(name="to", default=None)


# --- Diagnostics, changes, actions --------------------------------------------------------------------------------

SeverityWord = Literal["error", "warning", "information", "hint"]
"""From the worst, as the protocol counts them."""


class Diagnostic(Extent, frozen=True, kw_only=True):
    severity: SeverityWord
    message: str
    server: str
    code: str | None = None
    source: str | None = None
    introduced: bool | None = None
    """Whether the edit that was asked about brought it; None where nobody knows."""
    cell: int | None = None
    """Of a notebook: the number of the cell, from 1. `line` counts in the text of all its code cells."""
    cell_line: int | None = None
    """The line in that cell, from 1."""


class FileChange(Api, frozen=True):
    """What happens to one file. `diff` is unified, and absent where no text changes."""

    path: str
    kind: Literal["edit", "create", "rename", "delete"] = "edit"
    new_path: str | None = None
    edits: int = 0
    diff: str | None = None


class Changes(Api, frozen=True):
    """A rename, a move or an action: what it would do, or did."""

    applied: bool
    files: tuple[FileChange, ...]
    confirm: tuple[str, ...] = ()
    """What the server wants a person to confirm; such changes are never applied here."""
    feedback: "Feedback | None" = None
    """What the servers say about the changed files, once the changes were applied."""


class Action(Api, frozen=True):
    """A code action on offer; `id`, the title or the number (from 1; 0 for a disabled one) names it."""

    number: int
    title: str
    server: str
    kind: str | None = None
    preferred: bool = False
    disabled: str | None = None
    """Why it cannot be done."""
    changes: Changes | None = None
    id: str | None = None
    """Bound to the text that it is offered for: of another text there is no such action."""


Item = Location | Symbol | Hover | Signature | HierarchyItem | Edge | Action | Changes
"""One result of one server."""

Data = tuple[Item, ...] | Hover | Changes | Exploration | Impact | Mapping[str, tuple[Diagnostic, ...]] | None


def diagnostic_of(found: ModelDiagnostic, *, introduced: bool | None = None) -> Diagnostic:
    """A diagnostic as surfaces see it."""
    return Diagnostic(
        *counted_from_one(found.range),
        severity=severity_word(found.severity),
        message=found.message,
        server=found.server,
        code=found.code,
        source=found.source,
        introduced=introduced,
        cell=None if found.cell is None else found.cell.number,
        cell_line=None if found.cell is None else found.range.start.line - found.cell.first_line + 1,
    )


SEVERITIES: tuple[SeverityWord, ...] = get_args(SeverityWord)


def severity_word(severity: Severity) -> SeverityWord:
    return SEVERITIES[severity - 1]


def severity_of(word: str) -> Severity:
    return Severity(SEVERITIES.index(word) + 1)


# --- Questions ----------------------------------------------------------------------------------------------------


class OtherFiles(Api, frozen=True):
    """How far the files were checked that an edit may have broken elsewhere."""

    checked: int
    candidates: int
    complete: Literal["project", "candidates", "no"]
    """The server judged the whole project; every file that may be affected was checked; or not every one."""


class Feedback(Api, frozen=True):
    """What to append to the tool's result: nothing at all when `text` is empty."""

    text: str
    state: State
    duration_ms: int
    reason: str | None = None
    introduced: int = 0
    fixed: int = 0
    others: OtherFiles | None = None
    """None where other files were not looked at."""


# --- Answers ------------------------------------------------------------------------------------------------------


class Error(Api, frozen=True):
    server_id: str
    message: str
    code: Code


class Meta(Api, frozen=True):
    duration_ms: int
    server_hits: int
    partial: bool
    state: State
    timed_out: bool = False
    empty: bool = False
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    reason: str | None = None
    total: int | None = None
    """Of a list: how many results there are, here or not."""
    offset: int = 0
    """How many of them were left out before the first."""
    also_mentioned: int = 0
    """Files that mention the name as well, in a comment, a string or of another thing: the server knows better."""


class Effort(Struct, frozen=True):
    """How an answer came about: all that its state follows from."""

    duration_ms: int = 0
    server_hits: int = 0
    """How many servers answered."""
    errors: tuple[Error, ...] = ()
    caveats: tuple[str, ...] = ()
    """Why there may be more than was found: `rust-analyzer is still indexing`."""
    stale: str | None = None
    """Why this is about an older text."""
    timed_out: bool = False
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    total: int | None = None
    offset: int = 0
    also_mentioned: int = 0


D = TypeVar("D")


class Answer(Api, Generic[D], frozen=True, kw_only=True):
    """The envelope of every operation. `operation` is the caller's own word where it named none that exists."""

    ok: bool
    operation: str
    data: D | None
    errors: tuple[Error, ...] = ()
    meta: Meta

    def __post_init__(self) -> None:
        broken = [rule for rule, holds in _rules(self).items() if not holds]
        if broken:
            raise ValueError(f"an answer that lies: {'; '.join(broken)}")

    def unwrap(self) -> D | None:
        """The data of a fresh answer, which is None or empty where nothing was found; raises `NotFresh` otherwise."""
        if self.meta.state is not State.FRESH:
            raise NotFresh(cast("Answer[Any]", self))
        return self.data


class NotFresh(Exception):
    """An answer that may be incomplete, about an older text, or none at all, where a fresh one was needed."""

    def __init__(self, answer: Answer[Any]) -> None:
        super().__init__(f"{answer.operation} is {answer.meta.state}: {answer.meta.reason}")
        self.answer = answer
        """With whatever it found."""
        self.state = answer.meta.state
        self.code = answer.errors[0].code if answer.errors else None
        """What went wrong first; None where no server failed."""


DiagnosticsAnswer = Answer[Mapping[str, tuple[Diagnostic, ...]]]
"""Diagnostics by path."""


def answer_from(operation: str, data: D | None, effort: Effort) -> Answer[D]:
    """The answer, its state as `effort` makes it. What nobody answered has no data, however empty."""
    empty = is_empty(data)
    state = _state(effort, empty=empty)
    if state is State.UNAVAILABLE:
        data = None
    return Answer(
        ok=state is not State.UNAVAILABLE,
        operation=operation,
        data=data,
        errors=effort.errors,
        meta=Meta(
            duration_ms=effort.duration_ms,
            server_hits=effort.server_hits,
            partial=state is State.PARTIAL,
            state=state,
            timed_out=_timed_out(effort),
            empty=state is State.FRESH and empty,
            truncated=effort.truncated,
            warnings=effort.warnings,
            reason=None if state is State.FRESH else _reason(effort),
            total=effort.total if state is not State.UNAVAILABLE else None,
            offset=effort.offset,
            also_mentioned=effort.also_mentioned,
        ),
    )


def refused(operation: str, failure: Failure) -> Answer[Any]:
    """The answer to a question that could not be asked."""
    return answer_from(operation, None, Effort(errors=(error_of(failure),)))


def with_warnings(answer: Answer[D], warnings: tuple[str, ...]) -> Answer[D]:
    """The same answer, with more to heed."""
    if not warnings:
        return answer
    return replace(answer, meta=replace(answer.meta, warnings=(*answer.meta.warnings, *warnings)))


def at_least(answer: "DiagnosticsAnswer", severity: str | None) -> "DiagnosticsAnswer":
    """The same answer, with diagnostics of this severity and worse ones only; None: all."""
    if severity is None:
        return answer
    return of_severities(answer, tuple(Severity(rank) for rank in range(1, severity_of(severity) + 1)))


def of_severities(answer: "DiagnosticsAnswer", severities: Collection[Severity]) -> "DiagnosticsAnswer":
    """The same answer, with diagnostics of these severities only."""
    if answer.data is None:
        return answer
    words = {severity_word(severity) for severity in severities}
    data = {path: tuple(one for one in found if one.severity in words) for path, found in answer.data.items()}
    return with_data(answer, data)


def with_data(answer: Answer[D], data: D) -> Answer[D]:
    """The same answer with a part of its data; one without data stays as it is."""
    if answer.data is None:
        return answer
    empty = answer.meta.state is State.FRESH and is_empty(data)
    return replace(answer, data=data, meta=replace(answer.meta, empty=empty))


def error_of(failure: Failure) -> Error:
    """A failure as it stands in an answer; what to do about it follows the message."""
    message = failure.message
    if failure.hint:
        stop = "" if message.endswith((".", "!", "?", ":")) else "."
        message = f"{message}{stop} {failure.hint}"
    return Error(server_id=failure.scene.server or OURSELVES, message=message, code=failure.code)


def error_text(error: Error) -> str:
    """An error in one sentence that names the server."""
    known = error.server_id in error.message or error.server_id == OURSELVES
    return error.message if known else f"{error.server_id}: {error.message}"


def is_empty(data: object) -> bool:
    """Whether there is nothing in `data`, of whatever shape."""
    match data:
        case Changes():
            return not data.files
        case Impact():
            return not (data.changed or data.files or data.deleted)
        case Hover():
            return not data.contents
        case Mapping():
            return not any(cast("Mapping[str, object]", data).values())
        case _:
            return not data


def _state(effort: Effort, *, empty: bool) -> State:
    trouble = bool(effort.errors or effort.caveats or effort.stale or _timed_out(effort))
    if effort.server_hits == 0 and not trouble:
        raise Bug("an answer that nobody gave must say why")
    if effort.server_hits == 0 and empty:
        return State.UNAVAILABLE
    if effort.stale:
        return State.STALE
    return State.PARTIAL if trouble else State.FRESH


def _timed_out(effort: Effort) -> bool:
    return effort.timed_out or any(error.code in TIMEOUTS for error in effort.errors)


def _reason(effort: Effort) -> str:
    reasons = [*((effort.stale,) if effort.stale else ()), *effort.caveats] or map(error_text, effort.errors)
    return "; ".join(dict.fromkeys(reasons)) or "the time limit has passed"


def _rules(answer: Answer[D]) -> dict[str, bool]:
    """What must hold of every answer, wherever it comes from."""
    meta, fresh = answer.meta, answer.meta.state is State.FRESH
    return {
        "ok means that somebody answered": answer.ok is (meta.state is not State.UNAVAILABLE),
        "an answer that nobody gave has no data": answer.ok or answer.data is None,
        "what is not fresh says why": fresh or bool(meta.reason),
        "a fresh answer came from a server": not fresh or meta.server_hits > 0,
        "a fresh answer has no errors": not fresh or not (answer.errors or meta.timed_out),
        "partial is said twice alike": meta.partial is (meta.state is State.PARTIAL),
        "empty means fresh and nothing there": meta.empty is (fresh and is_empty(answer.data)),
    }
