"""Loading the configuration of a workspace: which files, in which order, and what holds when one has errors.

The order is a safety property (T2): the user's file, then the decision about trust, and only then the first byte below
the workspace. `load` never fails because of what a file says: everything wrong is a `Problem`, and a broken file is
replaced by its last valid version, kept from the load before (CFG-8). Which layer is broken makes no difference to the
others, and trust is decided anew each time, on the content that is in force.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import Struct

from pilotfish.config.effective import Circumstances, Config, effective
from pilotfish.config.files import WorkspaceFiles, open_workspace
from pilotfish.config.gate import GatedValue, Split, split
from pilotfish.config.host_trust import deciding_files
from pilotfish.config.merge import ConfigSource, EqualValues, Layer, Merged, ValueOrigin, merge
from pilotfish.config.places import Places, project_files, user_files
from pilotfish.config.problems import Problem, ProblemGrade, printable, shown
from pilotfish.config.schema import DEFAULTS, HOST_DEFAULTS, SecuritySettings
from pilotfish.config.sheets import Names, Sheet, read_project_sheet, read_user_sheet
from pilotfish.config.trust import Stale, Trust, Trusted, TrustGrant, pin_file, read_grant, read_offer, settle
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.wire import Json
from pilotfish.system.ownership import own_home
from pilotfish.system.real_path import real_path


class Catalogue(Struct, frozen=True):
    """The servers that are built in: their entries under the keys of the file, and other tools' names for them."""

    layer: Mapping[str, Mapping[str, Json]]
    canonical_id: Names


class ConfigRequest(Struct, frozen=True):
    """Whose configuration to load."""

    root: str
    places: Places
    catalogue: Catalogue
    host: str | None = None
    handed_over: Mapping[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """What the host passed when it started us, under our own keys; every file takes precedence."""
    copy_of: str | None = None
    """The folder that `root` is a copy of, made by us: trust that the user gave to it counts for the copy."""


_merged: EqualValues[Merged] = EqualValues(16)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and how it was made."""

    config: Config
    merged: Merged
    problems: tuple[Problem, ...]
    blocked: tuple[Problem, ...]
    """Of these, what a project's file says and may not, each at its field."""
    sheets: tuple[Sheet, ...]
    """The files that count."""
    watched: tuple[AbsPath, ...]
    """Every file that would change the result, whether it exists or not."""
    project: Split = field(repr=False)
    project_file: str
    """Relative to the workspace; empty when the project has no config file."""
    user_rules: SecuritySettings | None
    """What decided trust; None when the user's file has errors that leave it open."""
    good: Mapping[AbsPath, Sheet] = field(repr=False)
    """The last version of each file that had no errors."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.grade is ProblemGrade.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.grade is ProblemGrade.WARNING)


def load(request: ConfigRequest, previous: Loaded | None = None) -> Loaded:
    """Load, or load again after `previous`; raises `Refused` when the workspace cannot be opened."""
    with open_workspace(request.root) as workspace:
        return load_from(workspace, request, previous)


def load_from(workspace: WorkspaceFiles, request: ConfigRequest, previous: Loaded | None = None) -> Loaded:
    """The same for a workspace that is open already."""
    reading = _read_files(workspace, request, dict(previous.good) if previous else {})
    trusted = isinstance(reading.trust, Trusted) and not reading.trust.is_adopted
    withheld = () if trusted else reading.parts.gated
    layers = _layers(request, reading, reading.parts.whole if trusted else reading.parts.open)
    merged = _merged.one(merge(layers))
    about = Circumstances(
        root=workspace.path,
        host=request.host,
        trust=reading.trust,
        catalogue=request.catalogue.layer.keys(),
        withheld=withheld,
        foreign={sheet.file for sheet in reading.sheets if sheet.foreign},
    )
    config, incomplete = effective(merged, layers, about)
    found = [problem for sheet in reading.sheets for problem in sheet.problems]
    blocked = tuple(map(reading.placed, _ignored(reading, withheld, workspace.path)))
    return Loaded(
        config=config,
        merged=merged,
        problems=(*map(reading.placed, (*found, *incomplete)), *blocked),
        blocked=tuple(problem for problem in blocked if problem.path),
        sheets=reading.sheets,
        watched=watched_files(request, workspace.path),
        project=reading.parts,
        project_file=reading.project_file,
        user_rules=reading.rules,
        good=reading.good,
    )


class _Reading(Struct, frozen=True):
    """What the files say, and whether the project is trusted."""

    user: Sheet | None
    rules: SecuritySettings | None
    project: Sheet | None
    project_file: str
    parts: Split
    trust: Trust
    good: Mapping[AbsPath, Sheet]

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        return tuple(sheet for sheet in (self.user, self.project) if sheet)

    def placed(self, problem: Problem) -> Problem:
        for sheet in self.sheets:
            problem = sheet.placed(problem)
        return problem


def _read_files(workspace: WorkspaceFiles, request: ConfigRequest, good: dict[AbsPath, Sheet]) -> _Reading:
    canonical_id = request.catalogue.canonical_id
    user = _recall(_outside(read_user_sheet(request.places, request.host, canonical_id), workspace.path), good)
    rules = _rules(user)
    grant = _granted(workspace, rules, request)
    # Up to here nothing below the workspace has been opened; the next line is the first that does.
    project = _recall(read_project_sheet(workspace, canonical_id), good)
    project_file = os.path.relpath(project.file, workspace.path) if project else ""
    parts = split(project.value if project else {})
    trust = settle(grant, lambda: read_offer(workspace, project_file, parts))
    files = {sheet.file for sheet in (user, project) if sheet}
    kept = {file: sheet for file, sheet in good.items() if file in files}
    return _Reading(user, rules, project, project_file, parts, trust, kept)


def _granted(workspace: WorkspaceFiles, rules: SecuritySettings | None, request: ConfigRequest) -> TrustGrant:
    """Of a copy, what the original has; what the copy asks to run is still compared with what was approved."""
    if request.copy_of is None:
        return read_grant(workspace, rules, request.places, request.host)
    try:
        with open_workspace(request.copy_of) as original:
            return read_grant(original, rules, request.places, request.host)
    except Refused:
        # On another machine there is no original.
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


def _rules(user: Sheet | None) -> SecuritySettings | None:
    """The user's rules; None when errors leave open what they are."""
    if user is not None and not user.believable:
        return None
    section = user.value.get("security") if user else None
    return msgspec.convert(section or {}, SecuritySettings)


def _layers(request: ConfigRequest, reading: _Reading, believed: dict[str, Json]) -> list[Layer]:
    """Weakest first. `believed` is the part of the project's file that counts."""
    catalogue: dict[str, Json] = {server: dict(entry) for server, entry in request.catalogue.layer.items()}
    layers = [Layer(ValueOrigin(ConfigSource.DEFAULT), DEFAULTS)]
    if request.host in HOST_DEFAULTS:
        layers.append(Layer(ValueOrigin(ConfigSource.HOST), HOST_DEFAULTS[request.host]))
    layers.append(Layer(ValueOrigin(ConfigSource.CATALOGUE), {"lsp": catalogue}))
    if request.handed_over:
        layers.append(Layer(ValueOrigin(ConfigSource.HOST), request.handed_over))
    if reading.user:
        # Rules with errors are left out: the defaults are the strictest.
        said = {key: item for key, item in reading.user.value.items() if key != "security" or reading.rules}
        layers.append(Layer(ValueOrigin(ConfigSource.GLOBAL, reading.user.file), said))
    if reading.project:
        layers.append(Layer(ValueOrigin(ConfigSource.PROJECT, reading.project.file), believed))
    return layers


def _ignored(reading: _Reading, withheld: tuple[GatedValue, ...], root: AbsPath) -> Iterator[Problem]:
    """One warning for each value that is ignored, with how to change that (TRUST-4)."""
    if reading.project is None:
        return
    trust = reading.trust
    why = "trust that was given in a host does not count for it" if isinstance(trust, Trusted) else trust.why
    why = f"ignored: {why}; `pilotfish trust {printable(root)}` shows what would run, and asks"
    for gated in reading.parts.refused:
        yield _warning(reading.project, gated, "ignored: no project may set this variable")
    for gated in withheld:
        yield _warning(reading.project, gated, why)
    for line in trust.differences if isinstance(trust, Stale) else ():
        yield Problem(ProblemGrade.WARNING, reading.project.file, (), f"changed since it was trusted: {line}")


def _warning(project: Sheet, gated: GatedValue, message: str) -> Problem:
    return Problem(ProblemGrade.WARNING, project.file, ("lsp", gated.server, *gated.path), message, shown(gated.value))


def watched_files(request: ConfigRequest, root: AbsPath) -> tuple[AbsPath, ...]:
    """The files that decide: when one of them changes, the configuration of this root may change."""
    return (
        *(path for _, path in user_files(request.places, request.host)),
        *(AbsPath(os.path.join(root, name)) for _, name in project_files()),
        pin_file(request.places.pins, root),
        *deciding_files(request.places),
    )
