"""The verbs of all operations, made from their rows: a row more is a verb more."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from pilotfish.api.answers import Answer
from pilotfish.api.questions import Operation
from pilotfish.errors import Failure
from pilotfish.operations.rows import ROWS, Row
from pilotfish.surfaces.cli import completing
from pilotfish.surfaces.cli.terminal.exit_codes import ending, refused
from pilotfish.surfaces.cli.terminal.places import numbered, place_of
from pilotfish.surfaces.cli.terminal.printing import print_answer
from pilotfish.surfaces.cli.workspace import OpenWorkspace, daemon_option, json_option, root_option, with_workspace

GROUPS = {
    "calls": "Who calls a function, and what it calls.",
    "types": "What a type is derived from, and what from it.",
}
"""Verbs of two words."""

PLACE = "PLACE is FILE:LINE:COL, or FILE SYMBOL, or FILE:LINE SYMBOL, or SYMBOL alone."


def _place() -> click.Parameter:
    return click.Argument(["place"], nargs=-1, required=True, metavar="PLACE", shell_complete=completing.files)


def _line() -> click.Parameter:
    return click.Argument(["line_place"], metavar="FILE:LINE[:COL]", shell_complete=completing.files)


ARGUMENTS = {"filePath": "FILE", "query": "QUERY", "newName": "NEW_NAME", "newPath": "NEW_FILE"}
"""How a field that is needed stands on the command line."""

OPTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "includeDeclaration": ("--declaration/--no-declaration", {"default": True, "help": "Whether it counts as a use."}),
    "apply": ("--apply", {"is_flag": True, "help": "Write the changes: all of them or none."}),
    "kind": ("--kind", {"metavar": "KIND", "help": "Only such actions: quickfix, refactor, source."}),
    "action": ("--action", {"metavar": "N", "help": "Show what this action would do, by number or title."}),
    "filePath": ("--file", {"metavar": "FILE", "help": "Ask the servers of this file only."}),
}
"""How a field that may be left out does; a place has its own ways."""


def _argument(field: str) -> click.Parameter:
    offered = completing.files if ARGUMENTS[field].endswith("FILE") else None
    return click.Argument([_snake(field)], metavar=ARGUMENTS[field], shell_complete=offered)


def verb(row: Row) -> click.Command:
    """The command of an operation."""
    form, needs_line = row.forms[0], "line" in row.forms[0].required
    needed = () if row.takes_place or needs_line else form.required
    params: list[click.Parameter] = [_place()] if row.takes_place else [_line()] if needs_line else []
    params += [_argument(name) for name in (*needed, *row.required)]
    optional = [name for name in (*form.optional, *row.optional) if name in OPTIONS]
    params += [click.Option([OPTIONS[name][0], _snake(name)], **OPTIONS[name][1]) for name in optional]
    text = row.description + (f"\n\n{PLACE}" if row.takes_place else "")
    name = row.verb.rpartition(" ")[2]
    command = click.Command(name, params=params, callback=functools.partial(_ask, row.operation), help=text)
    return root_option(daemon_option(json_option(command)))


def _ask(
    operation: Operation,
    *,
    root: str | None,
    as_json: bool,
    place: tuple[str, ...] | None = None,
    line_place: str | None = None,
    **fields: object,
) -> None:
    """Ask, print, and end with the code that follows from the answer."""

    async def asking(workspace: OpenWorkspace) -> tuple[Answer[Any], str]:
        from pilotfish.surfaces.cli.waking import wake

        await wake(workspace, given.get("filePath"))
        return await workspace.ask(operation, given), workspace.root

    async def watched(workspace: OpenWorkspace) -> tuple[Answer[Any], str]:
        from pilotfish.surfaces.cli.terminal.spinner import waiting_shown

        async with waiting_shown(workspace):
            return await asking(workspace)

    try:
        given = {_camel(name): value for name, value in fields.items()}
        given |= {} if place is None else place_of(place)
        given |= {} if line_place is None else numbered(line_place)
        alone = not sys.stderr.isatty() and given.get("filePath") is not None
        found, folder = with_workspace(root, asking if alone else watched, alone=alone)
    except Failure as failure:
        found, folder = refused(operation, failure), ""
    print_answer(found, folder, as_json=as_json)
    click.get_current_context().exit(ending(found))


def _snake(field: str) -> str:
    """A field's name as click has it, which takes no capitals."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", field)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def _commands() -> dict[str, click.Command]:
    commands: dict[str, click.Command] = {
        name: click.Group(name, help=text, no_args_is_help=True) for name, text in GROUPS.items()
    }
    for row in ROWS.values():
        group, _, word = row.verb.rpartition(" ")
        if row.operation is Operation.DIAGNOSTICS:
            continue
        parent = commands.get(group)
        if isinstance(parent, click.Group):
            parent.add_command(verb(row))
        else:
            commands[word] = verb(row)
    return commands


COMMANDS = _commands()
