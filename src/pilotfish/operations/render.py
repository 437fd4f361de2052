"""Answers as text for models: compact, and honest about themselves.

Every place is `path:line:col` with the source line behind it, the places of one file together. What is not fresh begins
with its state and the reason; what was left out is counted; a server that failed is named. `No results found.` stands
only where a fresh answer is empty. A text that has a limit ends with a whole item, and says how many are missing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, assert_never, cast

from msgspec import Struct

from pilotfish.api.answers import (
    SEVERITIES,
    Action,
    Answer,
    Changes,
    Data,
    Diagnostic,
    Edge,
    Exploration,
    Feedback,
    FileChange,
    HierarchyItem,
    Hover,
    Impact,
    Item,
    Location,
    Meta,
    Signature,
    State,
    Symbol,
    SymbolText,
    Use,
    UsedSymbol,
    error_text,
    is_empty,
)
from pilotfish.api.questions import Operation
from pilotfish.counting import counted
from pilotfish.errors import Bug, Code
from pilotfish.operations.cleaning import MAX_DIFF, MAX_HOVER, MAX_MESSAGE, MAX_NAME, MAX_PATH, MAX_SOURCE
from pilotfish.operations.names import bare_name
from pilotfish.operations.symbols import kind_word
from pilotfish.sanitise import sanitised, sanitised_lines

_BLANK_LINES = re.compile(r"\n\s*\n")
NOTHING = "No results found."
NO_DIAGNOSTICS = "No diagnostics."
ONE_FILE = "ask with filePath for those of one file"
NO_CHANGES = "Nothing has changed since the last commit."

MAX_LINES = 60
"""Of a symbol's text among all that is said about it."""

MAX_DOCUMENTATION = 1500

MAX_NUMBERS = 8
"""Lines of one user."""

NOT_KNOWN = "; which edits the importing files need is not known yet"
"""Of a move where a server did not say it; the file is not moved without them."""

NOTHING_YET = "Nothing found so far."
"""For an answer that may be incomplete: it must not read as if there were nothing."""


def text_of(answer: Answer[Any], max_bytes: int | None = None, *, grouped: bool = True) -> str:
    """The answer as a model reads it, in at most `max_bytes` of UTF-8; not `grouped`: each place with its path."""
    page = _page(answer, grouped=grouped)
    return page.whole() if max_bytes is None else page.within(max_bytes)


def rest_line(meta: Meta, shown: int) -> str | None:
    """What of a list is not shown, and how to get it; None where nothing is left."""
    end = meta.offset + shown
    return None if meta.total is None or end >= meta.total else _rest(end, meta.total, "results")


def _rest(end: int, total: int, noun: str) -> str:
    return f"… {total - end} more of {total} {noun}; go on with offset {end}"


def state_line(meta: Meta) -> str:
    """Why an answer is not fresh; where a server is missing, also what to do instead, which takes several lines."""
    return f"{meta.state}: {sanitised_lines(meta.reason or '', MAX_MESSAGE)}"


class _Page(Struct):
    """A text in parts: what must be said, and items, each whole, of which the last may be left out."""

    head: list[str]
    items: list[str]
    tail: list[str]
    noun: str = "results"
    advice: str = ""
    """How to get what is left out."""
    offset: int = 0
    """How many were left out before the first item."""
    total: int = 0
    """Of a list that can be continued: how many there are."""

    def whole(self) -> str:
        rest = [self._cut(len(self.items))] if self.offset + len(self.items) < self.total else []
        return "\n".join([*self.head, *self.items, *rest, *self.tail])

    def within(self, max_bytes: int) -> str:
        """As many whole items as fit, in front of the number of the others."""
        whole = self.whole()
        if _size(whole) <= max_bytes:
            return whole
        total, around = len(self.items), "\n".join([*self.head, self._cut(0), *self.tail])
        left, shown = max_bytes - _size(around) - 1, 0
        while shown < total and _size(self.items[shown]) < left:
            left -= _size(self.items[shown]) + 1
            shown += 1
        if shown:
            return "\n".join([*self.head, *self.items[:shown], self._cut(shown), *self.tail])
        # Nothing fits whole, or what must be said is too long by itself: whole lines have to do.
        return _lines_within(whole, max_bytes)

    def _cut(self, shown: int) -> str:
        if self.total:
            return _rest(self.offset + shown, self.total, self.noun)
        total = len(self.items)
        return f"… {total - shown} more of {total} {self.noun}{f'; {self.advice}' if self.advice else ''}"


def _lines_within(text: str, max_bytes: int) -> str:
    lines = text.split("\n")
    left, shown = max_bytes - _size(f"… {len(lines)} more of {len(lines)} lines"), 0
    while shown < len(lines) and _size(lines[shown]) < left:
        left -= _size(lines[shown]) + 1
        shown += 1
    return "\n".join([*lines[:shown], f"… {len(lines) - shown} more of {len(lines)} lines"])


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _page(answer: Answer[Any], *, grouped: bool) -> _Page:
    meta = answer.meta
    page = _body(answer, grouped=grouped)
    if not answer.ok and {error.code for error in answer.errors} == {Code.INVALID_INPUT}:
        # The question itself was wrong: no server was asked, and its state says nothing.
        page.head[:0] = [_message(error.message) for error in answer.errors]
        return page
    failed = [_message(error_text(error)) for error in answer.errors if error.message not in (meta.reason or "")]
    page.head[:0] = [] if meta.state is State.FRESH else [state_line(meta)]
    page.tail += [*failed, *(f"note: {_message(warning)}" for warning in meta.warnings)]
    if meta.also_mentioned:
        files = "another file mentions" if meta.also_mentioned == 1 else f"{meta.also_mentioned} more files mention"
        what = "the name, and the server sees no use there: a comment, a string, something else"
        page.tail.append(f"note: {files} {what}")
    return page


def _body(answer: Answer[Any], *, grouped: bool) -> _Page:
    if is_empty(answer.data):
        return _Page(list(_nothing(answer)), [], [])
    data = cast("Data", answer.data)
    if isinstance(data, Hover):
        return _Page([], sanitised_lines("\n\n".join(data.contents), MAX_HOVER).split("\n"), [], "lines")
    if isinstance(data, Changes):
        is_unknown = answer.operation == Operation.RENAME_FILE and bool(answer.errors) and not data.applied
        return _changes(data, unknown=NOT_KNOWN if is_unknown else "")
    if isinstance(data, Exploration):
        return _exploration(data)
    if isinstance(data, Impact):
        return _impact(data)
    if isinstance(data, tuple):
        return _items(answer.operation, data, answer.meta, grouped=grouped)
    return _diagnostics(data or {})


def _nothing(answer: Answer[Any]) -> Iterator[str]:
    if answer.meta.total:
        yield f"There are {answer.meta.total} results: none from offset {answer.meta.offset} on."
    elif answer.meta.empty:
        yield _NOTHINGS.get(answer.operation, NOTHING)
    elif answer.ok:
        yield NOTHING_YET


_NOTHINGS: Mapping[str, str] = {Operation.DIAGNOSTICS: NO_DIAGNOSTICS, Operation.IMPACT: NO_CHANGES}


def _items(operation: str, items: tuple[Item, ...], meta: Meta, *, grouped: bool) -> _Page:
    disabled = sum(isinstance(item, Action) and bool(item.disabled) for item in items)
    total = len(items) if meta.total is None else meta.total
    page = _Page([], [], [], offset=meta.offset, total=total)
    if 0 < disabled < len(items):
        items = tuple(item for item in items if not (isinstance(item, Action) and item.disabled))
        page.total, page.tail = total - disabled, [f"{counted(disabled, 'more action')} cannot be applied here"]
    if operation == Operation.DOCUMENT_SYMBOL:
        page.noun, page.items = "symbols", list(_outline(cast("tuple[Symbol, ...]", items)))
        return page
    paths = {place.path for place in map(_place, items) if place is not None}
    if grouped and len(items) > 1 and paths:
        shown = f" (from {meta.offset + 1})" if meta.offset else ""
        page.head = [f"{total} results{f' in {len(paths)} files' if len(paths) > 1 else ''}{shown}:"]
    if grouped and operation == Operation.REFERENCES and len(items) > 1:
        page.items = list(_references(cast("tuple[Location, ...]", items)))
    else:
        page.items = ["\n".join(_item(item)) for item in items]
    return page


def _references(places: tuple[Location, ...]) -> Iterator[str]:
    """By file: the file once, then line, column, the symbol around, and the source line."""
    path = None
    for place in places:
        external = " (external)" if place.external else ""
        above = "" if place.path == path else f"{_path(place.path)}{external}\n"
        path = place.path
        within = f" in {_name(place.within)}" if place.within else ""
        source = sanitised(place.text or "", MAX_SOURCE).strip()
        yield f"{above}  {place_text(place)}{within}{f'  {source}' if source else ''}"


def _item(item: Item) -> Iterator[str]:
    match item:
        case SymbolText():
            yield from _source_text(item)
        case Symbol():
            inside = f" in {_name(item.container)}" if item.container else ""
            yield f"{_at(item)}  {item.kind} {_name(item.name)}{inside}"
        case Location():
            yield f"{_at(item)}{_source(item)}"
        case HierarchyItem():
            yield _hierarchy_item(item)
        case Edge():
            yield from (_hierarchy_item(end) for end in (item.caller, item.callee) if end is not None)
            yield from (f"  call {_at(call)}{_source(call)}" for call in item.calls)
        case Action():
            yield _action(item)
            yield from () if item.changes is None else (_changes(item.changes).whole(),)
        case Signature():
            yield from _signature(item)
        case Hover() | Changes():
            raise Bug("a hover or a change is never one of several")
        case _:
            assert_never(item)


def _source_text(item: SymbolText) -> Iterator[str]:
    inside = f" in {_name(item.container)}" if item.container else ""
    lines = f"{item.first_line}-{item.last_line}"
    yield f"{_path(item.path)}:{lines}  {item.kind} {_name(item.name)}{inside}  (digest {item.digest})"
    yield sanitised_lines(item.source, MAX_DIFF)


def _exploration(found: Exploration) -> _Page:
    """The symbol, what is said about it, its text, and who uses it: each with a share of the whole."""
    symbol = found.symbol
    head = [f"{_path(symbol.path)}:{place_text(symbol)}  {symbol.kind} {_name(symbol.name)}"]
    if found.contents:
        head += [sanitised_lines(_without_source("\n\n".join(found.contents), symbol.source), MAX_DOCUMENTATION)]
    source = sanitised_lines(symbol.source, MAX_DIFF).split("\n")
    head += [f"text, lines {symbol.first_line}-{symbol.last_line} (digest {symbol.digest}):", *source[:MAX_LINES]]
    if len(source) > MAX_LINES:
        head += [f"… {len(source) - MAX_LINES} more lines; ask for its source"]
    head += [_users_heading(found.total, found.uses, symbol.name)]
    return _Page(head, [_use(use) for use in found.uses], [], "users", "ask for its references")


def _without_source(said: str, source: str) -> str:
    """What a server says about a symbol without the lines of its documentation that its text has anyway."""
    signature, fence, documentation = said.partition("\n```\n") if said.startswith("```") else ("", "", said)
    lines = [line for line in documentation.split("\n") if not line.strip() or line.strip() not in source]
    return f"{signature}{fence}{_BLANK_LINES.sub(chr(10), chr(10).join(lines))}".strip()


def _impact(found: Impact) -> _Page:
    items = [line for one in found.changed for line in _used(one)]
    items += [f"{_path(path)}: changed outside of symbols" for path in found.files]
    items += [f"{_path(path)}: deleted" for path in found.deleted]
    errors = [*_diagnostic_lines(found.broken)]
    if found.named:
        old = f"{counted(len(errors), 'error')} in these files, of {counted(found.checked, 'file')} checked:"
        more = [f"… {len(errors) - MAX_NUMBERS} more of {len(errors)} errors"] if len(errors) > MAX_NUMBERS else []
        return _Page([], items, [old, *errors[:MAX_NUMBERS], *more] if errors else [], "lines")
    what = "Errors in these files (possibly older)" if found.possibly_older else "Broken now"
    broken = f"{what}, of {counted(found.checked, 'file')} checked:" if errors else None
    new = "new errors are known" if found.unknown else "new errors" if found.older else "errors"
    clean = f"No {new} in the {counted(found.checked, 'file that was', 'files that were')} checked."
    head = [broken, *errors] if broken else [clean if found.checked else "No changed file has a server that checks it."]
    if found.older:
        head += [f"And {counted(found.older, 'older error')}."]
    if found.unknown:
        where = ", ".join(f"{_path(path)} {count}" for path, count in list(found.unknown.items())[:MAX_NUMBERS])
        more = (
            f" and {counted(len(found.unknown) - MAX_NUMBERS, 'more file')}" if len(found.unknown) > MAX_NUMBERS else ""
        )
        head += [f"{counted(sum(found.unknown.values()), 'other error')} may be older than the change: {where}{more}."]
    head += [f"{counted(len(found.changed), 'symbol')} changed:"] if found.changed else []
    return _Page(head, items, [], "lines")


def _used(one: UsedSymbol) -> Iterator[str]:
    symbol = one.symbol
    yield (
        f"{_path(symbol.path)}:{place_text(symbol)}  {symbol.kind} {_name(symbol.name)}: "
        f"{_users_heading(one.total, one.uses, symbol.name)}"
    )
    yield from (f"  {_use(use)}" for use in one.uses)


def _users_heading(total: int, uses: Sequence[Use], name: str) -> str:
    files = len({use.path for use in uses})
    if total:
        return f"used {counted(total, 'time')} in {counted(files, 'file')}"
    # `__call__` and the like: the language calls them where their name does not stand.
    own = bare_name(name)
    return "called without its name, so its uses are not known" if own[:2] == own[-2:] == "__" else "not used"


def _use(use: Use) -> str:
    lines = ",".join(map(str, use.lines[:MAX_NUMBERS])) + (",…" if len(use.lines) > MAX_NUMBERS else "")
    within = f" in {_name(use.within)}" if use.within else ""
    source = sanitised(use.text or "", MAX_SOURCE).strip()
    return f"{_path(use.path)}:{lines}{within}{f'  {source}' if source else ''}"


def _hierarchy_item(item: HierarchyItem) -> str:
    detail = f"  {_name(item.detail)}" if item.detail else ""
    return f"{_at(item.location)}  {kind_word(item.kind)} {_name(item.name)}{detail}"


def _outline(symbols: tuple[Symbol, ...]) -> Iterator[str]:
    path = None
    for symbol in symbols:
        above = "" if symbol.path == path else f"{_path(symbol.path)}\n"
        path = symbol.path
        has_extent = symbol.cell is None and (symbol.last_line or 0) > symbol.line
        lines = f" ({symbol.first_line}-{symbol.last_line})" if has_extent else ""
        detail = f": {_name(symbol.detail)}" if symbol.detail else ""
        inside = f" in {_name(symbol.container)}" if symbol.container and not symbol.depth else ""
        place = place_text(symbol)
        yield f"{above}{'  ' * (symbol.depth + 1)}{place} {symbol.kind} {_name(symbol.name)}{inside}{detail}{lines}"


def _signature(signature: Signature) -> Iterator[str]:
    index = signature.active_parameter
    parameter = "" if index is None else f"  (at {_name(signature.parameters[index])})"
    yield f"{'>' if signature.active else ' '} {_message(signature.label)}{parameter}"
    if signature.documentation:
        yield sanitised_lines(signature.documentation, MAX_MESSAGE)


def _action(action: Action) -> str:
    marks = [
        *([_name(action.kind)] if action.kind else []),
        *(["preferred"] if action.preferred else []),
        *([f"disabled: {_message(action.disabled)}"] if action.disabled else []),
    ]
    number = f"{action.number}." if action.number else "-"
    name = f" [{action.id}]" if action.id and action.number else ""
    said = f" ({', '.join(marks)})" if marks else ""
    return f"{number} {_message(action.title)}{said}{name}"


def _changes(changes: Changes, *, unknown: str = "") -> _Page:
    """`unknown`: that there may be more edits, so that `0 edits` does not read as if none were needed."""
    edits = sum(file.edits for file in changes.files)
    what = counted(len(changes.files), "file") + (f", {counted(edits, 'edit')}" if edits or not unknown else "")
    done = f"Applied: {what}." if changes.applied else f"Preview: {what}{unknown}. Nothing was written."
    confirm = (f"needs confirmation: {_message(label)}" for label in changes.confirm)
    files = ["\n".join(_file_change(file)) for file in changes.files]
    feedback = [] if changes.feedback is None else list(_feedback(changes.feedback))
    return _Page([done, *confirm], files, feedback, "files")


def _feedback(feedback: Feedback) -> Iterator[str]:
    """What became of the changed files. Nothing is said of clean ones, but what is not known is not clean."""
    if feedback.state is not State.FRESH:
        yield f"Checking the changed files: {feedback.state}: {_message(feedback.reason or '')}"
    if feedback.text:
        yield f"\n{feedback.text}"


def _file_change(change: FileChange) -> Iterator[str]:
    target = f" -> {_path(change.new_path)}" if change.new_path else ""
    if change.kind != "edit" or change.diff is None:
        yield f"{change.kind} {_path(change.path)}{target}"
    if change.diff:
        yield sanitised_lines(change.diff.rstrip("\n"), MAX_DIFF)


def _diagnostics(by_path: Mapping[str, Sequence[Diagnostic]]) -> _Page:
    # Errors first: a reader who has room for a few lines needs these.
    ranked = {
        rank: {path: [one for one in found if one.severity == rank] for path, found in by_path.items()}
        for rank in SEVERITIES
    }
    lines = [line for found in ranked.values() for line in _diagnostic_lines(found)]
    advice = ONE_FILE if len(by_path) > 1 else ""
    return _Page([], lines, [], "diagnostics", advice)


def _diagnostic_lines(by_path: Mapping[str, Sequence[Diagnostic]]) -> Iterator[str]:
    for path, diagnostics in by_path.items():
        shown = _path(path)
        for one in diagnostics:
            code = f" ({_name(one.code)})" if one.code else ""
            yield f"{shown}:{place_text(one)}  {one.severity}: {_message(one.message)}{code}"


def place_text(found: Location | Diagnostic) -> str:
    """Line and character; of a notebook the cell, too, and the line in it."""
    if found.cell is None:
        return f"{found.line}:{found.character}"
    return f"cell {found.cell}:{found.cell_line}:{found.character}"


def _at(location: Location) -> str:
    external = " (external)" if location.external else ""
    return f"{_path(location.path)}:{place_text(location)}{external}"


def _source(location: Location) -> str:
    source = sanitised(location.text or "", MAX_SOURCE)
    return f"  {source}" if source else ""


@lru_cache(1024)
def _message(text: str) -> str:
    # The same ones come again with every look at a project.
    return sanitised(text, MAX_MESSAGE)


def _path(path: str) -> str:
    return sanitised(path, MAX_PATH)


def _name(name: str) -> str:
    return sanitised(name, MAX_NAME)


def _place(item: Item) -> Location | None:
    match item:
        case Location():
            return item
        case HierarchyItem():
            return item.location
        case Edge(caller=HierarchyItem() as other) | Edge(callee=HierarchyItem() as other):
            return other.location
        case _:
            return None
