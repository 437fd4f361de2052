"""Answers as text for models: compact, and honest about themselves.

Every place is `path:line:col` with the source line behind it, the places of one file together. What is not fresh begins
with its state and the reason; what was left out is counted; a server that failed is named. `No results found.` stands
only where a fresh answer is empty.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never, cast

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
from pilotfish.errors import Bug
from pilotfish.operations.cleaning import MAX_DIFF, MAX_HOVER, MAX_MESSAGE, MAX_NAME, MAX_PATH, MAX_SOURCE
from pilotfish.operations.symbols import kind_word
from pilotfish.sanitise import sanitised, sanitised_lines

NOTHING = "No results found."
NO_DIAGNOSTICS = "No diagnostics."
NOTHING_YET = "Nothing found so far."
"""For an answer that may be incomplete: it must not read as if there were nothing."""


def text_of(answer: Answer[Any]) -> str:
    """The answer as a model reads it."""
    meta = answer.meta
    head = [] if meta.state is State.FRESH else [state_line(meta)]
    failed = [_message(error_text(error)) for error in answer.errors if error.message not in (meta.reason or "")]
    warnings = [f"note: {_message(warning)}" for warning in meta.warnings]
    return "\n".join([*head, *_body(answer), *failed, *warnings])


def state_line(meta: Meta) -> str:
    """Why an answer is not fresh; where a server is missing, also what to do instead, which takes several lines."""
    return f"{meta.state}: {sanitised_lines(meta.reason or '', MAX_MESSAGE)}"


def _body(answer: Answer[Any]) -> Iterator[str]:
    if is_empty(answer.data):
        yield from _nothing(answer)
        return
    data = cast("Data", answer.data)
    if isinstance(data, Hover):
        yield sanitised_lines("\n\n".join(data.contents), MAX_HOVER)
    elif isinstance(data, Changes):
        yield from _changes(data)
    elif isinstance(data, tuple):
        yield from _items(answer.operation, data)
    elif data is not None:
        yield from _diagnostics(data)


def _nothing(answer: Answer[Any]) -> Iterator[str]:
    if answer.meta.empty:
        yield NO_DIAGNOSTICS if answer.operation == Operation.DIAGNOSTICS else NOTHING
    elif answer.ok:
        yield NOTHING_YET


def _items(operation: str, items: tuple[Item, ...]) -> Iterator[str]:
    if operation == Operation.DOCUMENT_SYMBOL:
        yield from _outline(cast("tuple[Symbol, ...]", items))
        return
    paths = {place.path for place in map(_place, items) if place is not None}
    if len(items) > 1 and paths:
        yield f"{len(items)} results{f' in {len(paths)} files' if len(paths) > 1 else ''}:"
    for item in items:
        yield from _item(item)


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
            yield from () if item.changes is None else _changes(item.changes)
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
        if symbol.path != path:
            path = symbol.path
            yield _path(path)
        lines = f" ({symbol.first_line}-{symbol.last_line})" if (symbol.last_line or 0) > symbol.line else ""
        detail = f": {_name(symbol.detail)}" if symbol.detail else ""
        inside = f" in {_name(symbol.container)}" if symbol.container and not symbol.depth else ""
        place = f"{symbol.line}:{symbol.character}"
        yield f"{'  ' * (symbol.depth + 1)}{place} {symbol.kind} {_name(symbol.name)}{inside}{detail}{lines}"


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


def _changes(changes: Changes) -> Iterator[str]:
    edits = sum(file.edits for file in changes.files)
    what = f"{_counted(len(changes.files), 'file')}, {_counted(edits, 'edit')}"
    yield f"Applied: {what}." if changes.applied else f"Preview: {what}. Nothing was written."
    yield from (f"needs confirmation: {_message(label)}" for label in changes.confirm)
    for file in changes.files:
        yield from _file_change(file)
    if changes.feedback is not None:
        yield from _feedback(changes.feedback)


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


def _diagnostics(by_path: Mapping[str, Sequence[Diagnostic]]) -> Iterator[str]:
    for path, diagnostics in by_path.items():
        for one in diagnostics:
            code = f" ({_name(one.code)})" if one.code else ""
            place = f"{_path(path)}:{one.line}:{one.character}"
            yield f"{place}  {one.severity}: {_message(one.message)}{code}"


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
