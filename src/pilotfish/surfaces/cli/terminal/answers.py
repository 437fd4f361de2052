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


class Screen(Struct, frozen=True):
    """The terminal: its width, and where source lines come from."""

    columns: int
    line_of: Callable[[str, int], str | None]
    """The text of a line (from 1) of a file, if it is at hand."""


def answer_lines(answer: Answer[Any], screen: Screen) -> Iterator[str]:
    """An answer to a question."""
    has_places = answer.operation != Operation.DOCUMENT_SYMBOL and isinstance(answer.data, tuple)
    data = cast("tuple[object, ...]", answer.data if has_places else ())
    places = [place for item in data for place in _places(item)]
    if not places:
        yield from _coloured(answer)
        return
    if answer.meta.state is not State.FRESH:
        yield click.style(state_line(answer.meta), fg=STATE_COLOURS[answer.meta.state])
    path = None
    for title, location in places:
        if location.path != path:
            path = location.path
            external = click.style(" (external)", dim=True) if location.external else ""
            yield click.style(sanitised(path, MAX_PATH), bold=True) + external
        yield f"{INDENT}{click.style(place_text(location), fg='cyan')}{title}"
        if location.text and not location.text.startswith("…"):
            yield from _source(location, location.text, screen, "green")
    if (rest := rest_line(answer.meta, len(data))) is not None:
        yield click.style(rest, fg="yellow")
    for error in answer.errors:
        if error.message not in (answer.meta.reason or ""):
            yield click.style(f"{error.server_id}: {sanitised_lines(error.message, MAX_MESSAGE)}", fg="red")
    yield from (click.style(f"note: {sanitised(note, MAX_MESSAGE)}", fg="yellow") for note in answer.meta.warnings)


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


def _source(place: Location | Diagnostic, line: str, screen: Screen, colour: str) -> Iterator[str]:
    end = place.end_character if place.end_line == place.line else len(line) + 1
    mark = pointed(line, place.character - 1, end - 1, screen.columns - 2 * len(INDENT))
    yield f"{INDENT * 2}{mark.source}"
    yield f"{INDENT * 2}{click.style(mark.carets, fg=colour)}"


def diagnostic_lines(found: Diagnostic, line: str | None, screen: Screen) -> Iterator[str]:
    colour = SEVERITY_COLOURS[found.severity]
    first, *others = sanitised_lines(found.message, MAX_MESSAGE).splitlines() or [""]
    new = click.style(" new", fg="magenta") if found.introduced else ""
    where = click.style(place_text(found), fg="cyan")
    by = click.style(rule_text(found), dim=True)
    yield f"{INDENT}{where} {click.style(found.severity, fg=colour)}{new}  {first}  {by}"
    yield from (f"{INDENT * 3}{other.strip()}" for other in others)
    if line is not None:
        yield from _source(found, line, screen, colour)


def _coloured(answer: Answer[Any]) -> Iterator[str]:
    """The text for models, its state and diffs in colour; feedback in the characters that a person reads."""
    if isinstance(answer.data, Changes) and (feedback := answer.data.feedback):
        feedback = replace(feedback, text=html.unescape(feedback.text))
        answer = replace(answer, data=replace(answer.data, feedback=feedback))
    lines = text_of(answer).splitlines()
    head = len(state_line(answer.meta).splitlines()) if answer.meta.state is not State.FRESH else 0
    yield from (click.style(line, fg=STATE_COLOURS[answer.meta.state]) for line in lines[:head])
    yield from lines[head:] if is_empty(answer.data) else map(_diff_line, lines[head:])


def _diff_line(line: str) -> str:
    if colour := next((colour for start, colour in DIFF_COLOURS if line.startswith(start)), None):
        return click.style(line, fg=colour)
    return re.sub(r"^(Applied|Preview):", lambda found: click.style(found[0], bold=True), line)


def name_text(name: str) -> str:
    return sanitised(name, MAX_NAME)


def rule_text(found: Diagnostic) -> str:
    return f"{name_text(found.server)} ({name_text(found.code)})" if found.code else name_text(found.server)
