"""The operations as MCP tools: what is listed, what a call asks, and what it is answered with. Plain values, no SDK.

Nothing in a listing comes from a server or a repository. Whatever is wrong with a call is said in the envelope, so that
a model can read it and mend the call; only a name that is no tool's is an error of the protocol.
"""

from collections.abc import Mapping
from typing import Any, cast

from pilotfish.api.answers import Answer, Effort, answer_from, error_of
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Failure, Refused
from pilotfish.operations.cleaning import structured
from pilotfish.operations.render import text_of
from pilotfish.operations.schemas import Format, ToolSet, tool_schemas
from pilotfish.operations.tools import NAMED, ONE_TOOL
from pilotfish.operations.validate import question, question_of
from pilotfish.protocol.wire import JsonObject

INSTRUCTIONS = (
    "Language servers for this workspace: definitions, references, types, symbols, fresh diagnostics. "
    "Lines and characters count from 1. An answer says how far it can be believed: "
    "fresh, partial, stale or unavailable."
)

HOOK = "hook_post_edit"
"""Not listed: hosts whose hooks can call a tool call it after an edit, and models never do."""

MAX_FIELDS = 64
MAX_NAME = 100
MAX_VALUE = 64 * 1024
"""Of the arguments of a call: far more than any question has. Only a file's proposed text may be longer."""

READS = {"readOnlyHint": True}
WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
"""What a host may do without asking. The other hints mean something only for a tool that writes."""

KNOWN_FILES = "Fresh errors and warnings of a file; without filePath, of all files that have any."


def listing(tools: ToolSet) -> list[JsonObject]:
    """The tools of a set as `tools/list` has them."""
    return [_listed(dict(schema)) for schema in tool_schemas(Format.MCP, tools)]


def operation_of(name: str, arguments: Mapping[str, object]) -> str | None:
    """The operation that a call is for, in the caller's own word; None when there is no such tool."""
    if name == ONE_TOOL:
        return str(arguments.get("operation", ONE_TOOL))
    return NAMED[name].row.operation if name in NAMED else None


def asks_for_known_files(name: str, arguments: Mapping[str, object]) -> bool:
    """Whether a call wants the diagnostics of every file that has any: it names none."""
    given = {field for field, value in arguments.items() if value is not None}
    return operation_of(name, arguments) == Operation.DIAGNOSTICS and not given - {"operation"}


def asked(name: str, arguments: Mapping[str, object]) -> Question:
    """The question of a call; raises `Refused` that names everything wrong with it."""
    _refuse_too_much(arguments)
    return question_of(arguments) if name == ONE_TOOL else question(NAMED[name], arguments)


def refusal(operation: str, failure: Failure) -> Answer[Any]:
    """What a call that cannot be answered is answered with."""
    return answer_from(operation[:MAX_NAME], None, Effort(errors=(error_of(failure),)))


def result(given: Answer[Any]) -> JsonObject:
    """An answer as the result of a call: the compact text for models, the envelope for programs."""
    return {**said(text_of(given)), "structuredContent": structured(given), "isError": not given.ok}


def said(text: str) -> JsonObject:
    """Plain text as the result of a call."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}


def _listed(schema: JsonObject) -> JsonObject:
    name = str(schema["name"])
    writes = name == ONE_TOOL or NAMED[name].row.writes
    if operation_of(name, {}) == Operation.DIAGNOSTICS:
        taken = cast("JsonObject", schema["inputSchema"])
        schema["description"] = KNOWN_FILES
        schema["inputSchema"] = {key: value for key, value in taken.items() if key != "required"}
    return {**schema, "annotations": WRITES if writes else READS}


def _refuse_too_much(arguments: Mapping[str, object]) -> None:
    if len(arguments) > MAX_FIELDS or any(len(name) > MAX_NAME for name in arguments):
        raise Refused(Code.LIMIT_EXCEEDED, f"A call has at most {MAX_FIELDS} fields, each named in {MAX_NAME} letters.")
    for name, value in arguments.items():
        if isinstance(value, str) and len(value) > MAX_VALUE and name != "text":
            raise Refused(Code.LIMIT_EXCEEDED, f"{name} is longer than {MAX_VALUE} characters.")
