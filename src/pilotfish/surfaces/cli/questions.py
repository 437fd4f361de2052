"""The verbs of all operations, made from `operations.rows`: a new row is a new verb."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from msgspec.structs import replace

from pilotfish.api.answers import Answer, refused
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.operations.rows import FIELDS, ROWS, OperationRow
from pilotfish.surfaces.cli import completion
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, exit_code_of_question
from pilotfish.surfaces.cli.terminal.printing import find_screen, print_all, printed_answer
from pilotfish.surfaces.cli.workspace import (
    OpenWorkspace,
    daemon_option,
    host_option,
    json_option,
    root_option,
    with_workspace,
)

PLACE_HELP = "PLACE is FILE:LINE[:COL], FILE SYMBOL, FILE:LINE SYMBOL, or SYMBOL alone."

PLACE_HINT = "A place is FILE:LINE:COL, FILE SYMBOL, or SYMBOL alone, such as src/a.py:10:5 or Class.method."

NUMBERED = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<character>\d+))?:?", re.DOTALL)
"""`FILE:LINE[:COL]`; compilers add a colon."""

COLON = re.compile(r"(?<!:):(?!:)")
"""A single one: `::` is part of a symbol."""

ARGUMENTS = {"filePath": "FILE", "query": "QUERY", "newName": "NEW_NAME", "newPath": "NEW_FILE", "edit": "EDIT"}
"""Required fields as arguments."""

OPTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "includeDeclaration": (
        "--declaration/--no-declaration",
        {"default": True, "help": "Include the declaration itself.", "show_default": True},
    ),
    "apply": ("--apply", {"is_flag": True, "help": "Write the changes: all of them or none."}),
    "kind": ("--kind", {"metavar": "KIND", "help": "Only actions of this kind: quickfix, refactor, source."}),
    "action": ("--action", {"metavar": "ID", "help": "Show what this action would change, by id or title."}),
    "filePath": ("--file", {"metavar": "FILE", "help": "Ask only the servers of this file."}),
    "text": ("--text", {"metavar": "TEXT", "help": "The new text; - reads it from standard input."}),
    "digest": ("--digest", {"metavar": "DIGEST", "help": "Refuse unless the text is still the one with this digest."}),
    "limit": ("--limit", {"metavar": "N", "type": click.IntRange(1), "help": "Show at most N results."}),
    "offset": ("--offset", {"metavar": "N", "type": click.IntRange(0), "help": "Leave out the first N results."}),
    "depth": ("--depth", {"metavar": "N", "type": click.IntRange(1), "help": "Show N levels only."}),
    "kinds": ("--kinds", {"metavar": "KINDS", "help": "Only these kinds, such as class,method; all: locals too."}),
}
"""Optional fields as options; a place has its own argument."""


def verb(row: OperationRow) -> click.Command:
    """The command of an operation."""
    form, needs_line = row.forms[0], "line" in row.forms[0].required
    needed = () if row.takes_place or needs_line else form.required
    place = _place_argument(required=bool(form.required))
    line = click.Argument(["line_place"], metavar="FILE:LINE[:COL]", shell_complete=completion.files)
    params: list[click.Parameter] = [place] if row.takes_place else [line] if needs_line else []
    params += [_argument(name) for name in (*needed, *row.required)]
    optional = [name for name in (*form.optional, *row.optional) if name in OPTIONS]
    params += [click.Option([OPTIONS[name][0], _snake(name)], **OPTIONS[name][1]) for name in optional]
    text = row.description + (f"\n\n{PLACE_HELP}" if row.takes_place else "")
    text += f" EDIT is {FIELDS['edit'].description}." if "edit" in row.required else ""
    name = row.verb.rpartition(" ")[2]

    def ask(*, root: str | None, as_json: bool, **fields: object) -> None:
        click.get_current_context().exit(_ask_and_print(row.operation, root, as_json=as_json, **fields))

    command = click.Command(name, params=params, callback=ask, help=text)
    return root_option(host_option(daemon_option(json_option(command))))


def _place_argument(*, required: bool = True) -> click.Parameter:
    shown = "PLACE" if required else "[PLACE]"
    return click.Argument(["place"], nargs=-1, required=required, metavar=shown, shell_complete=completion.files)


def _argument(field: str) -> click.Parameter:
    offered = completion.files if ARGUMENTS[field].endswith("FILE") else None
    return click.Argument([_snake(field)], metavar=ARGUMENTS[field], shell_complete=offered)


def _ask_and_print(operation: Operation, root: str | None, *, as_json: bool, **fields: object) -> int:
    def ask(workspace: OpenWorkspace) -> tuple[Answer[Any], str]:
        from pilotfish.surfaces.cli.terminal.progress import spinner

        started = time.monotonic()
        with spinner(workspace):
            if isinstance(file := given.get("filePath"), str):
                # A server that starts answers from what it has read so far, which is not the whole workspace.
                workspace.warm(file)
            answer = workspace.ask(operation, given)
        return answer_after(answer, time.monotonic() - started), workspace.root

    try:
        given = question_fields(operation, fields)
        if given.get("text") == "-":
            given["text"] = sys.stdin.read()
        answer, folder = with_workspace(root, ask)
    except Failure as failure:
        answer, folder = refused(operation, failure), ""
    print_all(printed_answer(answer, folder, os.getcwd() if folder else "", find_screen(), as_json=as_json))
    return exit_code_of_question(answer)


def question_fields(
    operation: Operation, values: Mapping[str, Any], is_file: Callable[[str], bool] = os.path.isfile
) -> dict[str, Any]:
    """The fields of a question, from the values of its verb's arguments and options. Raises `Refused`."""
    places, line_place = values.get("place"), values.get("line_place")
    plain = ((name, value) for name, value in values.items() if name not in {"place", "line_place"})
    given = {re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name): value for name, value in plain}
    given |= {} if not places else _places_of(operation, places, is_file)
    return given | ({} if line_place is None else numbered(line_place, is_file))


def answer_after(answer: Answer[Any], seconds: float) -> Answer[Any]:
    """The answer, with the time that the servers of the file took to start as part of it."""
    return replace(answer, meta=replace(answer.meta, duration_ms=round(seconds * 1000)))


def _places_of(operation: Operation, words: Sequence[str], is_file: Callable[[str], bool]) -> dict[str, object]:
    """The place; the text of several symbols can be asked for at once."""
    if operation is Operation.SOURCE and len(words) > 1 and not is_file(NUMBERED.sub(r"\g<file>", words[0])):
        return {"symbol": ", ".join(words)}
    if operation is Operation.SOURCE and len(words) > 2:
        return {**numbered(words[0], is_file), "symbol": ", ".join(words[1:])}
    return place_of(words, is_file)


def place_of(words: Sequence[str], is_file: Callable[[str], bool] = os.path.isfile) -> dict[str, object]:
    """The fields of a question that give the place; raises `Refused` for anything else."""
    if len(words) == 2:
        return {**numbered(words[0], is_file), "symbol": words[1]}
    if len(words) != 1:
        raise Refused(Code.INVALID_INPUT, f"A place is one or two words, not {len(words)}.", hint=PLACE_HINT)
    word = words[0]
    if is_file(word):
        raise Refused(Code.INVALID_INPUT, f"{word} is a file: name a place in it.", hint=PLACE_HINT)
    fields = numbered(word, is_file)
    if "line" not in fields and "/" in word and _is_source(word):
        raise Refused(Code.FILE_MISSING, f"{word} does not exist.", hint=PLACE_HINT)
    return fields if "line" in fields else {"symbol": word}


def _is_source(word: str) -> bool:
    """Whether a word with a slash ends like a source file: `namespace/name` is a symbol of Clojure."""
    from pilotfish.servers.catalogue import load

    return any(os.path.splitext(word)[1] in spec.files.extensions for spec in load().values())


def numbered(word: str, is_file: Callable[[str], bool] = os.path.isfile) -> dict[str, object]:
    """`FILE`, `FILE:LINE` or `FILE:LINE:COL` as fields. A file may itself have such a name."""
    if is_file(word):
        return {"filePath": word}
    found = NUMBERED.fullmatch(word)
    if found is None:
        _refuse_words_for_numbers(word, is_file)
        return {"filePath": word}
    numbers = {name: int(found[name]) for name in ("line", "character") if found[name]}
    if not all(numbers.values()):
        raise Refused(Code.INVALID_INPUT, f"{word}: lines and columns count from 1.", hint=PLACE_HINT)
    return {"filePath": found["file"], **numbers}


def _refuse_words_for_numbers(word: str, is_file: Callable[[str], bool]) -> None:
    """`src/a.py:abc` is no symbol of that name: say which part is not a number."""
    file, *numbers = COLON.split(word)
    if numbers and (is_file(file) or "/" in file):
        wrong, what = next(
            (part, ("line", "column")[min(at, 1)]) for at, part in enumerate(numbers) if not part.isdigit()
        )
        raise Refused(Code.INVALID_INPUT, f"{word}: {wrong!r} is not a {what} number.", hint=PLACE_HINT)


def _snake(field: str) -> str:
    """A field's name as click has it, which takes no capitals."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", field)


class _Directions(click.Group):
    """A group of verbs of two words; without the second word, both directions are asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands:
            args = ["--help"] if {"-h", "--help"} & set(args) else ["both", *args]
        return super().parse_args(ctx, args)


def _both(name: str, rows: Sequence[OperationRow]) -> click.Command:
    def ask_both(*, root: str | None, as_json: bool, place: tuple[str, ...]) -> None:
        codes: list[int] = []
        for row in rows:
            if not as_json:
                click.echo(f"{row.description.rstrip('.')}:")
            codes.append(_ask_and_print(row.operation, root, as_json=as_json, place=place))
            if codes[-1] == ExitCode.USAGE:
                break  # the other direction would be refused for the same reason
        click.get_current_context().exit(max(codes))

    command = click.Command("both", params=[_place_argument()], callback=ask_both, help=name, hidden=True)
    return root_option(host_option(daemon_option(json_option(command))))


GROUPS = {"calls": "Who calls a function, and what it calls.", "types": "Supertypes and subtypes of a type."}
"""Verbs of two words. When the second word is left out, all that take an item of the hierarchy are asked."""


def commands(rows: Iterable[OperationRow]) -> dict[str, click.Command]:
    """The verbs of operations, by their first word. Diagnostics have a verb of their own, `check`."""
    made: dict[str, click.Command] = {}
    asked = [row for row in rows if row.operation is not Operation.DIAGNOSTICS]
    for row in asked:
        first, _, second = row.verb.partition(" ")
        if not second:
            made[first] = verb(row)
            continue
        group = made.get(first) or _group(first, [other for other in asked if other.verb.startswith(f"{first} ")])
        assert isinstance(group, click.Group)
        group.add_command(verb(row))
        made[first] = group
    return made


def _group(name: str, rows: Sequence[OperationRow]) -> click.Group:
    text = f"{GROUPS[name]}\n\nWithout a command, both directions: pilotfish {name} PLACE. {PLACE_HELP}"
    group = _Directions(name, help=text, no_args_is_help=True)
    group.add_command(_both(GROUPS[name], [row for row in rows if row.request is not None and row.request.prepare]))
    return group


COMMANDS = commands(ROWS.values())
