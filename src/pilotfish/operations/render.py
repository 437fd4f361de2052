"""Answers as text for models: compact, and honest about themselves.

Every place is `path:line:col` with the source line behind it, the places of one file together. What is not fresh begins
with its state and the reason; what was left out is counted; a server that failed is named. `No results found.` stands
only where a fresh answer is empty. A text that has a limit ends with a whole item, and says how many are missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never, cast

from msgspec import Struct

from pilotfish.api.answers import (
    Action,
    Answer,
    Changes,
    Data,
    Diagnostic,
    Edge,
    Feedback,
    FileChange,
    HierarchyItem,
    Hover,
    Item,
    Location,
    Meta,
    Signature,
    State,
    Symbol,
    error_text,
    is_empty,
)
from pilotfish.api.questions import Operation
from pilotfish.errors import Bug, Code
from pilotfish.operations.cleaning import MAX_DIFF, MAX_HOVER, MAX_MESSAGE, MAX_NAME, MAX_PATH, MAX_SOURCE
from pilotfish.operations.symbols import kind_word
from pilotfish.sanitise import sanitised, sanitised_lines

NOTHING = "No results found."
NO_DIAGNOSTICS = "No diagnostics."
NARROW_QUERY = "narrow with a longer query or with filePath"
ONE_FILE = "ask with filePath for those of one file"
NOTHING_YET = "Nothing found so far."
"""For an answer that may be incomplete: it must not read as if there were nothing."""


def text_of(answer: Answer[Any], max_bytes: int | None = None) -> str:
    """The answer as a model reads it, in at most `max_bytes` of UTF-8."""
    page = _page(answer)
    return page.whole() if max_bytes is None else page.within(max_bytes)


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

    def whole(self) -> str:
        return "\n".join([*self.head, *self.items, *self.tail])

    def within(self, max_bytes: int) -> str:
        """As many whole items as fit, in front of the number of the others."""
        whole = self.whole()
        if _size(whole) <= max_bytes:
            return whole
        total, around = len(self.items), "\n".join([*self.head, self._cut(len(self.items)), *self.tail])
        left, shown = max_bytes - _size(around) - 1, 0
        while shown < total and _size(self.items[shown]) < left:
            left -= _size(self.items[shown]) + 1
            shown += 1
        if shown:
            return "\n".join([*self.head, *self.items[:shown], self._cut(total - shown), *self.tail])
        # Nothing fits whole, or what must be said is too long by itself: whole lines have to do.
        return _lines_within(whole, max_bytes)

    def _cut(self, missing: int) -> str:
        return f"… {missing} more of {len(self.items)} {self.noun}{f'; {self.advice}' if self.advice else ''}"


def _lines_within(text: str, max_bytes: int) -> str:
    lines = text.split("\n")
    left, shown = max_bytes - _size(f"… {len(lines)} more of {len(lines)} lines"), 0
    while shown < len(lines) and _size(lines[shown]) < left:
        left -= _size(lines[shown]) + 1
        shown += 1
    return "\n".join([*lines[:shown], f"… {len(lines) - shown} more of {len(lines)} lines"])


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _page(answer: Answer[Any]) -> _Page:
    meta = answer.meta
    page = _body(answer)
    if _is_refusal(answer):
        page.head[:0] = [_message(error.message) for error in answer.errors]
        return page
    failed = [_message(error_text(error)) for error in answer.errors if error.message not in (meta.reason or "")]
    page.head[:0] = [] if meta.state is State.FRESH else [state_line(meta)]
    page.tail += [*failed, *(f"note: {_message(warning)}" for warning in meta.warnings)]
    return page


def _is_refusal(answer: Answer[Any]) -> bool:
    """Whether the question itself was wrong: then no server was asked, and its state says nothing."""
    return not answer.ok and bool(answer.errors) and all(error.code is Code.INVALID_INPUT for error in answer.errors)


def _body(answer: Answer[Any]) -> _Page:
    if is_empty(answer.data):
        return _Page(list(_nothing(answer)), [], [])
    data = cast("Data", answer.data)
    if isinstance(data, Hover):
        return _Page([], sanitised_lines("\n\n".join(data.contents), MAX_HOVER).split("\n"), [], "lines")
    if isinstance(data, Changes):
        return _changes(data)
    if isinstance(data, tuple):
        return _items(answer.operation, data)
    return _diagnostics(data or {})


def _nothing(answer: Answer[Any]) -> Iterator[str]:
    if answer.meta.empty:
        yield NO_DIAGNOSTICS if answer.operation == Operation.DIAGNOSTICS else NOTHING
    elif answer.ok:
        yield NOTHING_YET


def _items(operation: str, items: tuple[Item, ...]) -> _Page:
    if operation == Operation.DOCUMENT_SYMBOL:
        return _Page([], list(_outline(cast("tuple[Symbol, ...]", items))), [], "symbols")
    paths = {place.path for place in map(_place, items) if place is not None}
    several = len(items) > 1 and paths
    head = [f"{len(items)} results{f' in {len(paths)} files' if len(paths) > 1 else ''}:"] if several else []
    advice = NARROW_QUERY if operation == Operation.WORKSPACE_SYMBOL else ""
    return _Page(head, ["\n".join(_item(item)) for item in items], [], advice=advice)


def _item(item: Item) -> Iterator[str]:
    match item:
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


def _hierarchy_item(item: HierarchyItem) -> str:
    detail = f"  {_name(item.detail)}" if item.detail else ""
    return f"{_at(item.location)}  {kind_word(item.kind)} {_name(item.name)}{detail}"


def _outline(symbols: tuple[Symbol, ...]) -> Iterator[str]:
    path = None
    for symbol in symbols:
        above = "" if symbol.path == path else f"{_path(symbol.path)}\n"
        path = symbol.path
        lines = f" ({symbol.first_line}-{symbol.last_line})" if (symbol.last_line or 0) > symbol.line else ""
        detail = f": {_name(symbol.detail)}" if symbol.detail else ""
        inside = f" in {_name(symbol.container)}" if symbol.container and not symbol.depth else ""
        place = f"{symbol.line}:{symbol.character}"
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
    return f"{action.number}. {_message(action.title)}" + (f" ({', '.join(marks)})" if marks else "")


def _changes(changes: Changes) -> _Page:
    edits = sum(file.edits for file in changes.files)
    what = f"{_counted(len(changes.files), 'file')}, {_counted(edits, 'edit')}"
    done = f"Applied: {what}." if changes.applied else f"Preview: {what}. Nothing was written."
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
    lines = [_diagnostic(path, one) for path, diagnostics in by_path.items() for one in diagnostics]
    advice = ONE_FILE if len(by_path) > 1 else ""
    return _Page([], lines, [], "diagnostics", advice)


def _diagnostic(path: str, one: Diagnostic) -> str:
    code = f" ({_name(one.code)})" if one.code else ""
    return f"{_path(path)}:{one.line}:{one.character}  {one.severity}: {_message(one.message)}{code}"


def _at(location: Location) -> str:
    external = " (external)" if location.external else ""
    return f"{_path(location.path)}:{location.line}:{location.character}{external}"


def _source(location: Location) -> str:
    source = sanitised(location.text or "", MAX_SOURCE)
    return f"  {source}" if source else ""


def _message(text: str) -> str:
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


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
