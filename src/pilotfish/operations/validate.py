"""From the JSON object that a model sends to a `Question`, strictly where a guess could be wrong.

Everything that is wrong is said at once, by field: what is missing, what does not belong, what has the wrong type. A
field that is null is absent, because some models fill in all that a schema names. A number without a fraction is a
whole number, whichever way it is written, and so is a string of digits. `file_path` is `filePath`.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
import msgspec.structs

from pilotfish.api.answers import SEVERITIES, ItemReference
from pilotfish.api.questions import Question
from pilotfish.errors import Code, Refused
from pilotfish.operations.rows import FIELDS, QuestionForm
from pilotfish.operations.tools import OPERATIONS, OperationTool
from pilotfish.protocol.codec import encode

MAX_SHOWN = 60
"""Characters of a wrong value in a message: enough to recognise it."""

ALSO = {
    "filePath": ("path", "file", "filename", "relativePath", "absolutePath", "targetFile", "uri"),
    "line": ("row", "lineNumber", "startLine"),
    "character": ("column", "col", "columnNumber"),
    "symbol": ("name", "identifier", "symbolName", "namePath", "function", "class"),
    "query": ("pattern", "search", "q"),
    "newName": ("to", "newSymbolName", "replacement"),
    "newPath": ("to", "target", "destination", "newFilePath"),
    "callHierarchyItem": ("item",),
    "typeHierarchyItem": ("item",),
    "text": ("content", "code", "body"),
}
"""What people and models call a field when it is not called that here: taken where nothing else can be meant."""


KEPT_EMPTY = frozenset({"query", "text"})
"""An empty query asks for everything and an empty text is a text; an empty path or name is a mistake."""

_DIGITS = re.compile(r"\s*[0-9]{1,9}\s*")

_ATTRIBUTES = {field.encode_name: field.name for field in msgspec.structs.fields(Question)}
"""What a field of the wire is called in Python."""


def question(tool: OperationTool, arguments: Mapping[str, object]) -> Question:
    """The question that a tool was called with; raises `Refused` that names everything wrong with it."""
    given = _without_blanks(tool, _with_own_names(tool, {k: v for k, v in arguments.items() if v is not None}))
    ours = tool.own_names
    fields = {ours[name] for name in given if name in ours}
    fits = len(fields) == len(given) and any(form.fits(fields) for form in tool.forms)
    problems = [] if fits else _misfits(tool, given)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in ours:
            try:
                values[_ATTRIBUTES[ours[name]]] = _value(tool, ours[name], value)
            except _Wrong as wrong:
                problems.append(f"{name} {wrong}")
    if problems:
        raise Refused(Code.INVALID_INPUT, f"{'; '.join(problems)}.", hint=usage(tool))
    return Question(operation=tool.row.operation, **values)


def question_of(arguments: Mapping[str, object]) -> Question:
    """The question of the one tool, whose arguments name the operation."""
    operation = arguments.get("operation")
    rest = {name: value for name, value in arguments.items() if name != "operation"}
    if isinstance(operation, str) and operation in OPERATIONS:
        return question(OPERATIONS[operation], rest)
    known = list(OPERATIONS)
    if operation is None:
        raise Refused(Code.INVALID_INPUT, "operation is missing.", hint=f"One of: {', '.join(known)}.")
    nearest = get_close_matches(str(operation), known, 1, 0.4)
    suggestion = f" Did you mean {nearest[0]}?" if nearest else ""
    message = f"There is no operation {_shown(operation)}.{suggestion}"
    raise Refused(Code.INVALID_INPUT, message, hint=f"One of: {', '.join(known)}.")


def _with_own_names(tool: OperationTool, given: Mapping[str, object]) -> Mapping[str, object]:
    """The same fields as the tool calls them, where the spelling alone differs."""
    ours = tool.own_names
    if given.keys() <= ours.keys():
        return given
    also = {_plain(word): said for said, own in ours.items() for word in ALSO.get(own, ())}
    spelling = also | {_plain(name): name for name in ours}
    meant = {name: name if name in ours else spelling.get(_plain(name), name) for name in given}
    # A field that is given twice is left for `_misfits` to name.
    return given if len(set(meant.values())) < len(meant) else {meant[name]: value for name, value in given.items()}


def _without_blanks(tool: OperationTool, given: Mapping[str, object]) -> Mapping[str, object]:
    """Without what a model filled in because the schema names it: an empty string, a line 0 beside a symbol."""
    needed = {tool.dialect.name_of(name) for name in tool.required}
    kept_empty = needed | KEPT_EMPTY
    known = tool.own_names.keys() - kept_empty
    kept = {name: value for name, value in given.items() if value != "" or name not in known}
    if kept.get(tool.dialect.name_of("symbol")):
        numbers = {tool.dialect.name_of("line"), tool.dialect.name_of("character")} - needed
        kept = {name: value for name, value in kept.items() if name not in numbers or str(value) != "0"}
    return kept


def usage(tool: OperationTool) -> str:
    """What the tool takes, in one line."""
    return f"It takes {'; or '.join(_form_usage(tool, form) for form in tool.forms)}."


def _form_usage(tool: OperationTool, form: QuestionForm) -> str:
    required = ", ".join(tool.dialect.name_of(name) for name in form.required) or "nothing"
    optional = ", ".join(tool.dialect.name_of(name) for name in form.optional)
    return f"{required} (optional: {optional})" if optional else required


def _misfits(tool: OperationTool, given: Mapping[str, object]) -> list[str]:
    """What is missing and what does not belong, by the form that was most likely meant."""
    ours = tool.own_names
    form = _nearest_form(tool, {ours.get(name, name) for name in given})
    wanted, needed = {*form.required, *form.optional}, map(tool.dialect.name_of, form.required)
    return [
        *(f"{name} is missing" for name in needed if name not in given),
        *(_unwanted(name, ours, form) for name in given if ours.get(name) not in wanted),
    ]


class _Wrong(Exception):
    """What a value must be."""


def _nearest_form(tool: OperationTool, given: set[str]) -> QuestionForm:
    """Where none fits: the one with the least too much, the most there and the least to add."""

    def distance(form: QuestionForm) -> tuple[bool, int, int, int]:
        missing = set(form.required) - given
        unwanted = given & set(tool.fields) - {*form.required, *form.optional}
        return bool(missing or unwanted), len(unwanted), -len(given & set(form.required)), len(form.required)

    return min(tool.forms, key=distance)


def _unwanted(name: str, ours: Mapping[str, str], form: QuestionForm) -> str:
    if name in ours:
        return f"{name} does not go with {', '.join(form.required)}"
    said = {_plain(spelling): theirs for theirs, own in ours.items() for spelling in (theirs, own, *ALSO.get(own, ()))}
    near = get_close_matches(_plain(name), list(said), 1, 0.7)
    return f"{_shown(name)} is not a field here" + (f" (did you mean {said[near[0]]}?)" if near else "")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _value(tool: OperationTool, name: str, value: object) -> object:
    """The value as a question has it; raises `_Wrong` with what it must be."""
    match FIELDS[name].type:
        case "string":
            return _string(name, value)
        case "integer":
            return _number(tool, name, value)
        case "boolean":
            if not isinstance(value, bool):
                raise _Wrong(f"must be true or false, not {_shown(value)}")
            return value
        case "object":
            return _item(value)


def _string(name: str, value: object) -> str:
    if name == "action" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise _Wrong(f"must be a string, not {_shown(value)}")
    if not value.strip() and name not in KEPT_EMPTY:
        raise _Wrong("must not be empty")
    if name == "severity" and (value := value.lower().removesuffix("s")) not in SEVERITIES:
        raise _Wrong(f"must be one of {', '.join(SEVERITIES)}")
    return value


def _number(tool: OperationTool, name: str, value: object) -> int:
    """A whole number, as a question has it: an offset from 0, all others from 1."""
    lowest = {"offset": 0, "character": tool.dialect.first_character}.get(name, 1)
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if tool.dialect.clamps_lines and name == "line" and isinstance(value, int) and not isinstance(value, bool):
        value = max(value, lowest)
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value // 1 or value < lowest:
        raise _Wrong(f"must be a whole number from {lowest}, not {_shown(value)}")
    return int(value) if name == "offset" else int(value) + 1 - lowest


def _item(value: object) -> ItemReference:
    try:
        return msgspec.convert(value, ItemReference)
    except msgspec.ValidationError as wrong:
        raise _Wrong(f"must be an item of an earlier answer, word for word: {wrong}") from None


def _shown(value: object) -> str:
    text = encode(value).decode()
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
