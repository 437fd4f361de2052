"""One workspace under one host: the configuration in force, and what it means for a file.

It answers which servers serve a file and how to start each; it starts nothing and keeps nothing of any server.
"""

import os
from collections.abc import Mapping
from functools import cached_property

from pilotfish.api.answers import error_of
from pilotfish.config.host_trust import inner_repository
from pilotfish.config.load import Loaded, ServerConfig
from pilotfish.config.merge import ConfigSource
from pilotfish.config.places import Places
from pilotfish.config.problems import Problem, ProblemGrade
from pilotfish.config.trust import approved_files
from pilotfish.errors import Code, Scene, Unavailable
from pilotfish.feedback.text import Form
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, is_inside
from pilotfish.policy.boundary import Boundary
from pilotfish.pool.plan import Key
from pilotfish.servers.catalogue import effective_servers
from pilotfish.servers.launch import Allowed, Withheld, without_remote_schemas
from pilotfish.servers.locate import ProgramLocation
from pilotfish.servers.resolve import MAX_FIRST_LINE, Candidate, Resolver, SearchScope, ServerChoice, choose
from pilotfish.servers.spec import Environment, Restricted, Role, ServerSpec
from pilotfish.servers.toolchains import (
    Shortfall,
    no_compile_database,
    no_node_packages,
    no_python_packages,
    old_go,
    old_go_server,
)
from pilotfish.servers.tree import DiskTree, Sight, Witness
from pilotfish.service.launches import Launches
from pilotfish.service.server_programs import ServerPrograms


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
        self._programs = ServerPrograms(self.config, boundary, places, environment, self.sources)
        self._launches = Launches(self._programs, self.config, places, environment, for_servers or {})
        self.recipe = self._launches.recipe
        self.install_hint, self.helper_hint = self._programs.install_hint, self._programs.helper_hint
        self.trusts, self.program = self._programs.trusts, self._programs.program
        self.why_unavailable = self._programs.why_unavailable
        self._tree = DiskTree()
        self._resolver = Resolver(self.specs.values(), self._tree)
        self._scope = SearchScope(boundary.workspace, boundary.worktree)
        self._seen: dict[str, Sight] = {}
        """How paths looked since the last `look_again`, for those who go through many files."""

    @property
    def root(self) -> AbsPath:
        return self.boundary.workspace

    @property
    def wait_seconds(self) -> float:
        """How long an edit waits for its verdicts."""
        return self.config.timing.diagnostics_wait_timeout_ms / 1000

    def form(self, *, plain: bool, max_bytes: int | None, stops: bool = False) -> Form:
        """How feedback is written here; `stops`: the host reports when its agent is about to stop."""
        feedback = self.config.feedback
        codes = {name: (*spec.undefined, *spec.imports.unresolved) for name, spec in self.specs.items()}
        calls = {name: spec.calls for name, spec in self.specs.items()}
        syntax = {name: spec.syntax for name, spec in self.specs.items()}
        told_last = stops and feedback.before_stop and feedback.after != "ask"
        return Form(self.root, plain, max_bytes, feedback.wording, told_last, codes, calls, syntax)

    def _scope_of(self, path: AbsPath) -> SearchScope:
        """A file of a repository that has no part in our trust is not served by a server of what is around it."""
        if self.config.trusted and self.config.withholds:
            inner = inner_repository(AbsPath(os.path.dirname(path)), self.root)
            return self._scope if inner is None else SearchScope(inner)
        return self._scope

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

    def restriction(self, spec: ServerSpec, root: AbsPath | None = None) -> Restricted | None:
        """What a server gives up because nobody trusts its root; None where it gives up nothing."""
        return None if self.trusts(root or self.root) else spec.restricted

    def ignored(self, server: str) -> str | None:
        """What the project's file says about a server and does not count for want of trust, in one clause."""
        withheld = self.settings(server).withheld
        return f"the project's own {', '.join(withheld)} do not count" if withheld else None

    def shortfall(self, spec: ServerSpec, path: AbsPath) -> Shortfall | None:
        """What files like this need besides the server, and is not here, as far as can be told."""
        folders = ancestors(os.path.dirname(path), self.root) or (self.root,)
        match spec.imports.environment:
            case Environment.PYTHON:
                found = self._launches.pythons.of(self._root_of(spec, path))
                return no_python_packages(folders, self._tree, self._programs.is_installed) if found is None else None
            case Environment.NODE:
                return no_node_packages(folders, self._tree)
            case Environment.COMPILE_DATABASE:
                return no_compile_database(folders, self._tree)
            case Environment.GO:
                downloads = self.restriction(spec, self._root_of(spec, path)) is None
                go, server = self.program("go"), self.program(spec.command[0])
                return old_go(folders, self._tree, go, downloads=downloads) or old_go_server(server, go)
            case None:
                return None

    def blockage(self, spec: ServerSpec, path: AbsPath) -> Unavailable | None:
        """What is not here, and without which the server can say nothing about a file."""
        found = self.shortfall(spec, path) if spec.imports.environment is Environment.GO else None
        if found is None or not found.blocks:
            return None
        return Unavailable(Code.SERVER_MISSING, found.what, hint=f"Next: {found.step}", scene=Scene(spec.id))

    def hidden_uses(self, *paths: AbsPath) -> tuple[str, ...]:
        """What is not here and keeps servers of these files from seeing all uses, in a sentence each."""
        servers = ((one.spec, path) for path in paths for one in self.servers_for(path).servers)
        found = (self.shortfall(spec, path) for spec, path in servers)
        return tuple(dict.fromkeys(str(one) for one in found if one is not None and one.hides_uses))

    def python_environment(self, root: AbsPath | None = None) -> AbsPath | None:
        """The folder of the Python environment whose packages count in a root, or in the workspace itself."""
        found = self._launches.pythons.of(root or self.root)
        return None if found is None else found.prefix

    def _root_of(self, spec: ServerSpec, path: AbsPath) -> AbsPath:
        chosen = self.servers_for(path).servers
        return next((one.root for one in chosen if one.spec.id == spec.id), self.root)

    @cached_property
    def _mains(self) -> list[ServerSpec]:
        """The main servers, those whose command is configured first, and then the preferred ones."""
        mains = [spec for spec in self.specs.values() if spec.rank.role is Role.MAIN and not spec.disabled]
        return sorted(mains, key=lambda spec: (not spec.rank.named, spec.rank.preference, spec.id))

    def replacements(self) -> tuple[str, ...]:
        """Which main servers run because the configuration names their command, and in place of which (REG-2)."""
        found: list[str] = []
        for spec in (spec for spec in self._mains if spec.rank.named):
            usual, own = (one for one in self._mains if not one.rank.named), set(spec.files.extensions)
            rivals = (rival for rival in usual if not own.isdisjoint(rival.files.extensions))
            replaced = next((rival for rival in rivals if self._is_here(rival)), None)
            if replaced is not None:
                why = f"the configuration names its command (lsp.{spec.id}.command)"
                found.append(f"{spec.id} runs in place of {replaced.id}: {why}")
        return tuple(found)

    def unused_entries(self) -> tuple[Problem, ...]:
        """Entries of the user and of the project that change nothing: for each of their files another server runs."""
        here = [spec for spec in self._mains if self._is_here(spec)]
        found: list[Problem] = []
        for spec in self._mains:
            origins = (one for path, one in self.config.origins.items() if path[:2] == ("lsp", spec.id))
            origin = next((one for one in origins if one.source in {ConfigSource.GLOBAL, ConfigSource.PROJECT}), None)
            favoured = (os.path.join(self.root, marker) for marker in spec.rank.favoured_by)
            if origin is None or spec.rank.named or any(map(self._tree.exists, favoured)):
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

    def _is_here(self, spec: ServerSpec) -> bool:
        return self._programs.is_available(Candidate(spec, self.root, ""))

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
        kept = self._programs.known.choices.get(key)
        if kept is not None and kept[1].holds(self._seen if looked else None):
            return kept[0]
        witness = Witness(self._tree)
        choice = choose(
            self._resolver.candidates(path, self._scope_of(path), first_line, witness),
            self._programs.is_available,
            self._programs.is_withheld,
        )
        evidence = witness.evidence()
        if evidence is not None:
            self._programs.known.choices.put(key, (choice, evidence))
        return choice

    def candidates(self, path: AbsPath) -> tuple[Candidate, ...]:
        """Every server for a file, installed or not; best first."""
        return self._resolver.candidates(path, self._scope_of(path)) if self.config.enabled else ()

    def located(self, candidate: Candidate) -> ProgramLocation:
        """Where the program of a server is."""
        self.look_again()
        return self._programs.located(candidate.spec, candidate.root)

    def admitted(self, candidate: Candidate) -> Allowed | Withheld:
        """Whether a server may run here, and in which form."""
        self.look_again()
        return self._programs.admitted(candidate.spec, candidate.root)

    def serves(self, path: AbsPath) -> bool:
        return self.config.enabled and self._resolver.serves(path)

    @cached_property
    def approved_files(self) -> tuple[AbsPath, ...]:
        """The files of the workspace whose content decides whether an approval holds."""
        return tuple(AbsPath(os.path.join(self.root, name)) for name in approved_files(self.config.trust))

    def holds(self, root: AbsPath) -> bool:
        """Whether a server with this root belongs to the workspace."""
        return is_inside(root, self.root) or is_inside(root, self.boundary.worktree)

    def shortcoming(self, server: str) -> Unavailable | None:
        """Why a server could not be started for the workspace itself; None when it could."""
        self.look_again()
        candidate = Candidate(self.specs[server], self.root, "")
        return None if self._programs.is_available(candidate) else self.why_unavailable(candidate)

    def shortcomings(self) -> Mapping[str, str]:
        """Why servers could not be started for the workspace itself, by id; those that could are left out."""
        self.look_again()
        if self._programs.known.shortcomings is None:
            candidates = [Candidate(spec, self.root, "") for spec in self.specs.values() if not spec.disabled]
            self._programs.known.shortcomings = {
                candidate.spec.id: error_of(self.why_unavailable(candidate)).message
                for candidate in candidates
                if not self._programs.is_available(candidate)
            }
        return self._programs.known.shortcomings

    def would_start(self, key: Key) -> bool:
        """Whether a server that runs is configured as it would be now."""
        spec = self.specs.get(key.server)
        if spec is None or spec.disabled or not self.config.enabled or not self.holds(key.root):
            return False
        return key.config.startswith(f"{self._launches.rules(spec.id, key.root)} ")

    def look_again(self) -> None:
        """Forget where programs are if a searched folder has changed, and how other folders looked."""
        self._seen = {}
        self._programs.look_again()
