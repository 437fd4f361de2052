"""Errors of config files, all at once and worded so that a person can fix the file without looking anything up (CFG-8).

Values and keys come from files that are not trusted yet: each is shown as ASCII JSON, so that no escape sequence
or bidirectional override reaches a terminal, and cut at `SHOWN` characters.

`msgspec` says quickly whether a file has the shape of `config.schema`, and stops at the first fault. Only when there is
one is the file compared with the shape value by value.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import takewhile
from typing import Any, cast

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import replace

from pilotfish.config.jsonc import JsonPath, LineColumn
from pilotfish.config.schema import ConfigFile
from pilotfish.errors import Bug
from pilotfish.protocol.wire import Json

SHOWN = 200  # Enough to recognise a value in a message; the file has the rest

PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


class ProblemGrade(StrEnum):
    """How severe a problem is: `config check` fails on errors only."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Problem(Struct, frozen=True):
    grade: ProblemGrade
    file: str
    path: JsonPath
    message: str
    value: str | None = None  # The offending value as `shown`
    accepted: str | None = None
    nearest: str | None = None  # The known key that is closest to an unknown one
    place: LineColumn | None = None

    def __str__(self) -> str:
        where = printable(self.file) + (f":{self.place.line}:{self.place.column}" if self.place else "")
        subject = (
            [path_text(self.path) or "the file", "=", self.value] if self.value is not None else [path_text(self.path)]
        )
        parts = [": ".join(part for part in (where, " ".join(subject), self.message) if part)]
        if self.accepted:
            parts.append(f"accepted: {self.accepted}")
        if self.nearest:
            parts.append(f"did you mean {json.dumps(self.nearest)}?")
        return "; ".join(parts)


def shown(value: Json, limit: int = SHOWN) -> str:
    """`value` as one line of printable ASCII."""
    text = json.dumps(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def printable(text: str) -> str:
    """`text` itself, or ASCII JSON where a terminal would interpret it (control characters, bidirectional marks)."""
    return text if text.isprintable() else json.dumps(text)


def path_text(path: JsonPath) -> str:
    """`lsp.pyright.settings["a.b"][0]`: a path as people write it."""
    steps = [
        f".{step}" if isinstance(step, str) and PLAIN_KEY.match(step) else f"[{json.dumps(step)}]" for step in path
    ]
    return "".join(steps).removeprefix(".")


# --- Against the schema -----------------------------------------------------------------------------------------------


def validated(value: Json) -> ConfigFile:
    """A value that must be valid, because it is merged from defaults, the catalogue and valid files."""
    try:
        return msgspec.convert(value, ConfigFile)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Bug(f"the merged configuration is not valid: {error}") from error


def problems(value: Json, file: str) -> tuple[Problem, ...]:
    """Every error of `value`; empty when it is a valid config file."""
    try:
        msgspec.convert(value, ConfigFile)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        found = tuple(replace(one, file=file) for one in _faults(inspect.type_info(ConfigFile), value, ()))
        # If the comparison below misses what msgspec found, the whole file counts for nothing.
        return found or (Problem(ProblemGrade.ERROR, file, (), f"not accepted: {error}"),)
    return ()


def without(value: Json, found: tuple[Problem, ...]) -> Json:
    """A copy of `value` without the values that have problems; a list with a bad item is removed as a whole."""
    if any(not problem.path for problem in found):
        return {}
    doomed = {tuple(takewhile(lambda step: isinstance(step, str), problem.path)) for problem in found}
    return _pruned(value, (), doomed)


def _pruned(value: Json, path: JsonPath, doomed: set[JsonPath]) -> Json:
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if (*path, key) not in doomed}
    return {key: _pruned(item, (*path, key), doomed) for key, item in kept.items()}


def _fault(path: JsonPath, value: Json, accepted: str, message: str = "value not accepted") -> Problem:
    return Problem(ProblemGrade.ERROR, "", path, message, shown(value), accepted)


def _faults(node: inspect.Type, value: Json, path: JsonPath) -> Iterator[Problem]:
    """The errors of `value` and of all below it; `node` is the type that it must have."""
    node, extra = _bare(node)
    accepted: str = extra.get("accepted") or _accepted(node)
    kinds = [_bare(kind)[0] for kind in node.types] if isinstance(node, inspect.UnionType) else [node]
    # The type itself, or the member of a union, that the value has in JSON.
    branch = next((kind for kind in kinds if type(value) is WRITTEN.get(type(kind), type(value))), None)
    if branch is None:
        yield _fault(path, value, accepted, "wrong type")
        return
    found = list(_inner_faults(branch, value, path, accepted))
    yield from found
    broken = extra["rule"](value) if "rule" in extra and not found else None
    if broken is not None:
        yield _fault(path, value, broken)


def _inner_faults(node: inspect.Type, value: Any, path: JsonPath, accepted: str) -> Iterator[Problem]:
    match node:
        case inspect.StructType():
            known = {field.encode_name: field.type for field in node.fields}
            for key, item in value.items():
                if key in known:
                    yield from _faults(known[key], item, (*path, key))
                    continue
                near = difflib.get_close_matches(str(key), known, n=1)
                unknown = _fault((*path, key), item, "one of " + ", ".join(sorted(known)), "unknown key")
                yield replace(unknown, nearest=near[0] if near else None)
        case inspect.DictType():
            for key, item in value.items():
                bad_key = list(_faults(node.key_type, key, (*path, key)))
                yield from bad_key or _faults(node.value_type, item, (*path, key))
        case inspect.VarTupleType():
            for index, item in enumerate(value):
                yield from _faults(node.item_type, item, (*path, index))
            if len(value) < (node.min_length or 0):
                yield _fault(path, value, accepted)
        case _:
            if not _fits(node, value):
                yield _fault(path, value, accepted)


def _bare(node: inspect.Type) -> tuple[inspect.Type, Mapping[str, Any]]:
    """A type without its metadata, and the `extra` that it holds."""
    extra: dict[str, Any] = {}
    while isinstance(node, inspect.Metadata):
        extra = {**cast("dict[str, Any]", node.extra or {}), **extra}
        node = node.type
    return node, extra


WRITTEN: Mapping[type[inspect.Type], type] = {
    inspect.StructType: dict,
    inspect.DictType: dict,
    inspect.VarTupleType: list,
    inspect.IntType: int,
    inspect.BoolType: bool,
    inspect.NoneType: type(None),
    inspect.StrType: str,
}
"""What JSON has for each type; one of several words, and anything, may be written in any way."""


def _fits(node: inspect.Type, value: Any) -> bool:
    match node:
        case inspect.IntType(ge=int(least), le=int(most)):
            return least <= value <= most
        case inspect.StrType(pattern=str(pattern)):
            return re.search(pattern, value) is not None
        case inspect.LiteralType() | inspect.EnumType():
            return isinstance(value, str) and value in _words(node)
        case _:
            return True


def _accepted(node: inspect.Type) -> str:
    match node:
        case inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case inspect.BoolType():
            return "true or false"
        case inspect.NoneType():
            return "null"
        case inspect.VarTupleType(min_length=least):
            return "a list that is not empty" if least else "a list"
        case inspect.StructType() | inspect.DictType():
            return "an object"
        case inspect.LiteralType() | inspect.EnumType():
            return _listed([json.dumps(word) for word in _words(node)])
        case inspect.UnionType():
            return ", or ".join(_accepted(_bare(kind)[0]) for kind in node.types)
        case _:
            return "a string"


def _words(node: inspect.LiteralType | inspect.EnumType) -> tuple[str, ...]:
    return tuple(map(str, node.values if isinstance(node, inspect.LiteralType) else node.cls))


def _listed(words: list[str]) -> str:
    *front, last = words
    return f"{', '.join(front)} or {last}" if front else last
