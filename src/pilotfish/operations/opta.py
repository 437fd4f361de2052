"""The text that the six Opta tools answer with: one `path:line:col` per line, the column counted from 0."""

from typing import Any, cast

from pilotfish.api.answers import Answer, Location, State, Symbol
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME, MAX_PATH
from pilotfish.operations.render import state_line, text_of
from pilotfish.sanitise import sanitised


def opta_text(answer: Answer[Any]) -> str:
    """The answer as the Opta tools give it: places as they count them, everything else as `text_of` has it."""
    items = cast("tuple[object, ...]", answer.data) if isinstance(answer.data, tuple) else ()
    lines = [_line(item) for item in items if isinstance(item, Location)]
    if not lines or len(lines) < len(items):
        return text_of(answer)
    head = [] if answer.meta.state is State.FRESH else [state_line(answer.meta)]
    warnings = [f"note: {sanitised(warning, MAX_MESSAGE)}" for warning in answer.meta.warnings]
    return "\n".join([*head, *dict.fromkeys(lines), *warnings])


def _line(item: Location) -> str:
    place = f"{sanitised(item.path, MAX_PATH)}:{item.line}:{item.character - 1}"
    return f"{place} {item.kind} {sanitised(item.name, MAX_NAME)}" if isinstance(item, Symbol) else place
