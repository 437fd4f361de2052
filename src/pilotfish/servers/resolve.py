"""Which servers serve a file, and for which root.

- Candidates are all enabled servers whose extension, file name or shebang fits (REG-2). `choose` takes one main server
  among them, its companions, and whatever the configuration names.
- The root is the nearest folder with a marker, never above the workspace (REG-3); a repository or git worktree inside
  the workspace bounds the search like a workspace of its own, a submodule does not.
- A file below a folder of dependencies has no candidates (PATH-2).
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, below, is_dependency, is_inside
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import WatchRegistration, watch_registrations
from pilotfish.servers.roots import Search, fits, is_marked, root_of
from pilotfish.servers.spec import Role, ServerSpec
from pilotfish.servers.tree import ProjectTree

MAX_FIRST_LINE = 256  # What the kernel itself reads of a shebang line

SHEBANG = re.compile(r"#!\s*(?:\S*/)?(\S+)(.*)")


class SearchScope(Struct, frozen=True):
    """Where a file may be served: the workspace, and its git worktree where that reaches further up."""

    workspace: AbsPath
    worktree: AbsPath | None = None


class Candidate(Struct, frozen=True):
    spec: ServerSpec
    root: AbsPath
    language_id: str
    favoured: bool = False  # The project says itself that it uses this one
    beside: bool = False  # It serves the file only beside another one, see `spec.Relay`


class ServerChoice(Struct, frozen=True):
    """What to start for a file. `expected` is the main server that should serve it and is not there."""

    servers: tuple[Candidate, ...]
    expected: Candidate | None = None
    withheld: tuple[Candidate, ...] = ()  # Companions that would run beside them, were the workspace trusted

    @property
    def missing(self) -> Candidate | None:
        """`expected`, where its absence means that code is not checked."""
        return self.expected if self.expected is not None and self.expected.spec.serves_code else None


class Resolver:
    """Finds the candidates among a set of servers; holds an index of them and nothing about any folder."""

    def __init__(self, specs: Iterable[ServerSpec], tree: ProjectTree) -> None:
        self._tree = tree
        self._by_extension: dict[str, list[ServerSpec]] = {}
        self._by_name: dict[str, list[ServerSpec]] = {}
        self._by_glob: list[tuple[str, ServerSpec]] = []
        self._by_shebang: dict[str, list[ServerSpec]] = {}
        enabled = [spec for spec in specs if not spec.disabled]
        self._hosts = [spec for spec in enabled if spec.guests]
        for spec in enabled:
            self._add(spec)

    def candidates(
        self, path: AbsPath, scope: SearchScope, first_line: str | None = None, tree: ProjectTree | None = None
    ) -> tuple[Candidate, ...]:
        """Every server for `path`, a real path; best first. `first_line` spares reading the file for its shebang.

        `tree` is asked instead of the resolver's own.
        """
        tree, top = tree or self._tree, _top(path, scope)
        if is_dependency(below(path, top) or ()):
            return ()
        specs = self._matching(path, first_line, tree)
        if not specs:
            return ()
        search = Search(tree, ancestors(os.path.dirname(path), top))
        found = [candidate for spec in specs if (candidate := _candidate(spec, path, search))]
        for guest in [one for one in found if one.spec.relay is not None]:
            for host in self._hosts:
                relay = guest.spec.relay
                beside = _candidate(host, path, search) if guest.spec.relays_to([host.id]) else None
                if beside is not None and relay is not None and is_marked(beside.root, top, relay.project, tree):
                    found.append(replace(beside, language_id=guest.language_id, beside=True))
        return tuple(sorted(found, key=_standing))

    def serves(self, path: AbsPath, first_line: str | None = None) -> bool:
        """Whether any server is for files like this one, wherever it lies."""
        return bool(self._matching(path, first_line, self._tree))

    def _add(self, spec: ServerSpec) -> None:
        for extension in spec.files.extensions:
            self._by_extension.setdefault(extension, []).append(spec)
        for shebang in spec.files.shebangs:
            self._by_shebang.setdefault(shebang, []).append(spec)
        for name in spec.files.names:
            if is_pattern(name):
                self._by_glob.append((name, spec))
            else:
                self._by_name.setdefault(name, []).append(spec)

    def _matching(self, path: AbsPath, first_line: str | None, tree: ProjectTree) -> Sequence[ServerSpec]:
        name = os.path.basename(path)
        found = list(self._by_name.get(name, ()))
        for suffix in (*suffixes(name), *suffixes(name.lower())):
            found += self._by_extension.get(suffix, ())
        found += (spec for glob, spec in self._by_glob if fits(glob, path))
        if not found and "." not in name:
            line = first_line if first_line is not None else tree.read(path, MAX_FIRST_LINE) or ""
            found += self._by_shebang.get(interpreter(line) or "", ())
        return list({spec.id: spec for spec in found}.values())


def choose(
    candidates: Sequence[Candidate],
    is_available: Callable[[Candidate], bool],
    is_withheld: Callable[[Candidate], bool] = lambda _candidate: False,
) -> ServerChoice:
    """What runs for a file: one main server, every server that the configuration names, every useful companion.

    Main servers that the configuration names come in place of the one that would have been chosen.
    """
    beside = [candidate for candidate in candidates if candidate.beside]
    candidates = [candidate for candidate in candidates if not candidate.beside]
    named = [candidate for candidate in candidates if candidate.spec.rank.named]
    mains = [candidate for candidate in candidates if candidate.spec.rank.role is Role.MAIN]
    replacing = [candidate for candidate in mains if candidate.spec.rank.named]
    main = None if replacing else next(filter(is_available, mains), None)
    leading = (*([main] if main else []), *filter(is_available, named))
    leading = tuple(server for one in leading for server in _with_other(one, beside, is_available))
    superfluous = {server for one in leading for server in one.spec.rank.conflicts}
    companions = [
        candidate
        for candidate in candidates
        if candidate.spec.rank.role is Role.COMPANION
        and not candidate.spec.rank.named
        and candidate.spec.id not in superfluous
    ]
    missed = () if leading else (*replacing, *mains, *named)
    return ServerChoice(
        (*leading, *filter(is_available, companions)),
        missed[0] if missed else None,
        tuple(one for one in companions if not is_available(one) and is_withheld(one)),
    )


def _with_other(
    candidate: Candidate, beside: Sequence[Candidate], is_available: Callable[[Candidate], bool]
) -> tuple[Candidate, ...]:
    """A server with the one that it relays questions to; without that one, it says what it does not check."""
    relay = candidate.spec.relay
    if relay is None:
        return (candidate,)
    other = next((one for one in beside if candidate.spec.relays_to([one.spec.id]) and is_available(one)), None)
    if other is not None:
        return (candidate, other)
    freshness = replace(candidate.spec.freshness, not_checked=relay.alone)
    return (replace(candidate, spec=replace(candidate.spec, freshness=freshness)),)


def interpreter(first_line: str) -> str | None:
    """The program that a shebang line names, without its version: `python` for `#!/usr/bin/env -S python3.12 -u`."""
    found = SHEBANG.match(first_line)
    if found is None:
        return None
    program, rest = found.groups()
    if program == "env":
        words = [word for word in rest.split() if not word.startswith("-") and "=" not in word]
        program = os.path.basename(words[0]) if words else ""
    return re.sub(r"[0-9.]+$", "", program) or None


def _top(path: AbsPath, scope: SearchScope) -> str:
    """How far up the search may go. A file outside everything is served from its own folder."""
    for folder in (scope.workspace, scope.worktree):
        if folder is not None and is_inside(path, folder):
            return folder
    return os.path.dirname(path)


def _candidate(spec: ServerSpec, path: AbsPath, search: Search) -> Candidate | None:
    # A server that the configuration names is wanted, whatever the project has.
    root = root_of(replace(spec.root, required=False) if spec.rank.named else spec.root, search)
    if root is None:
        return None
    favoured = bool(spec.rank.favoured_by) and bool(search.distances(spec.rank.favoured_by))
    known = language_id(path, spec.files.language_ids, spec.languages[0] if spec.languages else "plaintext")
    return Candidate(spec, AbsPath(root), known, favoured)


def _standing(candidate: Candidate) -> tuple[bool, bool, bool, int, str]:
    rank = candidate.spec.rank
    return (candidate.beside, not rank.named, not candidate.favoured, rank.preference, candidate.spec.id)


# --- File names against the catalogue ---------------------------------------------------------------------------------


def suffixes(name: str) -> tuple[str, ...]:
    """What may be the extension of a file name, longest first: `.html.erb`, `.erb`."""
    return tuple(name[place:] for place, character in enumerate(name) if character == "." and place + 1 < len(name))


def language_id(path: str, ids: Mapping[str, str], fallback: str) -> str:
    """The id to open `path` with: by its name, then by its longest known extension, then `fallback`."""
    name = os.path.basename(path)
    globs = (key for key in ids if is_pattern(key) and fits(key, path))
    for key in (name, *globs, *suffixes(name), *suffixes(name.lower())):
        if key in ids:
            return ids[key]
    return fallback


@lru_cache(maxsize=4096)
def is_pattern(name: str) -> bool:
    """Whether a file name of the catalogue is more than a name."""
    return any(character in name for character in "*?[{/")


def own_files(spec: ServerSpec) -> tuple[WatchRegistration, ...]:
    """The files that a server serves, that configure it or by which its root is found: it is told of them unasked.

    Servers that register nothing either watch files themselves, and are told twice, or expect a client that just tells,
    as clients did before there was registration. Either way their last answer may not hold any more.
    """
    rule = spec.files
    names = (*(f"*{extension}" for extension in spec.extensions), *rule.names, *spec.root.markers)
    steering = (name for name in spec.inputs.steering if "#" not in name)
    return _registrations(tuple(dict.fromkeys((*names, *spec.inputs.also_told, *steering))))


def sources_in(folders: Iterable[str], spec: ServerSpec) -> tuple[WatchRegistration, ...]:
    """The files that a server serves, in folders outside of its root."""
    endings = ",".join(extension.removeprefix(".") for extension in spec.files.extensions)
    patterns = [{"baseUri": uri_of(AbsPath(folder)), "pattern": f"**/*.{{{endings}}}"} for folder in folders]
    return tuple(watch_registrations({"watchers": [{"globPattern": pattern} for pattern in patterns]}))


@lru_cache(maxsize=256)  # One for each server that runs, asked for at each start.
def _registrations(names: tuple[str, ...]) -> tuple[WatchRegistration, ...]:
    return tuple(watch_registrations({"watchers": [{"globPattern": f"**/{name}"} for name in names]}))


# --- Why a server is used for a file, or not --------------------------------------------------------------------------

# In words, what `choose` decided, in the order of its rules: what the configuration names, what the project has a file
# for, the catalogue's order.

MAX_MARKERS = 4  # Names of files that are told; a few servers know a dozen


class Explained(Struct, frozen=True):
    server: str
    is_used: bool
    why: str


def explained(
    specs: Mapping[str, ServerSpec],
    candidates: Sequence[Candidate],
    choice: ServerChoice,
    why_not: Callable[[ServerSpec], str | None],
) -> tuple[Explained, ...]:
    """For each of `specs`, those that are used first. `why_not` says why one cannot run here; None when it can."""
    used = [one.spec.id for one in choice.servers]
    found = {one.spec.id: one for one in candidates}
    order = [*used, *(server for server in found if server not in used), *(name for name in specs if name not in found)]
    return tuple(
        Explained(server, server in used, _why(specs[server], found.get(server), choice, why_not))
        for server in order
        if server in specs
    )


def _why(
    spec: ServerSpec, candidate: Candidate | None, choice: ServerChoice, why_not: Callable[[ServerSpec], str | None]
) -> str:
    if spec.disabled:
        return "the configuration disables it"
    if candidate is None and (needed := spec.root.requires) is not None:
        bound = f"{needed.minimum} or newer" if needed.minimum is not None else f"older than {needed.below}"
        return f"the project does not have {needed.package} {bound}"
    if candidate is None:
        return f"the project has none of its files: {_listed(spec.root.markers)}"
    if candidate in choice.servers:
        return _why_used(candidate, choice)
    if (reason := why_not(spec)) is not None:
        return reason
    leading = choice.servers[0].spec.id
    if spec.rank.role is Role.COMPANION:
        return f"it would say the same again as {leading}"
    return f"{leading} comes before it: {_why_used(choice.servers[0], choice)}"


def _why_used(candidate: Candidate, choice: ServerChoice) -> str:
    spec = candidate.spec
    if spec.rank.named:
        return "your configuration names its command"
    if spec.rank.role is Role.COMPANION:
        leading = choice.servers[0].spec
        return "it runs beside the others" if leading is not spec else "it serves these files"
    if candidate.favoured:
        return f"the project has its configuration: {_listed(spec.rank.favoured_by)}"
    return "the first in the catalogue's order that can run here"


def _listed(markers: Sequence[str]) -> str:
    more = ["…"] if len(markers) > MAX_MARKERS else []
    return ", ".join([*markers[:MAX_MARKERS], *more])
