"""What is wrong with a config file, all at once, and what is left of it without that."""

from typing import TYPE_CHECKING, cast

from pilotfish.config.jsonc import JsonPath
from pilotfish.config.problems import Problem
from pilotfish.config.quick import is_certainly_valid
from pilotfish.protocol.wire import Json

if TYPE_CHECKING:
    from pilotfish.config.schema import ConfigFile


def typed(value: Json) -> "ConfigFile":
    """A value that must be valid, as the type that says so: our own defaults and the catalogue are in there."""
    if is_certainly_valid(value):
        return cast("ConfigFile", value)
    from pilotfish.config.faults import validated  # It imports pydantic, which hardly any file needs.

    return validated(value)


def problems(value: Json, file: str) -> tuple[Problem, ...]:
    """Everything that is wrong with `value`; empty when it is a config file."""
    if is_certainly_valid(value):
        return ()
    from pilotfish.config.faults import faults  # As above.

    return faults(value, file)


def without(value: Json, found: tuple[Problem, ...]) -> Json:
    """A copy of `value` that lacks what the problems point at; a list with a bad item goes as a whole."""
    if any(not problem.path for problem in found):
        return {}
    doomed = {_up_to_list(problem.path) for problem in found}
    return _pruned(value, (), doomed)


def _up_to_list(path: JsonPath) -> JsonPath:
    return path[: next((index for index, step in enumerate(path) if isinstance(step, int)), len(path))]


def _pruned(value: Json, path: JsonPath, doomed: set[JsonPath]) -> Json:
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if (*path, key) not in doomed}
    return {key: _pruned(item, (*path, key), doomed) for key, item in kept.items()}
