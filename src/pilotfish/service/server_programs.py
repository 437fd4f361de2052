"""Where the programs of a workspace's servers are, and which of them may run there."""

import os
from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.config.host_trust import inner_repository, is_host_trusted
from pilotfish.config.load import Config
from pilotfish.config.merge import ConfigSource
from pilotfish.config.places import Places
from pilotfish.config.trust import Trusted, trust_advice
from pilotfish.errors import Code, Scene, Unavailable
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.policy.boundary import Boundary
from pilotfish.pool.plan import Key
from pilotfish.servers import launch
from pilotfish.servers.environment import beside_us, foreign_path, search_path
from pilotfish.servers.install import helper_command, install_command, unavailable
from pilotfish.servers.launch import Allowed, Withheld
from pilotfish.servers.locate import Gated, Lookup, ProgramFound, ProgramLocation, ProgramMissing, locate, tool_folders
from pilotfish.servers.resolve import Candidate, ServerChoice
from pilotfish.servers.roots import Search, fits_npm
from pilotfish.servers.spec import ServerSpec
from pilotfish.servers.toolchains import is_hollow, with_toolchain
from pilotfish.servers.tree import DiskTree, Evidence, looked_at
from pilotfish.servers.versions import installed_version
from pilotfish.service.recent import Recent
from pilotfish.system.confinement import confinable
from pilotfish.system.windows import program_suffixes

MAX_CHOICES = 1_000
"""Files whose servers are kept, about 2 KB each; for others the folders are searched again."""


class KnownPrograms(Struct):
    """Where each program is. Valid while the searched folders have not changed."""

    searched: Evidence
    fingerprint: str
    """The same as one string."""
    found: dict[tuple[str, AbsPath], ProgramLocation] = {}
    admitted: dict[tuple[str, AbsPath], Allowed | Withheld] = {}
    installed: dict[str, bool] = {}
    """Whether each package manager is installed."""
    surroundings: str = ""
    """The result of `Launches._surroundings`, which searches for every toolchain."""
    shortcomings: Mapping[str, str] | None = None
    """The result of `Workspace.shortcomings`, which searches for every program of the catalogue."""
    keys: dict[tuple[str, AbsPath, str], Key] = {}
    choices: Recent[tuple[AbsPath, str | None], tuple[ServerChoice, Evidence]] = field(
        default_factory=lambda: Recent(MAX_CHOICES)
    )
    """The servers of each file, and the evidence for them."""


def _known_programs(searched: tuple[AbsPath, ...]) -> KnownPrograms:
    known = looked_at(searched)
    return KnownPrograms(known, str(known))


class ServerPrograms:
    def __init__(
        self,
        config: Config,
        boundary: Boundary,
        places: Places,
        environment: Mapping[str, str],
        sources: Mapping[str, frozenset[ConfigSource]],
    ) -> None:
        """`sources`: what configures each server."""
        self._config = config
        self._boundary = boundary
        self._places = places
        self._environment = environment
        self._sources = sources
        self._nested: dict[AbsPath, bool] = {}
        """Whether a host trusts a repository inside the workspace."""
        self.lookup = self._places_to_look(trusted=config.trusted)
        self._searched = (*self.lookup.tools, *self.lookup.path, *self.lookup.beside)
        """Folders that change when a program is added or removed."""
        self.known = _known_programs(self._searched)

    def _places_to_look(self, *, trusted: bool) -> Lookup:
        territory = tuple(dict.fromkeys((self._boundary.workspace, self._boundary.worktree)))
        path = search_path(self._environment.get("PATH", os.defpath), territory, trusted=trusted)
        return Lookup(
            territory=territory,
            trusted=trusted,
            path=path,
            tools=tool_folders(self._places.state),
            beside=beside_us(path, territory, trusted=trusted),
            foreign=() if trusted else foreign_path(self._environment.get("PATH", "")),
            suffixes=program_suffixes(self._environment),
        )

    def trusts(self, root: AbsPath) -> bool:
        """Whether programs of a root may run. Trust given in a host ends at the next repository inside (T57)."""
        if not (isinstance(self._config.trust, Trusted) and self._config.trust.is_adopted):
            return self._config.trusted
        inner = inner_repository(root, self._boundary.workspace)
        if inner is None:
            return True
        if inner not in self._nested:
            self._nested[inner] = is_host_trusted(inner, self._places)
        return self._nested[inner]

    def lookup_of(self, root: AbsPath) -> Lookup:
        return self.lookup if self.trusts(root) == self.lookup.trusted else self._outside

    @cached_property
    def _outside(self) -> Lookup:
        """For roots that are not trusted, in a workspace that is."""
        return self._places_to_look(trusted=False)

    def look_again(self) -> None:
        """Forget where programs are if a searched folder has changed."""
        if not self.known.searched.holds():
            self.known = _known_programs(self._searched)

    def located(self, spec: ServerSpec, root: AbsPath) -> ProgramLocation:
        key = (spec.id, root)
        if key not in self.known.found:
            lookup = self.lookup_of(root)
            located = locate(spec.command[0], root, lookup) if spec.command else ProgramMissing(spec.id, ())
            if isinstance(located, ProgramFound) and is_hollow(spec, located.path, self._environment):
                located = ProgramMissing(spec.command[0], (AbsPath(os.path.dirname(located.path)),))
            self.known.found[key] = located
        return self.known.found[key]

    def admitted(self, spec: ServerSpec, root: AbsPath) -> Allowed | Withheld:
        if self.trusts(root):
            return Allowed(spec)
        needed = None if spec.restricted is None else spec.restricted.requires
        if needed is not None and not fits_npm(needed, Search(DiskTree(), ancestors(root, self._boundary.workspace))):
            # Not kept: packages are installed meanwhile.
            return Withheld(f"{spec.name} runs code of the project, which is not trusted")
        key = (spec.id, root)
        if key not in self.known.admitted:
            located = self.located(spec, root)
            version = None
            if spec.shown is not None and isinstance(located, ProgramFound):
                version = installed_version(spec, located)
            verdict = launch.admitted(spec, trusted=False, version=version, held=confinable())
            if spec.connects and ConfigSource.GLOBAL not in self._sources.get(spec.id, frozenset()):
                why = f"{spec.name} connects to the database that the project names, and you have not configured it"
                verdict = Withheld(why)
            self.known.admitted[key] = verdict
        return self.known.admitted[key]

    def is_available(self, candidate: Candidate) -> bool:
        if isinstance(self.admitted(candidate.spec, candidate.root), Withheld):
            return False
        return isinstance(self.located(candidate.spec, candidate.root), ProgramFound)

    def is_withheld(self, candidate: Candidate) -> bool:
        """Whether it is there and only trust is missing."""
        located = self.located(candidate.spec, candidate.root)
        return isinstance(located, Gated) or (
            isinstance(located, ProgramFound) and isinstance(self.admitted(candidate.spec, candidate.root), Withheld)
        )

    def program(self, name: str) -> AbsPath | None:
        """A program of the user's own, never one of the project's."""
        located = locate(name, self._boundary.workspace, replace(self.lookup, trusted=False))
        return located.path if isinstance(located, ProgramFound) else None

    def is_installed(self, program: str) -> bool:
        known = self.known.installed
        if program not in known:
            known[program] = isinstance(locate(program, self._boundary.workspace, self.lookup), ProgramFound)
        return known[program]

    def install_hint(self, spec: ServerSpec) -> str | None:
        return with_toolchain(install_command(spec, self.is_installed), self._environment)

    def helper_hint(self, program: str) -> str | None:
        return helper_command(program, self.is_installed)

    def why_unavailable(self, candidate: Candidate) -> Unavailable:
        """Why a server is not available, and what to do about it."""
        spec, scene = candidate.spec, Scene(server=candidate.spec.id, root=candidate.root)
        allowed = self.admitted(spec, candidate.root)
        if not spec.command and self._config.servers[spec.id].withheld:
            allowed = Withheld(f"the project's own command of {spec.name} needs trust")
        located = self.located(spec, candidate.root)
        trust = trust_advice(self._boundary.workspace)
        if spec.command and isinstance(located, ProgramMissing):
            # Without the program, trust would not help.
            hint = f"It also needs trust. {trust}" if isinstance(allowed, Withheld) else None
            message = unavailable(spec, located, self.install_hint(spec))
            return Unavailable(Code.SERVER_MISSING, message, hint=hint, scene=scene)
        hint = trust
        if launch.may_other_start(spec, allowed):
            hint = f"Install a version that was tested: pilotfish install {spec.id}. Or have this one allowed. {trust}"
        if isinstance(allowed, Withheld) and not isinstance(located, Gated):
            return Unavailable(Code.UNTRUSTED, allowed.reason, hint=hint, scene=scene)
        if isinstance(located, ProgramFound):
            return Unavailable(Code.SERVER_MISSING, f"{spec.name} is installed, but was not chosen", scene=scene)
        message = unavailable(spec, located, self.install_hint(spec))
        if isinstance(located, Gated):
            return Unavailable(Code.UNTRUSTED, message, hint=hint, scene=scene)
        return Unavailable(Code.SERVER_MISSING, message, scene=scene)
