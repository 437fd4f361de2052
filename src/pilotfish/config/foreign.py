"""Other hosts' config files, read as if they were ours (CFG-9). Pure.

They are not our files: a key that we do not know, or a value that we do not accept, is a note and never an error.
The names are data. Real files of one host come in several shapes (Pi's extensions alone have three), so every name is
understood in every host's file; a host's row of `CONFIG_DIALECTS` only says where its servers are.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from pilotfish.config.jsonc import JsonPath
from pilotfish.config.places import ConfigDialect
from pilotfish.config.problems import Problem, ProblemGrade, shown
from pilotfish.config.validation import problems, without
from pilotfish.protocol.wire import Json

GENERAL: Mapping[str, tuple[str, ...]] = {
    "timing": ("timing",),
    "security": ("security",),
    "navigationTools": ("navigationTools",),
    "diagnosticTimeout": ("timing", "diagnosticsWaitTimeoutMs"),
    "diagnosticsTimeoutMs": ("timing", "diagnosticsWaitTimeoutMs"),
    "firstTouchTimeout": ("timing", "firstTouchTimeoutMs"),
    "firstTouchTimeoutMs": ("timing", "firstTouchTimeoutMs"),
    "requestTimeout": ("timing", "requestTimeoutMs"),
    "requestTimeoutMs": ("timing", "requestTimeoutMs"),
    "timeout": ("timing", "requestTimeoutMs"),
    "includeSeverities": ("feedback", "includeSeverities"),
    "maxDiagnosticsPerFile": ("feedback", "maxPerFile"),
    "maxProjectDiagnosticsFiles": ("feedback", "maxOtherFiles"),
}

PER_SERVER: Mapping[str, tuple[str, ...]] = {
    **{key: (key,) for key in ("disabled", "command", "extensions", "env", "initialization", "settings", "roots")},
    **{key: (key,) for key in ("languageId", "watch", "restart", "timeouts")},
    "bin": ("command",),
    "environment": ("env",),
    "extensionToLanguage": ("languageId",),
    "fileExtensions": ("extensions",),
    "initializationOptions": ("initialization",),
    "languageIdByExtension": ("languageId",),
    "rootMarkers": ("roots",),
    "rootPatterns": ("roots",),
    "workspaceRootMarkers": ("roots",),
    "diagnosticsWaitMs": ("timeouts", "diagnosticsWaitTimeoutMs"),
    "requestTimeout": ("timeouts", "requestTimeoutMs"),
    "startupTimeout": ("timeouts", "initializeTimeoutMs"),
    "startupTimeoutMs": ("timeouts", "initializeTimeoutMs"),
}

COMPOSED = frozenset({"args", "enabled", "id", "include"})
"""Keys of a server that have a meaning only together with others; `_composed` reads them."""

SILENT = frozenset({"$schema", "version", "name"})
"""Keys that say nothing about servers."""

UNDERSTOOD = COMPOSED.union(SILENT, PER_SERVER)


class Translation(Struct, frozen=True):
    """Another host's file under our own keys; always valid."""

    value: dict[str, Json]
    notes: tuple[Problem, ...]


def translation(
    dialect: ConfigDialect, value: Json, file: str, canonical_id: Callable[[str], str]
) -> Translation | None:
    """Translate a file, or return None when it says nothing about language servers."""
    section = value
    top: JsonPath = ()
    if dialect.section is not None:
        section = value.get(dialect.section) if isinstance(value, dict) else None
        top = (dialect.section,)
    if section is None:
        return None
    raw, unknown = _translated(dialect, section, top, canonical_id)
    found = problems(raw, file)
    left = without(raw, found)
    notes = [Problem(ProblemGrade.NOTE, file, path, "not used", shown(item)) for path, item in unknown]
    notes += [Problem(ProblemGrade.NOTE, file, p.path, f"not used: {p.message}", p.value, p.accepted) for p in found]
    return Translation(left if isinstance(left, dict) else {}, tuple(notes))


Unknown = list[tuple[JsonPath, Json]]


def _translated(
    dialect: ConfigDialect, section: Json, top: JsonPath, canonical_id: Callable[[str], str]
) -> tuple[Json, Unknown]:
    if isinstance(section, bool):
        return ({"lsp": False}, []) if section is False and dialect.false_is_off else ({}, [])
    if not isinstance(section, dict):
        return {}, [(top, section)]
    result: dict[str, Json] = {}
    unknown: Unknown = []
    if not dialect.servers:
        _add_servers(result, unknown, section, top, canonical_id)
        return result, unknown
    if dialect.switch is not None and section.get(dialect.switch) is False:
        return {"lsp": False}, []
    for key, item in section.items():
        if key == dialect.switch and isinstance(item, bool):
            continue
        if key in dialect.servers and item is False:
            result["lsp"] = False
        elif key in dialect.servers:
            _add_servers(result, unknown, item, (*top, key), canonical_id)
        elif key in GENERAL:
            _put(result, GENERAL[key], item)
        elif key not in SILENT:
            unknown.append(((*top, key), item))
    return result, unknown


def _add_servers(
    result: dict[str, Json], unknown: Unknown, servers: Json, path: JsonPath, canonical_id: Callable[[str], str]
) -> None:
    for id_, entry, where in _named(servers, path, unknown):
        if not isinstance(entry, dict):
            unknown.append((where, entry))
            continue
        unknown += [((*where, key), item) for key, item in entry.items() if key not in UNDERSTOOD]
        _put(result, ("lsp", canonical_id(id_).replace(" ", "-")), _server(entry))


def _named(servers: Json, path: JsonPath, unknown: Unknown) -> Iterator[tuple[str, Json, JsonPath]]:
    """The servers of an object, or of a list whose items name themselves."""
    match servers:
        case dict():
            yield from ((key, entry, (*path, key)) for key, entry in servers.items())
        case list():
            for index, entry in enumerate(servers):
                match entry:
                    case {"id": str(id_)}:
                        yield id_, entry, (*path, index)
                    case _:
                        unknown.append(((*path, index), entry))
        case _:
            unknown.append((path, servers))


def _server(entry: Mapping[str, Json]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, item in entry.items():
        if key in PER_SERVER:
            _put(result, PER_SERVER[key], item)
    return _composed(entry, result)


def _composed(entry: Mapping[str, Json], result: dict[str, Json]) -> dict[str, Json]:
    """What several keys say together: a program and its arguments, files by glob, a language for all extensions."""
    command, arguments = result.get("command"), entry.get("args")
    if isinstance(command, str):
        result["command"] = [command, *(arguments if isinstance(arguments, list) else [])]
    elif isinstance(command, list) and isinstance(arguments, list):
        result["command"] = [*command, *arguments]
    if isinstance(entry.get("enabled"), bool):
        result["disabled"] = entry["enabled"] is False
    if "extensions" not in result and (globbed := _extensions(entry.get("include"))):
        result["extensions"] = globbed
    extensions = result.get("extensions")
    if isinstance(extensions, list):
        extensions = [f".{item}" if isinstance(item, str) and not item.startswith(".") else item for item in extensions]
        result["extensions"] = extensions
    if isinstance(language := result.get("languageId"), str):
        known = extensions if isinstance(extensions, list) else []
        result["languageId"] = {item: language for item in known if isinstance(item, str)}
    return result


def _extensions(globs: Json) -> list[Json]:
    """The extensions of globs that name nothing else (`**/*.py`)."""
    names = [glob.rsplit("*", 1)[-1] for glob in globs if isinstance(glob, str)] if isinstance(globs, list) else []
    return [*dict.fromkeys(name for name in names if name.startswith(".") and "/" not in name)]


def _put(result: dict[str, Json], path: tuple[str, ...], value: Json) -> None:
    *folders, last = path
    for step in folders:
        below = result.setdefault(step, {})
        if not isinstance(below, dict):
            return
        result = below
    old = result.get(last)
    result[last] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
