"""What is wrong with a config file, in our words, with the JSON path as the person wrote it. Pydantic finds it."""

import difflib
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pilotfish.config.jsonc import JsonPath
from pilotfish.config.problems import Problem, ProblemGrade, shown
from pilotfish.config.schema import OBJECTS, ConfigFile, adapter
from pilotfish.errors import Bug
from pilotfish.protocol.wire import Json


def validated(value: Json) -> ConfigFile:
    """A value that must be valid; raises `Bug` when it is not."""
    try:
        return adapter().validate_python(value)
    except ValidationError as error:
        raise Bug(f"the merged configuration is not valid: {error}") from error


def faults(value: Json, file: str) -> tuple[Problem, ...]:
    """Everything that is wrong with `value`, all at once; empty when it is a config file."""
    try:
        adapter().validate_python(value)
    except ValidationError as error:
        return tuple(_problem(details, file) for details in error.errors(include_url=False))
    return ()


def known_keys(path: JsonPath) -> tuple[str, ...]:
    """The keys of the closed object at `path`; none where anything goes."""
    steps = tuple("*" if index == 1 and path[0] == "lsp" else str(step) for index, step in enumerate(path))
    owner = OBJECTS.get(steps)
    return () if owner is None else tuple("$schema" if key == "schema" else key for key in owner.__annotations__)


ACCEPTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "an object",
    "greater_than_equal": "a whole number of at least {ge}",
    "less_than_equal": "a whole number of at most {le}",
    "literal_error": "{expected}",
    "too_short": "a list of at least {min_length}",
    "rule": "{accepted}",
}
"""What would have been right, by the kind of pydantic's error."""


def _problem(details: ErrorDetails, file: str) -> Problem:
    path = _json_path(details["loc"])
    value: Json = details["input"]
    if details["type"] == "extra_forbidden":
        keys = known_keys(path[:-1])
        near = difflib.get_close_matches(str(path[-1]), keys, n=1)
        accepted = "one of " + ", ".join(sorted(keys))
        return Problem(ProblemGrade.ERROR, file, path, "unknown key", shown(value), accepted, near[0] if near else None)
    accepted = ACCEPTED.get(details["type"], details["msg"]).format(**details.get("ctx", {}))
    if path == ("lsp",):
        accepted = "an object of servers by id, or false"
    message = "wrong type" if details["type"].endswith("_type") else "value not accepted"
    return Problem(ProblemGrade.ERROR, file, path, message, shown(value), accepted)


def _json_path(location: tuple[str | int, ...]) -> JsonPath:
    """Pydantic's location without the name of the union's branch and without its mark for a bad key."""
    path = (location[0], *location[2:]) if len(location) > 1 and location[0] == "lsp" else location
    return path[:-1] if path and path[-1] == "[key]" else path
