"""The configuration of a workspace: which files, in which order, and what holds when one has errors.

The order is a safety property (T2): the user's file, then the decision about trust, and only then the first byte below
the workspace. `load` never fails because of what a file says: everything wrong is a `Problem`, and a broken file is
replaced by its last valid version, kept from the load before (CFG-8). Which layer is broken makes no difference to the
others, and trust is decided anew each time, on the content that is in force.
"""

import difflib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict, fields

from pilotfish.config.files import WorkspaceFiles, open_workspace
from pilotfish.config.gate import GatedValue, Split, split
from pilotfish.config.host_trust import deciding_files
from pilotfish.config.merge import ConfigSource, EqualValues, Layer, Merged, ValueOrigin, merge
from pilotfish.config.places import Places, project_files, user_files
from pilotfish.config.problems import Problem, ProblemGrade, path_text, printable, shown, validated
from pilotfish.config.schema import (
    DEFAULTS,
    HOST_DEFAULTS,
    HOST_RESTART,
    FeedbackSettings,
    McpSettings,
    PoolSettings,
    RestartPolicy,
    SecuritySettings,
    ServerEntry,
    TimingSettings,
)
from pilotfish.config.sheets import Names, Sheet, read_project_sheet, read_user_sheet
from pilotfish.config.trust import Stale, Trust, Trusted, TrustGrant, pin_file, read_grant, read_offer, settle
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.codec import fields as members
from pilotfish.protocol.wire import Json
from pilotfish.system.ownership import own_home
from pilotfish.system.real_path import real_path

OUR_OWN = frozenset({"timeouts", "timing", "restart", "withheld"})
"""The fields of `ServerConfig` that the server's process never sees."""


class ServerConfig(ServerEntry, frozen=True, kw_only=True):
    """One server's entry, complete. `command` is empty when no file that we believe named one."""

    id: str
    restart: RestartPolicy = "backoff"
    timing: TimingSettings  # Its own limits where it has some
    withheld: tuple[str, ...] = ()
    """What a project's file sets and is ignored for want of trust, as paths below the entry."""

    @property
    def fingerprint(self) -> str:
        """Equal for two entries exactly when one process may serve both (REG-4)."""
        seen = {name: value for name, value in asdict(self).items() if name not in OUR_OWN}
        return hashlib.sha256(json.dumps(msgspec.to_builtins(seen), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that holds for one workspace under one host: complete, every default filled in."""

    root: AbsPath  # The workspace, symlinks resolved
    enabled: bool  # False after `"lsp": false`: no server, no feedback, no tools
    servers: Mapping[str, ServerConfig]
    timing: TimingSettings
    feedback: FeedbackSettings
    pool: PoolSettings
    security: SecuritySettings
    start_ahead: bool
    navigation_tools: bool
    mcp: McpSettings
    trust: Trust
    origins: Mapping[tuple[str, ...], ValueOrigin] = field(repr=False, compare=False)
    """The origin of each value, by its path in the merged file (`("lsp", "pyright", "command")`)."""

    @property
    def trusted(self) -> bool:
        return isinstance(self.trust, Trusted)

    @property
    def named(self) -> set[str]:
        """The servers whose command a file of the user or of the project says, or the host itself."""
        commands = {path[1]: origin for path, origin in self.origins.items() if path[::2] == ("lsp", "command")}
        return {server for server, origin in commands.items() if origin.source is not ConfigSource.CATALOGUE}

    @property
    def withholds(self) -> bool:
        """Whether the project's file may not say what runs."""
        return not isinstance(self.trust, Trusted) or self.trust.is_adopted


class Catalogue(Struct, frozen=True):
    """The servers that are built in: their entries under the keys of the file, and other tools' names for them."""

    layer: Mapping[str, Mapping[str, Json]]
    canonical_id: Names


class ConfigRequest(Struct, frozen=True):
    root: str
    places: Places
    catalogue: Catalogue
    host: str | None = None
    handed_over: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """What the host passed when it started us, under our own keys; every file takes precedence."""
    copy_of: str | None = None
    """The folder that `root` is a copy of, made by us: trust that the user gave to it counts for the copy."""


@dataclass(frozen=True, slots=True)
class Loaded:
    config: Config
    merged: Merged
    problems: tuple[Problem, ...]
    blocked: tuple[Problem, ...]  # Of these, what a project's file says and may not, each at its field
    sheets: tuple[Sheet, ...]  # The files that count
    watched: tuple[AbsPath, ...]  # Every file that would change the result, whether it exists or not
    project: Split = field(repr=False)
    project_file: str  # Relative to the workspace; empty when the project has no config file
    user_rules: SecuritySettings | None  # What decided trust; None when the user's file has errors that leave it open
    good: Mapping[AbsPath, Sheet] = field(repr=False)  # The last version of each file that had no errors

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.grade is ProblemGrade.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.grade is ProblemGrade.WARNING)


_merged: EqualValues[Merged] = EqualValues(16)
_servers: EqualValues[Mapping[str, ServerConfig]] = EqualValues(16)


def load(request: ConfigRequest, previous: Loaded | None = None) -> Loaded:
    """Load, or load again after `previous`; raises `Refused` when the workspace cannot be opened."""
    with open_workspace(request.root) as workspace:
        return load_from(workspace, request, previous)


def load_from(workspace: WorkspaceFiles, request: ConfigRequest, previous: Loaded | None = None) -> Loaded:
    """The same for a workspace that is open already."""
    good = dict(previous.good) if previous else {}
    canonical_id = request.catalogue.canonical_id
    user = _recall(_outside(read_user_sheet(request.places, request.host, canonical_id), workspace.path), good)
    section = user.value.get("security") if user else None
    rules = msgspec.convert(section or {}, SecuritySettings) if user is None or user.believable else None
    grant = _granted(workspace, rules, request)
    # Up to here nothing below the workspace has been opened; the next line is the first that does.
    project = _recall(read_project_sheet(workspace, canonical_id), good)
    project_file = os.path.relpath(project.file, workspace.path) if project else ""
    parts = split(project.value if project else {})
    trust = settle(grant, lambda: read_offer(workspace, project_file, parts))
    is_whole = isinstance(trust, Trusted) and not trust.is_adopted
    withheld = () if is_whole else parts.gated
    merged = _merged.one(merge(_layers(request, user, rules, project, parts.whole if is_whole else parts.open)))
    sheets = tuple(sheet for sheet in (user, project) if sheet)
    config, incomplete = _effective(workspace.path, request, merged, trust, withheld, sheets)
    found = [*(problem for sheet in sheets for problem in sheet.problems), *incomplete]
    blocked = [*_ignored(project, parts, trust, withheld, workspace.path)] if project else []
    for sheet in sheets:
        found, blocked = [*map(sheet.placed, found)], [*map(sheet.placed, blocked)]
    return Loaded(
        config=config,
        merged=merged,
        problems=(*found, *blocked),
        blocked=tuple(problem for problem in blocked if problem.path),
        sheets=sheets,
        watched=watched_files(request, workspace.path),
        project=parts,
        project_file=project_file,
        user_rules=rules,
        good={sheet.file: good[sheet.file] for sheet in sheets if sheet.file in good},
    )


def _granted(workspace: WorkspaceFiles, rules: SecuritySettings | None, request: ConfigRequest) -> TrustGrant:
    """Of a copy, what the original has; what the copy asks to run is still compared with what was approved."""
    # On another machine there is no original.
    with suppress(Refused):
        if request.copy_of is not None:
            with open_workspace(request.copy_of) as original:
                return read_grant(original, rules, request.places, request.host)
    return read_grant(workspace, rules, request.places, request.host)


def _outside(sheet: Sheet | None, workspace: AbsPath) -> Sheet | None:
    """The user's file, unless a variable led to one of the project's: then it is no word of the user (T47)."""
    if sheet is None or not is_inside(real_path(sheet.file), workspace) or is_inside(own_home(), workspace):
        return sheet
    problem = Problem(ProblemGrade.ERROR, sheet.file, (), "does not count: the user's file is inside the workspace")
    return replace(sheet, value={}, problems=(problem,), sound=False, believable=False)


def _recall(sheet: Sheet | None, good: dict[AbsPath, Sheet]) -> Sheet | None:
    """The sheet, or the last valid version of its file with today's errors; remembers valid ones."""
    if sheet is None:
        return None
    if sheet.sound:
        good[sheet.file] = sheet
        return sheet
    last = good.get(sheet.file)
    if last is None:
        return sheet
    told = Problem(ProblemGrade.WARNING, sheet.file, (), "has errors: its last valid version stays in force")
    found = tuple(sheet.placed(problem) for problem in (*sheet.problems, told))
    return replace(last, problems=found, document=None)


def _layers(
    request: ConfigRequest,
    user: Sheet | None,
    rules: SecuritySettings | None,
    project: Sheet | None,
    believed: dict[str, Json],
) -> Iterator[Layer]:
    """Weakest first. `believed` is the part of the project's file that counts."""
    yield Layer(ValueOrigin(ConfigSource.DEFAULT), DEFAULTS)
    yield Layer(ValueOrigin(ConfigSource.HOST), HOST_DEFAULTS.get(request.host, {}))
    entries: dict[str, Json] = {server: dict(entry) for server, entry in request.catalogue.layer.items()}
    yield Layer(ValueOrigin(ConfigSource.CATALOGUE), {"lsp": entries})
    yield Layer(ValueOrigin(ConfigSource.HOST), request.handed_over)
    if user:
        # Rules with errors are left out: the defaults are the strictest.
        said = {key: item for key, item in user.value.items() if key != "security" or rules}
        yield Layer(ValueOrigin(ConfigSource.GLOBAL, user.file), said)
    if project:
        yield Layer(ValueOrigin(ConfigSource.PROJECT, project.file), believed)


def _ignored(
    project: Sheet, parts: Split, trust: Trust, withheld: Sequence[GatedValue], root: AbsPath
) -> Iterator[Problem]:
    """One warning for each value that is ignored, with how to change that (TRUST-4)."""
    why = "trust that was given in a host does not count for it" if isinstance(trust, Trusted) else trust.why
    why = f"ignored: {why}; `pilotfish trust {printable(root)}` shows what would run, and asks"
    told = [(one, "ignored: no project may set this variable") for one in parts.refused]
    for gated, message in (*told, *((one, why) for one in withheld)):
        path = ("lsp", gated.server, *gated.path)
        yield Problem(ProblemGrade.WARNING, project.file, path, message, shown(gated.value))
    for line in trust.differences if isinstance(trust, Stale) else ():
        yield Problem(ProblemGrade.WARNING, project.file, (), f"changed since it was trusted: {line}")


def watched_files(request: ConfigRequest, root: AbsPath) -> tuple[AbsPath, ...]:
    """The files that decide: when one of them changes, the configuration of this root may change."""
    return (
        *(path for _, path in user_files(request.places, request.host)),
        *(AbsPath(os.path.join(root, name)) for _, name in project_files()),
        pin_file(request.places.pins, root),
        *deciding_files(request.places),
    )


# --- From the merged layers to a configuration ------------------------------------------------------------------------


def _effective(
    root: AbsPath,
    request: ConfigRequest,
    merged: Merged,
    trust: Trust,
    withheld: Sequence[GatedValue],
    sheets: Sequence[Sheet],
) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration, and what is wrong with its servers; a server that is incomplete is left out."""
    file = validated(merged.value)
    servers: dict[str, ServerConfig] = {}
    problems: list[Problem] = []
    for server, entry in file.lsp.items() if isinstance(file.lsp, dict) else ():
        ignored = [gated.path for gated in withheld if gated.server == server]
        # A server that is not in the catalogue needs these, unless it is off or they were ignored.
        missing = [key for key in ("command", "extensions") if not getattr(entry, key)]
        is_known = server in request.catalogue.layer or entry.disabled
        if not is_known and set(missing) - {path[0] for path in ignored}:
            problems.append(_incomplete(server, missing, request.catalogue, sheets))
            continue
        own: dict[str, Any] = {**asdict(entry), "id": server, "withheld": tuple(map(path_text, ignored))}
        own["restart"] = HOST_RESTART.get(request.host, "backoff") if entry.restart is UNSET else entry.restart
        own["timing"] = _server_timing(server, entry.timeouts, file.timing, merged)
        servers[server] = ServerConfig(**own)
    config = Config(
        root=root,
        enabled=file.lsp is not False,
        servers=_servers.one(dict(sorted(servers.items()))),
        timing=file.timing,
        feedback=file.feedback,
        pool=file.pool,
        security=file.security,
        start_ahead=file.start_ahead,
        navigation_tools=file.navigation_tools,
        mcp=file.mcp,
        trust=trust,
        origins=merged.origins,
    )
    return config, tuple(problems)


def _server_timing(server: str, own: TimingSettings, general: TimingSettings, merged: Merged) -> TimingSettings:
    """The server's own limits where it has some; those of the catalogue may raise the general ones, not lower them."""
    limits: dict[str, int] = {}
    for limit in fields(TimingSettings):
        origin = merged.origins.get(("lsp", server, "timeouts", limit.encode_name))
        if origin is not None:
            least = getattr(general, limit.name) if origin.source is ConfigSource.CATALOGUE else 0
            limits[limit.name] = max(least, getattr(own, limit.name))
    return msgspec.structs.replace(general, **limits)


def _incomplete(server: str, missing: Sequence[str], catalogue: Catalogue, sheets: Sequence[Sheet]) -> Problem:
    """Of another host's file nothing is an error."""
    named = (sheet for sheet in reversed(sheets) if server in members(sheet.value.get("lsp")))
    sheet = next(named, None)
    near = difflib.get_close_matches(server, catalogue.layer, n=1)
    return Problem(
        ProblemGrade.NOTE if sheet is not None and sheet.foreign else ProblemGrade.ERROR,
        "" if sheet is None else sheet.file,
        ("lsp", server),
        f"the catalogue has no server {shown(server)}, and a custom one lacks {' and '.join(missing)}",
        accepted="an id of the catalogue, or a server with command and extensions",
        nearest=near[0] if near else None,
    )
