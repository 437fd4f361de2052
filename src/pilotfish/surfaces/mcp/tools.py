"""The operations as MCP tools: what a call asks, and what it is answered with. Plain values, no SDK.

An error in a call is part of the result, so that a model can read it and correct the call; only an unknown tool name
is an error of the protocol.
"""

from collections.abc import Mapping
from typing import Any

from pilotfish.api.answers import Answer
from pilotfish.api.questions import Question
from pilotfish.errors import Code, Refused
from pilotfish.operations.cleaning import structured
from pilotfish.operations.render import text_of
from pilotfish.operations.tools import NAMED, ONE_TOOL
from pilotfish.operations.validate import question, question_of
from pilotfish.protocol.wire import JsonObject

INSTRUCTIONS = (
    "Language servers for this workspace: use them instead of grep and of reading whole files. "
    "Find by name, read one symbol, look for its uses before a change, rename and edit by name, "
    "and ask for the impact before you finish. A place is a symbol such as Class.method, or filePath with line "
    "(and character); both count from 1. An answer says how far it can be believed: fresh, partial, stale or "
    "unavailable."
)

HOOK = "hook_post_edit"
"""Not listed: hosts whose hooks can call tools call it after an edit; models never do."""

MAX_FIELDS = 64
MAX_NAME = 100
MAX_VALUE = 64 * 1024
"""Of the arguments of a call: far more than any question has. Only a file's proposed text may be longer."""

MAX_TEXT = 8 * 1024
"""Bytes of an answer: what a model reads in one go. Hosts refuse more than about 25,000 tokens, and cut silently."""


def operation_of(name: str, arguments: Mapping[str, object]) -> str | None:
    """The operation of a call, as the caller wrote it; None when there is no such tool."""
    if name == ONE_TOOL:
        return str(arguments.get("operation", ONE_TOOL))
    return NAMED[name].row.operation if name in NAMED else None


def asked(name: str, arguments: Mapping[str, object]) -> Question:
    """The question of a call; raises `Refused`, which names every error."""
    _refuse_too_much(arguments)
    return question_of(arguments) if name == ONE_TOOL else question(NAMED[name], arguments)


def result(given: Answer[Any], *, with_envelope: bool = False) -> JsonObject:
    """An answer as the result of a call: the compact text, and the envelope where a program reads it.

    Hosts show a model the envelope in place of the text where there is one, at eight times the size.
    """
    envelope = {"structuredContent": structured(given)} if with_envelope else {}
    return {**text_result(text_of(given, MAX_TEXT)), **envelope, "isError": not given.ok}


def text_result(text: str) -> JsonObject:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}


def _refuse_too_much(arguments: Mapping[str, object]) -> None:
    if len(arguments) > MAX_FIELDS or any(len(name) > MAX_NAME for name in arguments):
        raise Refused(Code.LIMIT_EXCEEDED, f"A call has at most {MAX_FIELDS} fields, each named in {MAX_NAME} letters.")
    for name, value in arguments.items():
        if isinstance(value, str) and len(value) > MAX_VALUE and name != "text":
            raise Refused(Code.LIMIT_EXCEEDED, f"{name} is longer than {MAX_VALUE} characters.")
