"""The user's config file and the project's (CFG-1, CFG-9): the first that says something about language servers.

A sheet is one config file, read: what of it counts, and what is wrong with it. A file that cannot be parsed counts for
nothing. One with wrong values counts without them: an error in one place must not turn a server back on that another
place turns off. (`config.load` uses the last valid version instead where it has one.) The files and their order
are in `config.places`. Parent folders are never looked at.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from msgspec import Struct, structs

from pilotfish.config.files import UnreadableFile, WorkspaceFiles, read_user_file
from pilotfish.config.jsonc import BadJson, Document, JsonPath, LineColumn, parse
from pilotfish.config.merge import ConfigSource
from pilotfish.config.places import ConfigDialect, Places, project_files, user_files
from pilotfish.config.problems import Problem, ProblemGrade, problems, shown, without
from pilotfish.config.schema import USER_ONLY, ServerEntry
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json

Names = Callable[[str], str]  # Our id for what another tool calls a server


@dataclass(frozen=True, slots=True)
class Sheet:
    """What one file says. `value` is always valid."""

    file: AbsPath
    value: dict[str, Json]
    problems: tuple[Problem, ...] = ()
    sound: bool = True  # False: the file has errors, and `value` lacks the parts that have them
    believable: bool = True  # False: its security section has errors, or another user may have written it
    foreign: bool = False  # Another host's file
    document: Document | None = field(default=None, repr=False)
    """The places of its values; None when the file has other content by now."""

    def placed(self, problem: Problem) -> Problem:
        """`problem` with the place of its value, if it is about this file and has none yet."""
        if problem.file != self.file or problem.place or not self.document:
            return problem
        return structs.replace(problem, place=self.document.place(problem.path))


class Reader(Struct, frozen=True):
    """How to read a file: whose it is and, if it is another host's, in which dialect."""

    source: ConfigSource
    canonical_id: Names
    dialect: ConfigDialect | None = None

    def sheet(self, data: bytes, file: AbsPath) -> Sheet | None:
        """The file's content, or None when it says nothing about language servers."""
        try:
            document = parse(data)
        except BadJson as error:
            return self.broken(file, error.message, error.place)
        is_own = self.dialect is None
        if self.dialect is None:
            found = [*problems(document.value, file)]
            left = without(document.value, tuple(found))
            value = dict(left) if isinstance(left, dict) else {}
            value.pop("$schema", None)
            found += _rename_servers(value, file, self.canonical_id)
        elif (translated := translation(self.dialect, document.value, file, self.canonical_id)) is not None:
            value, found = dict(translated.value), [*translated.notes]
        else:
            return None
        sound = not (is_own and found)
        believable = all(problem.path[:1] != ("security",) and (problem.path or not is_own) for problem in found)
        for key in USER_ONLY if self.source is ConfigSource.PROJECT else ():
            if value.pop(key, None) is not None:
                grade = ProblemGrade.WARNING if is_own else ProblemGrade.NOTE
                found.append(Problem(grade, file, (key,), "ignored: it is read from the user's own file only"))
        return Sheet(file, value, tuple(found), sound, believable, foreign=not is_own, document=document)

    def broken(self, file: AbsPath, message: str, place: LineColumn | None = None) -> Sheet:
        """A file that cannot be read: an error in our own file, a warning in another host's."""
        grade = ProblemGrade.WARNING if self.dialect else ProblemGrade.ERROR
        problem = Problem(grade, file, (), f"cannot be read: {message}", place=place)
        return Sheet(file, {}, (problem,), sound=False, believable=False, foreign=self.dialect is not None)


def _rename_servers(value: dict[str, Json], file: AbsPath, canonical_id: Names) -> list[Problem]:
    """Give servers their catalogue ids; one that has both names in the file counts under its id only."""
    servers = value.get("lsp")
    if not isinstance(servers, dict):
        return []
    renamed: dict[str, Json] = {}
    twice: list[Problem] = []
    for name, entry in servers.items():
        server = canonical_id(name)
        if server != name and (server in servers or server in renamed):
            message = f"ignored: it is another name for {server}, which is configured too"
            twice.append(Problem(ProblemGrade.ERROR, file, ("lsp", name), message))
        else:
            renamed[server] = entry
    value["lsp"] = renamed
    return twice


# --- Which files --------------------------------------------------------------------------------------------------


def read_user_sheet(places: Places, host: str | None, canonical_id: Names) -> Sheet | None:
    for dialect, path in user_files(places, host):
        reader = Reader(ConfigSource.GLOBAL, canonical_id, dialect)
        try:
            file = read_user_file(path)
        except UnreadableFile as error:
            return reader.broken(path, str(error))
        sheet = reader.sheet(file.data, path) if file else None
        if file is not None and sheet is not None and file.tampering is not None:
            problem = Problem(ProblemGrade.ERROR, path, ("security",), f"cannot grant trust: {file.tampering}")
            return replace(sheet, problems=(*sheet.problems, problem), sound=False, believable=False)
        if sheet is not None:
            return sheet
    return None


def read_project_sheet(workspace: WorkspaceFiles, canonical_id: Names) -> Sheet | None:
    for dialect, name in project_files():
        reader, path = Reader(ConfigSource.PROJECT, canonical_id, dialect), AbsPath(os.path.join(workspace.path, name))
        try:
            data = workspace.read(name)
        except UnreadableFile as error:
            return reader.broken(path, str(error))
        if data is not None and (sheet := reader.sheet(data, path)) is not None:
            return sheet
    return None


# --- Other hosts' files, read as if they were ours (CFG-9) ------------------------------------------------------------

# They are not our files: a key that we do not know, or a value that we do not accept, is a note and never an error.
# The names are data. Real files of one host come in several shapes (Pi's extensions alone have three), so every name is
# understood in every host's file; a host's row of `CONFIG_DIALECTS` only says where its servers are.

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
    **{key: (key,) for key in ServerEntry.__struct_encode_fields__},
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
"""Keys of a server that have a meaning only together with others; `_server` reads them."""

SILENT = frozenset({"$schema", "version", "name"})  # Keys that say nothing about servers

UNDERSTOOD = COMPOSED.union(SILENT, PER_SERVER)


class Translation(Struct, frozen=True):
    """Another host's file under our own keys; always valid."""

    value: dict[str, Json]
    notes: tuple[Problem, ...]


def translation(dialect: ConfigDialect, value: Json, file: str, canonical_id: Names) -> Translation | None:
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


def _translated(dialect: ConfigDialect, section: Json, top: JsonPath, canonical_id: Names) -> tuple[Json, Unknown]:
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


def _add_servers(result: dict[str, Json], unknown: Unknown, servers: Json, path: JsonPath, canonical_id: Names) -> None:
    """The servers of an object, or of a list whose items name themselves."""
    named: list[tuple[Json, Json, JsonPath]] = []
    if isinstance(servers, dict):
        named = [(key, entry, (*path, key)) for key, entry in servers.items()]
    elif isinstance(servers, list):
        named = [
            (entry.get("id") if isinstance(entry, dict) else None, entry, (*path, index))
            for index, entry in enumerate(servers)
        ]
    else:
        unknown.append((path, servers))
    for id_, entry, where in named:
        if not isinstance(entry, dict) or not isinstance(id_, str):
            unknown.append((where, entry))
            continue
        unknown += [((*where, key), item) for key, item in entry.items() if key not in UNDERSTOOD]
        _put(result, ("lsp", canonical_id(id_).replace(" ", "-")), _server(entry))


def _server(entry: Mapping[str, Json]) -> dict[str, Json]:
    """Also what several keys say together: a program and its arguments, files by glob, a language for extensions."""
    result: dict[str, Json] = {}
    for key, item in entry.items():
        if key in PER_SERVER:
            _put(result, PER_SERVER[key], item)
    command, arguments = result.get("command"), entry.get("args")
    if isinstance(command, str):
        result["command"] = [command, *(arguments if isinstance(arguments, list) else [])]
    elif isinstance(command, list) and isinstance(arguments, list):
        result["command"] = [*command, *arguments]
    if isinstance(entry.get("enabled"), bool):
        result["disabled"] = entry["enabled"] is False
    globs = entry.get("include")
    if "extensions" not in result and isinstance(globs, list):
        # Those of globs that name nothing else: `**/*.py`.
        names = [glob.rsplit("*", 1)[-1] for glob in globs if isinstance(glob, str)]
        if found := [*dict.fromkeys(name for name in names if name.startswith(".") and "/" not in name)]:
            result["extensions"] = [*found]
    extensions = result.get("extensions")
    if isinstance(extensions, list):
        extensions = [f".{item}" if isinstance(item, str) and not item.startswith(".") else item for item in extensions]
        result["extensions"] = extensions
    if isinstance(language := result.get("languageId"), str):
        known = extensions if isinstance(extensions, list) else []
        result["languageId"] = {item: language for item in known if isinstance(item, str)}
    return result


def _put(result: dict[str, Json], path: tuple[str, ...], value: Json) -> None:
    *folders, last = path
    for step in folders:
        below = result.setdefault(step, {})
        if not isinstance(below, dict):
            return
        result = below
    old = result.get(last)
    result[last] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
