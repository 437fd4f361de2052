"""How the servers of a workspace are started: with which program, variables, options and confinement."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.config.load import Config
from pilotfish.config.places import Places
from pilotfish.config.problems import printable
from pilotfish.config.trust import Trusted, changed_files, trust_advice
from pilotfish.errors import Code, Failure, Scene, Unavailable
from pilotfish.model import AbsPath
from pilotfish.paths import SYSTEM_FOLDERS, is_inside
from pilotfish.pool.entry import Recipe, Restore
from pilotfish.pool.plan import Key
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import Json
from pilotfish.servers.confining import OWN_FOLDERS, Computer, confinement, own_variables
from pilotfish.servers.environment import TOOLCHAINS, child_environment, fingerprint, lies_in
from pilotfish.servers.inputs import (
    MAX_FILES,
    InputEvidence,
    at_home,
    input_evidence,
    inputs_of,
    outside_folders,
    package_folders,
)
from pilotfish.servers.launch import Allowed, Unfilled, Withheld, filled, placeholders, sidecar
from pilotfish.servers.locate import PLUGINS, ProgramFound, find_npm_file, locate, own_plugins
from pilotfish.servers.python_environment import Project, PythonEnvironment, find_environment, stand_in
from pilotfish.servers.resolve import Candidate, own_files, sources_in
from pilotfish.servers.roots import is_marked
from pilotfish.servers.spec import Environment, ServerSpec
from pilotfish.servers.tree import DiskTree, Evidence, Witness
from pilotfish.servers.worktrees import Share, Started, share_of
from pilotfish.service.server_programs import ServerPrograms
from pilotfish.system import calls
from pilotfish.system.ownership import is_private, make_private_folders, own_home
from pilotfish.system.ports import Confinement, Launch
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import replace_file

MAX_NAMED = 5
"""Files that a refusal names."""

SHARING: Mapping[bool | str, Collection[str]] = {False: (), "auto": {"auto"}, True: {"auto", "asked"}}
"""Which servers serve several worktrees, by what the configuration wants. `auto`: ten worktrees were shown to need no
more than twice the memory and the time of one (`bench/worktrees.py`)."""

PYTHON_PLACEHOLDERS = frozenset({"python", "pythonEnvironment", "pythonPackages", "pythonPrefix"})
"""Of `servers.launch`: what differs with the Python environment of a root."""


class PythonEnvironments:
    """Those of a workspace's roots: found as data, kept while the files they rest on stay as they are."""

    def __init__(self, workspace: AbsPath, variables: Mapping[str, str], folder: str) -> None:
        self._workspace = workspace
        self._variables = variables
        self._folder = folder
        """Private, outside of every project: where the stand-in interpreters are."""
        self._known: dict[AbsPath, tuple[PythonEnvironment | None, Evidence]] = {}

    def of(self, root: AbsPath) -> PythonEnvironment | None:
        known = self._known.pop(root, None)
        if known is None or not known[1].holds():
            witness = Witness(DiskTree())
            environment = find_environment(Project(root, self._workspace, self._variables), witness)
            evidence = witness.evidence()
            if evidence is None:
                # Something changed just now: look again next time.
                return environment
            known = environment, evidence
        self._known[root] = known
        return known[0]

    def interpreter(self, root: AbsPath) -> str | None:
        """A program of ours that answers as the environment's interpreter would; None without an environment."""
        environment = self.of(root)
        if environment is None:
            return None
        script = stand_in(environment)
        path = os.path.join(self._folder, f"python-{_digest(script)}")
        if not _is_ours(path, script):
            make_private_folders(self._folder)
            replace_file(path, script.encode(errors="surrogateescape"), 0o700)
        return path

    def fingerprint(self, root: AbsPath) -> str:
        """Differs when a server would have to be told of another environment."""
        environment = self.of(root)
        return "" if environment is None else _digest(stand_in(environment))


def _is_ours(path: str, script: str) -> bool:
    """Whether the file is there, is this user's alone, and says just that: servers run it."""

    def without_links(path: str, flags: int) -> int:
        return os.open(path, flags | calls.O_NOFOLLOW | calls.O_NONBLOCK)

    try:
        with open(path, encoding="utf-8", errors="surrogateescape", opener=without_links) as file:
            return is_private(os.fstat(file.fileno())) and file.read(len(script) + 1) == script
    except OSError:
        return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


class Launches:
    def __init__(
        self,
        programs: ServerPrograms,
        config: Config,
        places: Places,
        environment: Mapping[str, str],
        for_servers: Mapping[str, str],
    ) -> None:
        """`for_servers`: variables that a server gets unless it is configured to have others."""
        self._programs = programs
        self._config = config
        self._places = places
        self._environment = environment
        self._for_servers = for_servers
        self.pythons = PythonEnvironments(config.root, environment, os.path.join(places.state, "pythons"))
        self._passing: TemporaryDirectory[str] | None = None
        """Removed with this process."""

    def recipe(self, candidate: Candidate, restore: Restore) -> Recipe:
        return Recipe(
            self._key(candidate.spec, candidate.root),
            lambda: self._options(candidate),
            restore,
            self._programs.known.fingerprint,
            lambda: self._sidecar(candidate),
        )

    def _key(self, spec: ServerSpec, root: AbsPath) -> Key:
        python = self.pythons.fingerprint(root) if not placeholders(spec).isdisjoint(PYTHON_PLACEHOLDERS) else ""
        guests = " ".join(self._guests(spec, root).values())
        place = (spec.id, root, f"{python} {guests}")
        if place not in self._programs.known.keys:
            located = self._programs.located(spec, root)
            program = f"{located.path} {located.identity}" if isinstance(located, ProgramFound) else ""
            helpers = " ".join(self._programs.program(name) or "" for name in spec.helpers)
            config = f"{self.rules(spec.id, root)} {program} {python} {helpers} {guests}"
            self._programs.known.keys[place] = Key(spec.id, root, config, self._surroundings())
        return self._programs.known.keys[place]

    def _guests(self, spec: ServerSpec, root: AbsPath) -> Mapping[str, str]:
        """Where the programs are of servers whose files this one serves too, as far as they may run and have files."""
        found = dict[str, str]()
        for guest in spec.guests:
            located, allowed = self._programs.located(guest, root), self._programs.admitted(guest, root)
            if guest.relay is None or not isinstance(located, ProgramFound) or isinstance(allowed, Withheld):
                continue
            if is_marked(root, self._config.root, guest.relay.project, DiskTree()):
                found[guest.id] = os.path.dirname(real_path(located.path))
        return found

    def rules(self, server: str, root: AbsPath) -> str:
        """What the configuration says about a server."""
        own = self._config.servers[server].fingerprint
        return f"{own} {self._programs.trusts(root)} {self._config.security.remote_schemas}"

    def _surroundings(self) -> str:
        """Differs for two clients whose environments would make two different servers of one program."""
        if not self._programs.known.surroundings:
            toolchains = (
                shutil.which(name, path=os.pathsep.join(self._programs.lookup.path)) or "" for name in TOOLCHAINS
            )
            self._programs.known.surroundings = fingerprint(self._child_environment({}, self._config.root), toolchains)
        return self._programs.known.surroundings

    def _child_environment(self, added: Mapping[str, str], root: AbsPath) -> dict[str, str]:
        lookup = self._programs.lookup_of(root)
        untrusted = () if lookup.trusted else lookup.territory
        environment = child_environment(self._environment, added, lookup.path, untrusted=untrusted)
        # No server starts without one. A home inside the workspace may be the project's: this one is the system's word.
        environment.setdefault("HOME", own_home())
        return environment

    def _options(self, candidate: Candidate) -> SessionOptions:
        spec, root = candidate.spec, candidate.root
        located, allowed = self._programs.located(spec, root), self._programs.admitted(spec, root)
        if isinstance(allowed, Withheld) or not isinstance(located, ProgramFound):
            raise self._programs.why_unavailable(candidate)
        self._require_approved(spec, root)
        ready = self._filled(allowed, root, located)
        plain = environment = self._child_environment({**self._for_servers, **ready.env}, root)
        held, folder = None, root
        if not self._programs.trusts(root):
            own = AbsPath(self._state_of(spec, root))
            environment = own_variables(plain, own)
            folder = own if spec.shown is not None and spec.shown.own_folder else root
            held = self._confinement(spec, root, located.path, environment)
        outside, python = outside_folders(spec.inputs, root), tuple[AbsPath, ...]()
        if spec.inputs.environment is Environment.PYTHON and (found := self.pythons.of(root)) is not None:
            python = found.packages
        launch = Launch((located.path, *ready.command[1:]), folder, environment, spec.id, held)
        inputs = self._inputs(spec, root, python, is_cut=len(outside) > MAX_FILES)
        return SessionOptions(
            server=spec.id,
            root=root,
            share=self._share(ready, root, replace(launch, environment=plain), inputs, python),
            launch=launch,
            initialization=dict(ready.initialization) or None,
            settings=dict(ready.settings),
            initialize_seconds=self._config.servers[spec.id].timing.initialize_timeout_ms / 1000,
            request_seconds=self._config.servers[spec.id].timing.request_timeout_ms / 1000,
            freshness=spec.freshness,
            watches=own_files(spec),
            watches_outside=sources_in(outside[:MAX_FILES], spec),
            watches_packages=sources_in(self._watched_packages(spec, root, python), spec),
            death_signs=spec.death_signs,
            announcements=spec.announcements,
            relay=spec.relay,
            inputs=inputs,
        )

    def _share(
        self, spec: ServerSpec, root: AbsPath, launch: Launch, inputs: InputEvidence | None, python: Iterable[AbsPath]
    ) -> Share | None:
        if spec.shares_worktrees not in SHARING[self._config.pool.share_worktrees]:
            return None
        packages = package_folders(spec.inputs, root, self._config.root, python)
        said = [spec.initialization, spec.settings]
        own = root if self._programs.trusts(root) else AbsPath(self._state_of(spec, root))
        return share_of(Started(spec, root, launch, said, inputs, own, packages), self._places.state)

    def _inputs(
        self, spec: ServerSpec, root: AbsPath, python: Iterable[AbsPath], *, is_cut: bool
    ) -> InputEvidence | None:
        """What the server is about to read besides sources, as it is now."""
        sources = (*spec.files.extensions, *spec.reads)
        inputs = at_home(inputs_of(spec), self._environment, self._environment.get("HOME") or own_home())
        found = input_evidence(inputs, root, self._config.root, python, sources)
        if found is not None and is_cut:
            found.is_cut = True
        return found

    def _watched_packages(self, spec: ServerSpec, root: AbsPath, python: Iterable[AbsPath]) -> Iterator[AbsPath]:
        """Those whose inside is watched: what belongs to the system is replaced as a whole."""
        for folder in package_folders(spec.inputs, root, self._config.root, python):
            if os.path.isdir(folder) and not any(is_inside(folder, system) for system in SYSTEM_FOLDERS):
                yield folder

    def _require_approved(self, spec: ServerSpec, root: AbsPath) -> None:
        """Raise `Unavailable` when a file that an approved entry names is not the one that was approved (T49)."""
        approval = self._config.trust.approval if isinstance(self._config.trust, Trusted) else None
        if approval is None or spec.id not in approval.entries:
            return
        if changed := changed_files(approval, spec.id, self._config.root, root):
            names = ", ".join(map(printable, changed[:MAX_NAMED]))
            message = f"{spec.name} is not started: {names} is not what was approved"
            raise Unavailable(
                Code.UNTRUSTED, message, hint=trust_advice(self._config.root), scene=Scene(server=spec.id, root=root)
            )

    def _sidecar(self, candidate: Candidate) -> Launch | Failure | None:
        """The program that runs beside the server. The configuration decides whether `watch` may be set (TRUST-1)."""
        spec, root, scene = candidate.spec, candidate.root, Scene(server=candidate.spec.id, root=candidate.root)
        server = self._programs.located(spec, root)
        allowed = self._programs.admitted(spec, root)
        if isinstance(allowed, Withheld) or not isinstance(server, ProgramFound):
            return None
        command = sidecar(self._filled(allowed, root, server))
        if command is None:
            return None
        if spec.watch is None and self._config.withholds:
            # It comes from options that an untrusted project may set.
            return Unavailable(Code.UNTRUSTED, f"{command[0]} does not run: the workspace is not trusted", scene=scene)
        try:
            self._require_approved(spec, root)
        except Unavailable as unapproved:
            return unapproved
        program = locate(command[0], root, self._programs.lookup_of(root))
        if not isinstance(program, ProgramFound):
            return Unavailable(Code.SERVER_MISSING, f"{command[0]} is not installed, or may not run here", scene=scene)
        environment = self._child_environment(spec.env, root)
        # Not confined: it is the user's own command, and writes what the server reads.
        return Launch((program.path, *command[1:]), root, environment, f"{spec.id} beside {program.path}")

    def _filled(self, allowed: Allowed, root: AbsPath, located: ProgramFound) -> ServerSpec:
        environment = self.pythons.of(root)
        # An interpreter outside the project.
        python = self._programs.program("python3") or sys.executable
        known: dict[str, Json] = {
            "root": root,
            "rootUri": uri_of(root),
            "rootName": os.path.basename(root),
            "pid": str(os.getpid()),
            "python": python,
            "pythonPackages": [] if environment is None else list(environment.packages),
            "pythonPrefix": None if environment is None else environment.prefix,
        }

        def fill(name: str) -> Json:
            kind, _, rest = name.partition(":")
            match kind:
                case "npm":
                    return find_npm_file(rest, root, self._programs.lookup_of(root), located.path)
                case "program":
                    return self._programs.program(rest) or rest
                case "plugins":
                    return own_plugins(rest, self._programs.lookup)
                case "preload":
                    return f"--require {json.dumps(os.path.join(PLUGINS, rest), ensure_ascii=False)}"
                case "guest":
                    return self._guests(allowed.spec, root).get(rest)
                case "state":
                    return self._state_of(allowed.spec, root)
                case "pythonEnvironment":
                    return self.pythons.interpreter(root) or python
                case _:
                    return known.get(name)

        try:
            return filled(allowed.spec, fill)
        except Unfilled as unfilled:
            message = f"{allowed.spec.name} needs {unfilled}, which is not installed"
            raise Unavailable(Code.SERVER_MISSING, message, scene=Scene(server=allowed.spec.id, root=root)) from None

    def _state_of(self, spec: ServerSpec, root: AbsPath) -> str:
        """A private folder for what a server keeps; created on first use. A passing one where we may keep nothing."""
        name = f"{os.path.basename(root)}-{_digest(root)}"
        try:
            return _with_own_folders(os.path.join(self._places.state, "servers", spec.id, name))
        except OSError as error:
            kept = error
        try:
            if self._passing is None:
                self._passing = TemporaryDirectory(prefix="pilotfish-")
            return _with_own_folders(os.path.join(self._passing.name, spec.id, name))
        except OSError:
            message = f"{spec.name} needs a folder in {self._places.state}, which cannot be created: {kept.strerror}"
            hint = "Fix its permissions, or set PILOTFISH_HOME to another folder."
            scene = Scene(server=spec.id, root=root)
            raise Unavailable(Code.SERVER_START_FAILED, message, hint=hint, scene=scene) from None

    def _confinement(
        self, spec: ServerSpec, root: AbsPath, program: AbsPath, environment: Mapping[str, str]
    ) -> Confinement:
        """What the system shall hold a server to that runs although nobody trusts the workspace."""
        lookup = self._programs.lookup_of(root)
        computer = Computer(self._places, lookup.territory, (*lookup.path, *lookup.beside))
        found = self.pythons.of(root)
        mine = found is not None and not lies_in(found.prefix, computer.territory)
        fetches = self._config.security.remote_schemas and spec.local_schemas is not None
        return confinement(
            spec,
            computer,
            environment,
            own=AbsPath(self._state_of(spec, root)),
            programs=(program, *filter(None, map(self._programs.program, (*TOOLCHAINS, *spec.helpers)))),
            packages=(found.prefix, *found.packages) if found is not None and mine else (),
            network=spec.shown is None or spec.shown.network or fetches,
        )


def _with_own_folders(folder: str) -> str:
    for own in ("", *OWN_FOLDERS.values()):
        make_private_folders(os.path.join(folder, own))
    return folder
