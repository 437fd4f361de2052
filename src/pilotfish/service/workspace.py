"""One workspace under one host: the configuration in force, and what it means for a file.

It answers which servers serve a file and how to start each; it starts nothing and keeps nothing of any server.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.config.effective import ServerConfig
from pilotfish.config.load import Loaded
from pilotfish.config.merge import ConfigSource, ValueOrigin
from pilotfish.config.places import Places
from pilotfish.config.problems import Problem, ProblemGrade, printable
from pilotfish.config.trust import Trusted, approved_files, changed_files
from pilotfish.errors import Code, Failure, Scene, Unavailable
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, is_inside
from pilotfish.policy.boundary import Boundary
from pilotfish.pool.entry import Recipe, Restore
from pilotfish.pool.plan import Key
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import Json
from pilotfish.servers.advice import install_command, unavailable
from pilotfish.servers.cache_evidence import Evidence, Sight, Witness
from pilotfish.servers.catalogue import effective_servers
from pilotfish.servers.environment import (
    TOOLCHAINS,
    beside_us,
    child_environment,
    fingerprint,
    foreign_path,
    search_path,
)
from pilotfish.servers.inputs import InputEvidence, input_evidence, outside_folders
from pilotfish.servers.install import bundles
from pilotfish.servers.launch import (
    Allowed,
    Unfilled,
    Withheld,
    admitted,
    filled,
    placeholders,
    sidecar,
    without_remote_schemas,
)
from pilotfish.servers.locate import (
    Gated,
    Lookup,
    ProgramFound,
    ProgramLocation,
    ProgramMissing,
    find_npm_file,
    locate,
    tool_folders,
)
from pilotfish.servers.matching import own_files, sources_in
from pilotfish.servers.resolve import MAX_FIRST_LINE, Candidate, Resolver, SearchScope, ServerChoice, choose
from pilotfish.servers.spec import Environment, PullSupport, Restricted, Role, ServerSpec
from pilotfish.servers.tree import DiskTree
from pilotfish.servers.versions import installed_version
from pilotfish.service.python_environments import PythonEnvironments
from pilotfish.service.recent import Recent
from pilotfish.system.ownership import make_private_folders, own_home
from pilotfish.system.ports import Confinement, Launch
from pilotfish.system.real_path import real_path

MAX_CHOICES = 1_000
"""Files whose servers are kept, about 2 KB each; for others the folders are searched again."""

MAX_NAMED = 5
"""Files that a refusal names."""

UNDECLARED_PULL: Mapping[str, Json] = {
    "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False}
}

PYTHON_PLACEHOLDERS = frozenset({"python", "pythonEnvironment", "pythonPackages", "pythonPrefix"})
"""Of `servers.launch`: what differs with the Python environment of a root."""


class _Whereabouts(Struct):
    """Where each program is. Valid while the searched folders have not changed."""

    modified: tuple[int, ...] = ()
    """Modification times of the searched folders."""
    fingerprint: str = ""
    """The same as one string."""
    found: dict[tuple[str, AbsPath], ProgramLocation] = field(
        default_factory=dict[tuple[str, AbsPath], ProgramLocation]
    )
    admitted: dict[tuple[str, AbsPath], Allowed | Withheld] = field(
        default_factory=dict[tuple[str, AbsPath], Allowed | Withheld]
    )
    installed: dict[str, bool] = field(default_factory=dict[str, bool])
    """Whether each package manager is installed."""
    surroundings: str = ""
    """The result of `Workspace._surroundings`, which searches for every toolchain."""
    shortcomings: Mapping[str, str] | None = None
    """The result of `Workspace.shortcomings`, which searches for every program of the catalogue."""
    keys: dict[tuple[str, AbsPath, str], Key] = field(default_factory=dict[tuple[str, AbsPath, str], Key])
    choices: Recent[tuple[AbsPath, str | None], tuple[ServerChoice, Evidence]] = field(
        default_factory=lambda: Recent(MAX_CHOICES)
    )
    """The servers of each file, and the evidence for them."""


class Workspace:
    def __init__(
        self,
        loaded: Loaded,
        boundary: Boundary,
        places: Places,
        environment: Mapping[str, str],
        for_servers: Mapping[str, str] | None = None,
    ) -> None:
        """`for_servers`: variables that a server gets unless it is configured to have others."""
        self.config = loaded.config
        self.warnings = tuple(map(str, loaded.problems))
        self.boundary = boundary
        self._config_errors = tuple(f"the configuration has an error: {problem}" for problem in loaded.errors)
        self._blocked = loaded.blocked
        self.specs = effective_servers(loaded.config.servers, loaded.config.named)
        if not self.config.security.remote_schemas:
            self.specs = {server: without_remote_schemas(spec) for server, spec in self.specs.items()}
        self._places = places
        self._environment = environment
        self._for_servers = for_servers or {}
        territory = tuple(dict.fromkeys((boundary.workspace, boundary.worktree)))
        trusted = self.config.trusted
        path = search_path(environment.get("PATH", os.defpath), territory, trusted=trusted)
        self._lookup = Lookup(
            territory=territory,
            trusted=trusted,
            path=path,
            tools=tool_folders(places.state),
            beside=beside_us(path, territory, trusted=trusted),
            foreign=() if trusted else foreign_path(environment.get("PATH", "")),
        )
        self._pythons = PythonEnvironments(boundary.workspace, environment, os.path.join(places.state, "pythons"))
        self._tree = DiskTree()
        self._resolver = Resolver(self.specs.values(), self._tree)
        self._scope = SearchScope(boundary.workspace, boundary.worktree)
        self._seen: dict[str, Sight] = {}
        """How paths looked since the last `look_again`, for those who go through many files."""
        self._searched = (*self._lookup.tools, *self._lookup.path, *self._lookup.beside)
        """Folders whose modification times change when a program is added or removed."""
        self._whereabouts = _Whereabouts()
        self._fingerprints: dict[str, str] = {}
        self._python_servers: dict[str, bool] = {}

    @property
    def root(self) -> AbsPath:
        return self.boundary.workspace

    @cached_property
    def sources(self) -> Mapping[str, frozenset[ConfigSource]]:
        """The sources that configure a server, by its id."""
        said: dict[str, set[ConfigSource]] = {}
        for (section, *rest), origin in self.config.origins.items():
            if section == "lsp" and rest:
                said.setdefault(rest[0], set()).add(origin.source)
        return {server: frozenset(sources) for server, sources in said.items()}

    def config_notes(self, *paths: AbsPath) -> tuple[str, ...]:
        """What an answer says about the configuration: its errors, and what `blocked` has."""
        return (*self._config_errors, *self.blocked(*paths))

    def blocked(self, *paths: AbsPath) -> tuple[str, ...]:
        """The fields of the project's file that are ignored for want of trust (TRUST-4).

        With `paths`, only those of servers that may serve one of these files.
        """
        if not self._blocked:
            return ()
        servers = {one.spec.id for path in paths for one in self.candidates(path)} if paths else self.specs.keys()
        return tuple(str(problem) for problem in self._blocked if problem.path[1] in servers)

    def restriction(self, spec: ServerSpec) -> Restricted | None:
        """What a server gives up because nobody trusts the workspace; None where it gives up nothing."""
        return None if self.config.trusted else spec.restricted

    def ignored(self, server: str) -> str | None:
        """What the project's file says about a server and does not count for want of trust, in one clause."""
        withheld = self.settings(server).withheld
        return f"the project's own {', '.join(withheld)} do not count" if withheld else None

    def has_environment(self, spec: ServerSpec, path: AbsPath) -> bool:
        """Whether the packages that files like this import are installed at all, as far as can be told."""
        match spec.imports.environment:
            case Environment.PYTHON:
                return self._pythons.of(self._root_of(spec, path)) is not None
            case Environment.NODE:
                folders = ancestors(os.path.dirname(path), self.root)
                return any(self._tree.exists(os.path.join(folder, "node_modules")) for folder in folders)
            case None:
                return True

    def python_environment(self, root: AbsPath | None = None) -> AbsPath | None:
        """The folder of the Python environment whose packages count in a root, or in the workspace itself."""
        found = self._pythons.of(root or self.root)
        return None if found is None else found.prefix

    def _root_of(self, spec: ServerSpec, path: AbsPath) -> AbsPath:
        chosen = self.servers_for(path).servers
        return next((one.root for one in chosen if one.spec.id == spec.id), self.root)

    def replacements(self) -> tuple[str, ...]:
        """Which main servers run because the configuration names their command, and in place of which (REG-2)."""
        mains = [spec for spec in self.specs.values() if spec.rank.role is Role.MAIN and not spec.disabled]
        usual = sorted(
            (spec for spec in mains if not spec.rank.named), key=lambda spec: (spec.rank.preference, spec.id)
        )
        found: list[str] = []
        for spec in (spec for spec in mains if spec.rank.named):
            rivals = (rival for rival in usual if not set(spec.files.extensions).isdisjoint(rival.files.extensions))
            replaced = next((one for one in rivals if self._is_available(Candidate(one, self.root, ""))), None)
            if replaced is not None:
                why = f"the configuration names its command (lsp.{spec.id}.command)"
                found.append(f"{spec.id} runs in place of {replaced.id}: {why}")
        return tuple(found)

    def unused_entries(self) -> tuple[Problem, ...]:
        """Entries of the user and of the project that change nothing: for each of their files another server runs."""
        mains = [spec for spec in self.specs.values() if spec.rank.role is Role.MAIN and not spec.disabled]
        usual = sorted(mains, key=lambda spec: (not spec.rank.named, spec.rank.preference, spec.id))
        here = [spec for spec in usual if self._is_available(Candidate(spec, self.root, ""))]
        found: list[Problem] = []
        for spec in mains:
            origin = next(self._own_origins(spec.id), None)
            if origin is None or spec.rank.named or self._is_favoured(spec):
                continue
            instead = {
                next((one.id for one in here if extension in one.files.extensions), spec.id)
                for extension in spec.files.extensions
            }
            if instead and spec.id not in instead:
                message = f"not used: {', '.join(sorted(instead))} runs for these files"
                advice = f"lsp.{spec.id}.command, to run it instead"
                problem = Problem(ProblemGrade.WARNING, origin.file or "", ("lsp", spec.id), message, accepted=advice)
                found.append(problem)
        return tuple(found)

    def _own_origins(self, server: str) -> Iterator[ValueOrigin]:
        for path, origin in self.config.origins.items():
            if path[:2] == ("lsp", server) and origin.source in {ConfigSource.GLOBAL, ConfigSource.PROJECT}:
                yield origin

    def _is_favoured(self, spec: ServerSpec) -> bool:
        return any(self._tree.exists(os.path.join(self.root, marker)) for marker in spec.rank.favoured_by)

    def require_enabled(self) -> None:
        """Raise `Unavailable` after `"lsp": false`."""
        if not self.config.enabled:
            raise Unavailable(Code.UNSUPPORTED, "LSP disabled by configuration")

    def settings(self, server: str) -> ServerConfig:
        """What the configuration says about one server."""
        return self.config.servers[server]

    def servers_for(self, path: AbsPath, first_line: str | None = None, *, looked: bool = False) -> ServerChoice:
        """The servers of a file; `expected` is the one that should serve it and is not available.

        `looked`: the caller goes through many files, and has called `look_again` itself.
        """
        if not self.config.enabled:
            return ServerChoice(())
        if not looked:
            self.look_again()
        key = path, None if first_line is None else first_line[:MAX_FIRST_LINE]
        kept = self._whereabouts.choices.get(key)
        if kept is not None and kept[1].holds(self._seen if looked else None):
            return kept[0]
        witness = Witness(self._tree)
        choice = choose(
            self._resolver.candidates(path, self._scope, first_line, witness), self._is_available, self._is_withheld
        )
        evidence = witness.evidence()
        if evidence is not None:
            self._whereabouts.choices.put(key, (choice, evidence))
        return choice

    def candidates(self, path: AbsPath) -> tuple[Candidate, ...]:
        """Every server for a file, installed or not; best first."""
        return self._resolver.candidates(path, self._scope) if self.config.enabled else ()

    def located(self, candidate: Candidate) -> ProgramLocation:
        """Where the program of a server is."""
        self.look_again()
        return self._located(candidate.spec, candidate.root)

    def admitted(self, candidate: Candidate) -> Allowed | Withheld:
        """Whether a server may run here, and in which form."""
        self.look_again()
        return self._admitted(candidate.spec, candidate.root)

    def program(self, name: str) -> AbsPath | None:
        """A program of the user's own, never one of the project's."""
        located = locate(name, self.root, replace(self._lookup, trusted=False))
        return located.path if isinstance(located, ProgramFound) else None

    def serves(self, path: AbsPath) -> bool:
        return self.config.enabled and self._resolver.serves(path)

    @cached_property
    def approved_files(self) -> tuple[AbsPath, ...]:
        """The files of the workspace whose content decides whether an approval holds."""
        return tuple(AbsPath(os.path.join(self.root, name)) for name in approved_files(self.config.trust))

    def holds(self, root: AbsPath) -> bool:
        """Whether a server with this root belongs to the workspace."""
        return is_inside(root, self.root) or is_inside(root, self.boundary.worktree)

    def install_hint(self, spec: ServerSpec) -> str | None:
        return install_command(spec, self._is_installed)

    def why_unavailable(self, candidate: Candidate) -> Unavailable:
        """Why a server is not available, and what to do about it."""
        spec, scene = candidate.spec, Scene(server=candidate.spec.id, root=candidate.root)
        allowed = self._admitted(spec, candidate.root)
        if not spec.command and self.settings(spec.id).withheld:
            allowed = Withheld(f"the project's own command of {spec.name} needs trust")
        located = self._located(spec, candidate.root)
        trust = f"pilotfish trust {self.root}"
        if spec.command and isinstance(located, ProgramMissing):
            # Without the program, trust would not help.
            hint = f"It also needs trust: {trust}" if isinstance(allowed, Withheld) else None
            message = unavailable(spec, located, self.install_hint(spec))
            return Unavailable(Code.SERVER_MISSING, message, hint=hint, scene=scene)
        if isinstance(allowed, Withheld):
            hint = f"Review what it would run, then allow it: {trust}"
            if spec.shown is not None and spec.id in bundles():
                hint = f"Install a version that was tested: pilotfish install {spec.id}. Or allow this one: {trust}"
            return Unavailable(Code.UNTRUSTED, allowed.reason, hint=hint, scene=scene)
        if isinstance(located, ProgramFound):
            return Unavailable(Code.SERVER_MISSING, f"{spec.name} is installed, but was not chosen", scene=scene)
        message = unavailable(spec, located, self.install_hint(spec))
        code = Code.UNTRUSTED if isinstance(located, Gated) else Code.SERVER_MISSING
        return Unavailable(code, message, scene=scene)

    def shortcoming(self, server: str) -> Unavailable | None:
        """Why a server could not be started for the workspace itself; None when it could."""
        self.look_again()
        candidate = Candidate(self.specs[server], self.root, "")
        return None if self._is_available(candidate) else self.why_unavailable(candidate)

    def shortcomings(self) -> Mapping[str, str]:
        """Why servers could not be started for the workspace itself, by id; those that could are left out."""
        self.look_again()
        if self._whereabouts.shortcomings is None:
            candidates = [Candidate(spec, self.root, "") for spec in self.specs.values() if not spec.disabled]
            self._whereabouts.shortcomings = {
                candidate.spec.id: self.why_unavailable(candidate).message
                for candidate in candidates
                if not self._is_available(candidate)
            }
        return self._whereabouts.shortcomings

    def recipe(self, candidate: Candidate, restore: Restore) -> Recipe:
        return Recipe(
            self._key(candidate.spec, candidate.root),
            lambda: self._options(candidate),
            restore,
            self._whereabouts.fingerprint,
            lambda: self._sidecar(candidate),
        )

    def _key(self, spec: ServerSpec, root: AbsPath) -> Key:
        python = self._pythons.fingerprint(root) if self._asks_for_python(spec) else ""
        place = (spec.id, root, python)
        if place not in self._whereabouts.keys:
            located = self._located(spec, root)
            program = f"{located.path} {located.identity}" if isinstance(located, ProgramFound) else ""
            helpers = " ".join(self.program(name) or "" for name in spec.helpers)
            config = f"{self._rules(spec.id)} {program} {python} {helpers}"
            self._whereabouts.keys[place] = Key(spec.id, root, config, self._surroundings())
        return self._whereabouts.keys[place]

    def would_start(self, key: Key) -> bool:
        """Whether a server that runs is configured as it would be now."""
        spec = self.specs.get(key.server)
        if spec is None or spec.disabled or not self.config.enabled or not self.holds(key.root):
            return False
        return key.config.startswith(f"{self._rules(spec.id)} ")

    def _rules(self, server: str) -> str:
        """What the configuration says about a server."""
        return f"{self._configured(server)} {self.config.trusted} {self.config.security.remote_schemas}"

    def _surroundings(self) -> str:
        """Differs for two clients whose environments would make two different servers of one program."""
        if not self._whereabouts.surroundings:
            toolchains = (shutil.which(name, path=os.pathsep.join(self._lookup.path)) or "" for name in TOOLCHAINS)
            self._whereabouts.surroundings = fingerprint(self._child_environment({}), toolchains)
        return self._whereabouts.surroundings

    def _child_environment(self, added: Mapping[str, str]) -> dict[str, str]:
        untrusted = () if self.config.trusted else self._lookup.territory
        environment = child_environment(self._environment, added, self._lookup.path, untrusted=untrusted)
        # No server starts without one. A home inside the workspace may be the project's: this one is the system's word.
        environment.setdefault("HOME", own_home())
        return environment

    def _configured(self, server: str) -> str:
        if server not in self._fingerprints:
            self._fingerprints[server] = self.settings(server).fingerprint
        return self._fingerprints[server]

    def _options(self, candidate: Candidate) -> SessionOptions:
        spec, root = candidate.spec, candidate.root
        located = self._located(spec, root)
        allowed = self._admitted(spec, root)
        if isinstance(allowed, Withheld) or not isinstance(located, ProgramFound):
            raise self.why_unavailable(candidate)
        self._require_approved(spec, root)
        ready = self._filled(allowed, root, located)
        environment = self._child_environment({**self._for_servers, **ready.env})
        return SessionOptions(
            server=spec.id,
            root=root,
            launch=Launch(
                (located.path, *ready.command[1:]),
                root,
                {**environment, **self._temporary(spec, root)},
                spec.id,
                self._confinement(spec),
            ),
            initialization=dict(ready.initialization) or None,
            settings=dict(ready.settings),
            initialize_seconds=self.settings(spec.id).timing.initialize_timeout_ms / 1000,
            request_seconds=self.settings(spec.id).timing.request_timeout_ms / 1000,
            did_change_extra=spec.freshness.did_change_extra,
            watches=own_files(spec),
            watches_outside=sources_in(outside_folders(spec.inputs, root), spec),
            saves_after_changes=spec.freshness.dependents_after_save,
            cancels_on_change=spec.freshness.cancels_on_change,
            on_demand=spec.freshness.on_demand,
            death_signs=spec.death_signs,
            announcements=spec.announcements,
            undeclared=UNDECLARED_PULL if spec.freshness.pull is PullSupport.UNDECLARED else {},
            inputs=self._inputs(spec, root),
        )

    def _inputs(self, spec: ServerSpec, root: AbsPath) -> InputEvidence | None:
        """What the server is about to read besides sources, as it is now."""
        is_python = spec.inputs.environment is Environment.PYTHON
        environment = self._pythons.of(root) if is_python else None
        packages = () if environment is None else environment.packages
        return input_evidence(spec.inputs, root, self.root, packages, spec.files.extensions)

    def _require_approved(self, spec: ServerSpec, root: AbsPath) -> None:
        """Raise `Unavailable` when a file that an approved entry names is not the one that was approved (T49)."""
        approval = self.config.trust.approval if isinstance(self.config.trust, Trusted) else None
        if approval is None or spec.id not in approval.entries:
            return
        if changed := changed_files(approval, spec.id, self.root, root):
            names = ", ".join(map(printable, changed[:MAX_NAMED]))
            message = f"{spec.name} is not started: {names} is not what was approved"
            hint = f"Review what it would run, then approve it again: pilotfish trust {self.root}"
            raise Unavailable(Code.UNTRUSTED, message, hint=hint, scene=Scene(server=spec.id, root=root))

    def _sidecar(self, candidate: Candidate) -> Launch | Failure | None:
        """The program that runs beside the server. The configuration decides whether `watch` may be set (TRUST-1)."""
        spec, root, scene = candidate.spec, candidate.root, Scene(server=candidate.spec.id, root=candidate.root)
        server = self._located(spec, root)
        allowed = self._admitted(spec, root)
        if isinstance(allowed, Withheld) or not isinstance(server, ProgramFound):
            return None
        command = sidecar(self._filled(allowed, root, server))
        if command is None:
            return None
        if spec.watch is None and self.config.withholds:
            # It comes from options that an untrusted project may set.
            return Unavailable(Code.UNTRUSTED, f"{command[0]} does not run: the workspace is not trusted", scene=scene)
        try:
            self._require_approved(spec, root)
        except Unavailable as unapproved:
            return unapproved
        program = locate(command[0], root, self._lookup)
        if not isinstance(program, ProgramFound):
            return Unavailable(Code.SERVER_MISSING, f"{command[0]} is not installed, or may not run here", scene=scene)
        environment = self._child_environment(spec.env)
        # Not confined: it is the user's own command, and writes what the server reads.
        return Launch((program.path, *command[1:]), root, environment, f"{spec.id} beside {program.path}")

    def _filled(self, allowed: Allowed, root: AbsPath, located: ProgramFound) -> ServerSpec:
        def fill(name: str) -> Json:
            kind, _, rest = name.partition(":")
            if kind == "npm":
                return find_npm_file(rest, root, self._lookup, located.path)
            if kind == "program":
                return self.program(rest) or rest
            if name in PYTHON_PLACEHOLDERS:
                return self._python_of(name, root)
            known = {
                "root": root,
                "rootUri": uri_of(root),
                "rootName": os.path.basename(root),
                "state": self._state_of(allowed.spec, root),
                "pid": str(os.getpid()),
            }
            return known.get(name)

        try:
            return filled(allowed.spec, fill)
        except Unfilled as unfilled:
            message = f"{allowed.spec.name} needs {unfilled}, which is not installed"
            raise Unavailable(Code.SERVER_MISSING, message, scene=Scene(server=allowed.spec.id, root=root)) from None

    def _asks_for_python(self, spec: ServerSpec) -> bool:
        if spec.id not in self._python_servers:
            self._python_servers[spec.id] = not placeholders(spec).isdisjoint(PYTHON_PLACEHOLDERS)
        return self._python_servers[spec.id]

    def _python_of(self, placeholder: str, root: AbsPath) -> Json:
        environment = self._pythons.of(root)
        match placeholder:
            case "pythonEnvironment":
                return self._pythons.interpreter(root) or self._python()
            case "pythonPackages":
                return [] if environment is None else list(environment.packages)
            case "pythonPrefix":
                return None if environment is None else environment.prefix
            case _:
                return self._python()

    def _python(self) -> str:
        """A Python interpreter outside the project."""
        return self.program("python3") or sys.executable

    def _state_of(self, spec: ServerSpec, root: AbsPath) -> str:
        """A private folder for servers with an index of their own; created on first use."""
        name = f"{os.path.basename(root)}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}"
        folder = os.path.join(self._places.state, "servers", spec.id, name)
        try:
            make_private_folders(folder)
        except OSError as error:
            message = f"{spec.name} needs the folder {folder}, which cannot be created: {error.strerror}"
            hint = "Fix its permissions, or set PILOTFISH_HOME to another folder."
            scene = Scene(server=spec.id, root=root)
            raise Unavailable(Code.SERVER_START_FAILED, message, hint=hint, scene=scene) from None
        return folder

    def _is_available(self, candidate: Candidate) -> bool:
        if isinstance(self._admitted(candidate.spec, candidate.root), Withheld):
            return False
        return isinstance(self._located(candidate.spec, candidate.root), ProgramFound)

    def _is_withheld(self, candidate: Candidate) -> bool:
        """Whether it is there and only trust is missing."""
        located = self._located(candidate.spec, candidate.root)
        return isinstance(located, Gated) or (
            isinstance(located, ProgramFound) and isinstance(self._admitted(candidate.spec, candidate.root), Withheld)
        )

    def _admitted(self, spec: ServerSpec, root: AbsPath) -> Allowed | Withheld:
        if self.config.trusted:
            return Allowed(spec)
        key = (spec.id, root)
        if key not in self._whereabouts.admitted:
            located = self._located(spec, root)
            version = None
            if spec.shown is not None and isinstance(located, ProgramFound):
                version = installed_version(spec, located)
            verdict = admitted(spec, trusted=False, version=version)
            if spec.connects and ConfigSource.GLOBAL not in self._sources_of(spec):
                why = f"{spec.name} connects to the database that the project names, and you have not configured it"
                verdict = Withheld(why)
            self._whereabouts.admitted[key] = verdict
        return self._whereabouts.admitted[key]

    def _temporary(self, spec: ServerSpec, root: AbsPath) -> Mapping[str, str]:
        """A place for temporary files where a confined server may create some: not the folder that a root lies in."""
        usual = real_path(self._environment.get("TMPDIR") or "/tmp")  # noqa: S108 - only compared
        beside = not any(is_inside(one, usual) or is_inside(usual, one) for one in self._lookup.territory)
        if self.config.trusted or beside:
            return {}
        try:
            return {"TMPDIR": self._state_of(spec, root)}
        except Unavailable:
            # Servers that only read need none; whoever does says so itself.
            return {}

    def _confinement(self, spec: ServerSpec) -> Confinement | None:
        """What the system shall hold a server to that runs although nobody trusts the workspace."""
        if self.config.trusted:
            return None
        fetches = self.config.security.remote_schemas and spec.local_schemas is not None
        network = spec.shown is None or spec.shown.network or fetches
        return Confinement(self._lookup.territory, (self._places.state,), network)

    def _sources_of(self, spec: ServerSpec) -> frozenset[ConfigSource]:
        return self.sources.get(spec.id, frozenset())

    def look_again(self) -> None:
        """Forget where programs are if a searched folder has changed, and how other folders looked."""
        self._seen = {}
        modified = tuple(map(_modified, self._searched))
        if modified != self._whereabouts.modified:
            fingerprint = " ".join(f"{folder}:{when}" for folder, when in zip(self._searched, modified, strict=True))
            self._whereabouts = _Whereabouts(modified, fingerprint)

    def _located(self, spec: ServerSpec, root: AbsPath) -> ProgramLocation:
        key = (spec.id, root)
        if key not in self._whereabouts.found:
            located = locate(spec.command[0], root, self._lookup) if spec.command else ProgramMissing(spec.id, ())
            self._whereabouts.found[key] = located
        return self._whereabouts.found[key]

    def _is_installed(self, program: str) -> bool:
        known = self._whereabouts.installed
        if program not in known:
            known[program] = isinstance(locate(program, self.root, self._lookup), ProgramFound)
        return known[program]


def _modified(folder: AbsPath) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
