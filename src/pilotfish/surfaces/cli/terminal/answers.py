"""Answers on a terminal: grouped by file, the source line with carets below, colours.

Pure: source lines are handed in. Answers without places look as models read them, with colours.
Everything from a server or a file goes through the sanitiser on its way.
"""

import html
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import click
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Changes, Diagnostic, Edge, HierarchyItem, Location, State, Symbol, is_empty
from pilotfish.api.questions import Operation
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME, MAX_PATH
from pilotfish.operations.render import place_text, rest_line, state_line, text_of
from pilotfish.operations.symbols import kind_word
from pilotfish.sanitise import sanitised, sanitised_lines
from pilotfish.surfaces.cli.terminal.table import pointed

INDENT = "  "
SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "information": "blue", "hint": "bright_black"}
STATE_COLOURS = {State.PARTIAL: "yellow", State.STALE: "yellow", State.UNAVAILABLE: "red"}
DIFF_COLOURS = (("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"))

LineOf = Callable[[str, int], str | None]
"""The text of a line (from 1) of a file, if it is at hand."""


class Screen(Struct, frozen=True):
    """The terminal: its width, and where source lines come from."""

    columns: int
    line_of: LineOf


def answer_lines(answer: Answer[Any], screen: Screen) -> Iterator[str]:
    """An answer to a question."""
    places = _placed(answer)
    if not places:
        yield from _coloured(text_of(_unescaped(answer)), answer)
        return
    yield from _state(answer)
    path = None
    for title, location in places:
        if location.path != path:
            path = location.path
            yield from _heading(location)
        yield f"{INDENT}{click.style(place_text(location), fg='cyan')}{title}"
        if location.text and not location.text.startswith("…"):
            yield from _source(location, location.text, screen, "green")
    if (rest := rest_line(answer.meta, len(cast("tuple[object, ...]", answer.data)))) is not None:
        yield click.style(rest, fg="yellow")
    yield from _notes(answer)


def _unescaped(answer: Answer[Any]) -> Answer[Any]:
    """With what a model would read after changes, in the characters that a person reads."""
    if not isinstance(answer.data, Changes) or answer.data.feedback is None:
        return answer
    feedback = replace(answer.data.feedback, text=html.unescape(answer.data.feedback.text))
    return replace(answer, data=replace(answer.data, feedback=feedback))


def _placed(answer: Answer[Any]) -> list[tuple[str, Location]]:
    """The places of an answer, each with what is said about it; none where it is better shown in another way."""
    if answer.operation == Operation.DOCUMENT_SYMBOL or not isinstance(answer.data, tuple):
        return []
    return [place for item in cast("tuple[object, ...]", answer.data) for place in _places(item)]


def _places(item: object) -> Iterator[tuple[str, Location]]:
    match item:
        case Symbol():
            inside = f" in {name_text(item.container)}" if item.container else ""
            yield f"  {item.kind} {name_text(item.name)}{inside}", item
        case Location():
            yield f"  in {name_text(item.within)}" if item.within else "", item
        case HierarchyItem():
            yield f"  {kind_word(item.kind)} {name_text(item.name)}", item.location
        case Edge():
            for end in (item.caller, item.callee):
                yield from _places(end)
            yield from ((f"  {click.style('call', dim=True)}", call) for call in item.calls)
        case _:
            return


def _heading(location: Location) -> Iterator[str]:
    external = click.style(" (external)", dim=True) if location.external else ""
    yield click.style(sanitised(location.path, MAX_PATH), bold=True) + external


def _source(place: Location | Diagnostic, line: str, screen: Screen, colour: str) -> Iterator[str]:
    end = place.end_character if place.end_line == place.line else len(line) + 1
    mark = pointed(line, place.character - 1, end - 1, screen.columns - 2 * len(INDENT))
    yield f"{INDENT * 2}{mark.source}"
    yield f"{INDENT * 2}{click.style(mark.carets, fg=colour)}"


def diagnostic_lines(found: Diagnostic, line: str | None, screen: Screen) -> Iterator[str]:
    colour = SEVERITY_COLOURS[found.severity]
    first, *others = sanitised_lines(found.message, MAX_MESSAGE).splitlines() or [""]
    by = " ".join(filter(None, (name_text(found.server), found.code and f"({name_text(found.code)})")))
    new = click.style(" new", fg="magenta") if found.introduced else ""
    where = click.style(place_text(found), fg="cyan")
    yield f"{INDENT}{where} {click.style(found.severity, fg=colour)}{new}  {first}  {click.style(by, dim=True)}"
    yield from (f"{INDENT * 3}{other.strip()}" for other in others)
    if line is not None:
        yield from _source(found, line, screen, colour)


def _state(answer: Answer[Any]) -> Iterator[str]:
    if answer.meta.state is not State.FRESH:
        yield click.style(state_line(answer.meta), fg=STATE_COLOURS[answer.meta.state])


def _notes(answer: Answer[Any]) -> Iterator[str]:
    reason = answer.meta.reason or ""
    for error in answer.errors:
        if error.message not in reason:
            yield click.style(f"{error.server_id}: {sanitised_lines(error.message, MAX_MESSAGE)}", fg="red")
    yield from (click.style(f"note: {sanitised(note, MAX_MESSAGE)}", fg="yellow") for note in answer.meta.warnings)


def _coloured(text: str, answer: Answer[Any]) -> Iterator[str]:
    """The text for models, its state and diffs in colour."""
    lines = text.splitlines()
    head = len(state_line(answer.meta).splitlines()) if answer.meta.state is not State.FRESH else 0
    yield from (click.style(line, fg=STATE_COLOURS[answer.meta.state]) for line in lines[:head])
    yield from lines[head:] if is_empty(answer.data) else map(_diff_line, lines[head:])


def _diff_line(line: str) -> str:
    colour = next((colour for start, colour in DIFF_COLOURS if line.startswith(start)), None)
    return click.style(line, fg=colour) if colour else re.sub(r"^(Applied|Preview):", _bold, line)


def _bold(found: re.Match[str]) -> str:
    return click.style(found[0], bold=True)


def name_text(name: str) -> str:
    return sanitised(name, MAX_NAME)
