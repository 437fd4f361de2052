"""What a server reads besides the sources that it is told of, and whether that is still as it was when it started.

Configuration files, the files that those name, and the folders of installed packages: the catalogue says which. Each is
looked at by `stat` before every answer, and only where that differs is its content compared. Servers notice such
changes late or never, so one whose inputs have changed is started anew (`pool.pool`), and no answer is of the old ones.
"""

import fnmatch
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, below, is_dependency, is_inside, is_library, package_folder
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.servers.manifests import MAX_COMMENTED_CHARACTERS, json_value, toml_table
from pilotfish.servers.spec import Environment, Inputs, ServerSpec
from pilotfish.servers.tree import DOUBT_NANOSECONDS, DiskTree, Sight, sight

MAX_BYTES = 1024 * 1024  # Of a configuration file; lock files of package managers are compared by `stat` alone
MAX_FILES = 64  # Folders with files that sources name, and folders outside

MAX_FOLLOWING = 256
"""Configuration files in which the names of others are looked for: everybody waits for that, 40 to 60 ms."""

MAX_NAMED = 1_000  # Files that configuration files name, and names in one source: each is looked at before every answer

MAX_FOLLOWED = 96 * 1024
"""Characters of the files in which names of others are looked for: everybody waits while they are read."""

MAX_LINE = 64 * 1024  # Of a source, with the names of files

MAX_SEARCHED = 512 * 1024
"""Characters of a source that are searched by a pattern: everybody waits for that, 80 ms for 1 MB of blank lines."""

MAX_COMPARED = 20_000  # Names of a folder times those that sources have for them
DATA = (".json", ".jsonc", ".toml", ".yaml", ".yml")  # What configuration is written in, whatever else is

LOCKS = (".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml")
"""What npm, pnpm and yarn write into `node_modules` at the end of every installation."""

FOLDER = "a folder"  # What there is to say of one

Digest = Callable[[], str | None]


class _Seen(Struct):
    """How one input looked, and what it said; `sight` is None where the same sight may hide another content."""

    sight: Sight
    certain: bool
    digest: str | None
    say: Digest
    now: str | None  # What it said at the last look


class InputEvidence:
    """The inputs of one server, as they were when it was made: before the server started."""

    def __init__(self, digests: Mapping[str, Digest], root: AbsPath, inputs: Inputs, sources: Sequence[str]) -> None:
        """`sources` are the extensions of its sources."""
        self._inputs = inputs
        # A section of a manifest counts in the root alone: every package below has a manifest of its own.
        self._names = frozenset(name for name in inputs.steering if "#" not in name)
        self._root = root
        self._written = tuple(f"{root}/{name}/" for name in inputs.written)
        self._sources = tuple(sources)
        manifests = ("package.json",) if inputs.environment is Environment.NODE else ()
        self._libraries = (*sources, *manifests) if inputs.environment or inputs.late_libraries else ()
        """How the names of the files end whose change in a package or a late library counts."""
        self._emptied: set[str] = set()
        """Folders that have lost their last source; more than are counted are as good as all."""
        self._lost: set[str] = set()  # Sources that are gone, or were; the same
        self._parts: dict[str, frozenset[str]] = {}
        """By folder: the names, perhaps with a star, that sources mention there."""
        self._overlooked: set[AbsPath] = set()  # Sources that mention more than is looked at
        self.steering: frozenset[str] = frozenset()
        """The files that configure it, in its root and above, and those that they name."""
        self.is_cut = False  # Its configuration names more files than are looked at
        self._made_at = time.time_ns()
        self._seen = {path: _look(path, say) for path, say in digests.items()}
        self.changed: str | None = None
        """The first that was found to have changed; then the server must be started anew."""
        self.installed = self._packages()  # The packages as they were when somebody asked last
        self.renewed: set[str] = set()  # The folders of packages that were changed inside since then

    def holds(self) -> bool:
        """Whether all is as it was. Some microseconds for each input."""
        if self.changed is None:
            self.changed = next((path for path, seen in self._seen.items() if _differs(path, seen)), None)
        return self.changed is None

    def digests(self) -> dict[str, str | None]:
        """What each input said when it was last looked at, by its path."""
        return {path: seen.digest for path, seen in self._seen.items()}

    def configures(self, path: AbsPath) -> bool:
        """Whether a file says how the server judges all others. A folder that counts by being there says nothing."""
        name, seen = os.path.basename(path), self._seen.get(path)
        if path in self.installed:
            return True
        if os.path.isdir(path) or (seen is not None and seen.digest == FOLDER):
            return False
        is_named = name in self._inputs.reloads or ("." in name and self._steers(name))
        return path in self.steering or (is_named and is_inside(path, self._root))

    def rewritten(self) -> AbsPath | None:
        """A file that configures it and has another content than when it started; None: it was none, or has come."""
        seen = None if self.holds() or self.changed is None else self._seen.get(self.changed)
        is_other = seen is not None and seen.digest is not None and self.changed in self.steering
        return AbsPath(self.changed) if is_other and self.changed is not None else None

    def take_packages(self, earlier: "InputEvidence | None" = None) -> frozenset[AbsPath]:
        """The folders of packages in which something was changed since the last call, or that of an earlier server."""
        if earlier is not None:
            self.installed, self.renewed = earlier.installed, self.renewed | earlier.renewed
        for path, seen in self._seen.items():
            if package_folder(path) is not None and _differs(path, seen):
                self.changed = self.changed or path
        before, self.installed = self.installed, self._packages()
        found = {folder for folder, known in self.installed.items() if before.get(folder, known) != known}
        found, self.renewed = found | self.renewed, set()
        return frozenset(map(AbsPath, found))

    def _packages(self) -> dict[str, frozenset[tuple[str, str]]]:
        """What is installed in each folder of packages, by the last look at it."""
        found = dict[str, frozenset[tuple[str, str]]]()
        for path, seen in self._seen.items():
            if (folder := package_folder(path)) is not None:
                said = () if seen.now is None else ((path, seen.now),)
                found[folder] = found.get(folder, frozenset()).union(said)
        return found

    def note(self, path: AbsPath, change: Change = Change.CHANGED, *, is_open: bool = False) -> None:
        """A file that is watched has changed: one that steers the server in a folder below counts, too.

        So does a source of an installed package or of another library that the server takes in late, one that it may
        not see by itself, and what `presence`, `arrivals` and `emptied` say.
        """
        if path in self._seen or path.startswith(self._written):
            return
        is_late = path.endswith(self._libraries) and self._is_library(path)
        if is_late and (folder := package_folder(path)) is not None:
            self.renewed.add(folder)
        is_late |= self._inputs.own_watchers and not is_open and path.endswith(self._sources)
        comes_or_goes = bool(self._inputs.presence) and change is not Change.CHANGED and self._is_present(path)
        if self._steers(os.path.basename(path)) or is_late or comes_or_goes or self._is_lost(path, change):
            self.changed = self.changed or path

    def _is_lost(self, path: AbsPath, change: Change) -> bool:
        """Whether this has come and the server does not find it."""
        folder, name = os.path.split(path)
        is_source, is_full = self._inputs.emptied and path.endswith(self._sources), len(self._emptied) > MAX_FILES
        if change is Change.DELETED and is_source and not is_full:
            is_empty = not any(other.endswith(self._sources) for other in DiskTree().names(folder))
            self._emptied.update([folder] if is_empty else [])
        is_back = is_source and (is_full or folder in self._emptied)
        comes_late = is_back or any(fnmatch.fnmatchcase(name, one) for one in self._inputs.arrivals)
        return change is Change.CREATED and comes_late

    def mention(self, path: AbsPath, text: str) -> None:
        """A source is to be checked: the files that it names count from now on."""
        if self._inputs.mentions is None:
            return
        named: dict[str, set[str]] = {}
        lines = [said[1] for said in re.finditer(self._inputs.mentions, text[:MAX_SEARCHED])]
        names = [*islice((name for line in lines for name in _embedded(line[:MAX_LINE])), MAX_NAMED + 1)]
        for name in names[:MAX_NAMED]:
            folder, part = _first_part(os.path.join(os.path.dirname(path), name))
            named.setdefault(folder, set()).add(part)
        left_out = [folder for folder, parts in named.items() if not self._name(folder, parts)]
        is_long = len(text) > MAX_SEARCHED or any(len(line) > MAX_LINE for line in lines)
        (self._overlooked.add if left_out or is_long or len(names) > MAX_NAMED else self._overlooked.discard)(path)

    def overlooks(self, path: AbsPath) -> bool:
        """Whether a source names files that do not count, or was too long to be searched for all of them."""
        return path in self._overlooked

    def _name(self, folder: str, more: Collection[str]) -> bool:
        """Names like these in a folder count, unless there are too many folders."""
        known = self._parts.get(folder, frozenset())
        if known.issuperset(more) or (not known and len(self._parts) >= MAX_FILES):
            return known.issuperset(more)
        before, seen = self._seen.get(folder), sight(folder)
        if (before is not None and _differs(folder, before)) or (seen is not None and seen[2] > self._made_at):
            # Perhaps it has changed before anybody looked.
            self.changed = self.changed or folder
        self._parts[folder] = parts = known.union(more)
        self._seen[folder] = _look(folder, lambda: _matching(folder, parts))
        return True

    def _steers(self, name: str) -> bool:
        return name in self._names or any("*" in known and fnmatch.fnmatchcase(name, known) for known in self._names)

    def _is_present(self, path: AbsPath) -> bool:
        folder, name = os.path.split(path)
        presence, inside = self._inputs.presence, os.path.relpath(folder, self._root) + "/*"
        is_module = inside in presence and os.path.splitext(name)[0].isidentifier()
        return is_module or any(fnmatch.fnmatchcase(name, one) for one in presence)

    def note_older(self, changes: Iterable[PathChange], since: float) -> None:
        """These have changed since that wall time. One that has a time from before it has got that back, or is another
        file than was there: a server that goes by the time takes it for the old one.

        Unless there was none by that name: it was moved there, and no server has read it as anything else.
        """
        for path, change in ((one.path, one.change) for one in changes):
            if not self._inputs.by_time or self.changed is not None or not path.endswith(self._sources):
                continue
            if change is Change.DELETED and len(self._lost) <= MAX_FILES:
                self._lost.add(path)
            if change is Change.CREATED and path not in self._lost and len(self._lost) <= MAX_FILES:
                continue
            seen = sight(path)
            if seen is not None and seen[2] < since * 1e9:
                self.changed = path
                return

    def _is_library(self, path: AbsPath) -> bool:
        segments = below(path, self._root)
        return (self._inputs.late_libraries or is_library(path)) if segments is None else is_dependency(segments)


def input_evidence(
    inputs: Inputs, root: AbsPath, workspace: AbsPath, packages: Iterable[AbsPath] = (), sources: Sequence[str] = ()
) -> InputEvidence | None:
    """The evidence for a server that starts in `root`; None for one of which no inputs are known.

    `packages` are the folders with the packages of the Python environment, `sources` the extensions of its sources.
    """
    steering = _Steering(inputs, root)
    digests = own = dict(steering.digests())
    for folder in package_folders(inputs, root, workspace, packages):
        is_node = inputs.environment is Environment.NODE
        digests = digests | (_node_packages(folder) if is_node else {folder: lambda folder=folder: _listing(folder)})
    if not digests and not inputs.by_time and not inputs.own_watchers:
        return None
    found = InputEvidence(digests, root, inputs, sources)
    found.steering = frozenset(own)
    found.is_cut = steering.is_cut
    return found


def package_folders(
    inputs: Inputs, root: AbsPath, workspace: AbsPath, python: Iterable[AbsPath]
) -> tuple[AbsPath, ...]:
    """The folders with the packages that it reads, which need not be there; `python` are those of that environment."""
    match inputs.environment:
        case Environment.NODE:
            return tuple(AbsPath(os.path.join(folder, "node_modules")) for folder in ancestors(root, workspace))
        case Environment.PYTHON:
            return tuple(python)
        case _:
            return ()


def inputs_of(spec: ServerSpec) -> Inputs:
    """What the catalogue says, or what must be assumed where it says nothing: the markers of a root configure it.

    A marker that is a program in its own language, such as `flake.nix`, is one of its documents.
    """
    inputs = spec.inputs
    if inputs.steering or inputs.reloads:
        return inputs
    programs = tuple(one for one in (*spec.files.extensions, *spec.files.names) if not one.endswith(DATA))
    return replace(inputs, steering=tuple(marker for marker in spec.root.markers if not marker.endswith(programs)))


def at_home(inputs: Inputs, variables: Mapping[str, str], home: str) -> Inputs:
    """With the files of the user that configure the server, by their whole paths."""
    config = variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    places = (
        os.path.join(*((config, name.removeprefix(".config/")) if name.startswith(".config/") else (home, name)))
        for name in inputs.home
    )
    return replace(inputs, steering=(*inputs.steering, *places))


def outside_folders(inputs: Inputs, root: AbsPath) -> tuple[str, ...]:
    """The folders outside of the root that files of the project name: of headers, or of replaced modules.

    One more than `MAX_FILES` where there are more than that.
    """
    found: dict[str, None] = {}
    for name, pattern in inputs.folders.items():
        text = DiskTree().read(os.path.join(root, name), MAX_BYTES) or ""
        folder = os.path.dirname(os.path.join(root, name))
        for said in islice(dict.fromkeys(re.findall(pattern, text)), MAX_NAMED):
            path = os.path.normpath(os.path.join(folder, said))
            if not is_inside(path, root) and not is_library(path) and os.path.isdir(path):
                found[path] = None
    return tuple(found)[: MAX_FILES + 1]


def _look(path: str, say: Digest) -> _Seen:
    seen = sight(path)
    certain = seen is None or max(seen[2], seen[3]) < time.time_ns() - DOUBT_NANOSECONDS
    return _Seen(seen, certain, said := say(), say, said)


def _differs(path: str, known: _Seen) -> bool:
    if known.certain and sight(path) == known.sight:
        return False
    now = _look(path, known.say)
    known.sight, known.certain, known.now = now.sight, now.certain, now.digest
    return now.digest != known.digest


# --- Configuration files ---------------------------------------------------------------------------------------------


class _Steering:
    """The files that configure a server, and those that they name, as far as there is room for them."""

    def __init__(self, inputs: Inputs, root: AbsPath) -> None:
        self._extends = inputs.extends
        self._room = MAX_FOLLOWED
        self._left = MAX_FOLLOWING
        self.is_cut = False  # Some file could not be looked into, or had too many names
        self._sections: dict[str, list[str]] = {}
        for name in inputs.steering:
            file, _, section = name.partition("#")
            for found in fnmatch.filter(DiskTree().names(root), file) if "*" in file else (file,):
                self._sections.setdefault(os.path.join(root, found), []).append(section)
        for folder in ancestors(os.path.dirname(root)):
            for file, _, section in (name.partition("#") for name in inputs.above):
                self._sections.setdefault(os.path.join(folder, file), []).append(section)

    def digests(self) -> Iterator[tuple[str, Digest]]:
        waiting, known = list(self._sections), set(self._sections)
        for path in waiting:
            meant = tuple(self._sections.get(path, [""]))
            yield path, lambda path=path, meant=meant: _content(path, meant)
            named = [*islice(self._named(path), max(0, MAX_NAMED - len(waiting)) + 1)]
            self.is_cut |= len(waiting) + len(named) > MAX_NAMED
            found = dict.fromkeys(named[: max(0, MAX_NAMED - len(waiting))]).keys() - known
            waiting += sorted(found)
            known |= found

    def _named(self, path: str) -> Iterator[str]:
        if not self._extends or not os.path.isfile(path):
            return
        if not self._left or self._room <= 0:
            self.is_cut = True
            return
        text = DiskTree().read(path, MAX_BYTES) or ""
        self._room -= len(text)
        self._left -= 1
        table = _table(path, text)
        self.is_cut |= table is None and len(text) > MAX_COMMENTED_CHARACTERS
        yield from _named(path, table, self._extends)


def _content(path: str, sections: Sequence[str]) -> str | None:
    """Differs when the file, or one of these sections of it, does; None without the file. A folder is there or not."""
    text = DiskTree().read(path, MAX_BYTES)
    if text is None:
        return FOLDER if os.path.isdir(path) else None
    if len(text) >= MAX_BYTES:
        return str(sight(path))
    if "" not in sections and (table := _table(path, text)) is not None:
        text = json.dumps([_at(table, section.split(".")) for section in sections], sort_keys=True, default=str)
    return _hash(text)


def _named(path: str, table: object, members: Iterable[str]) -> Iterator[str]:
    """The files that one names in members such as `extends` or `references.path`."""
    for member in members:
        for value in _texts(_at(table, member.split("."))):
            yield from _places(value, os.path.dirname(path))


def _places(value: str, folder: str) -> Iterator[str]:
    """Where the file may be, up to where it is: beside the one that names it, or in an installed package."""
    places = [folder]
    if not value.startswith((".", os.sep)):
        places += [os.path.join(above, "node_modules") for above in ancestors(folder)]
    candidates = [os.path.normpath(os.path.join(place, value) + ending) for place in places for ending in ("", ".json")]
    for candidate in candidates:
        path = os.path.join(candidate, "tsconfig.json") if os.path.isdir(candidate) else candidate
        yield path
        if os.path.isfile(path):
            return


def _table(path: str, text: str) -> object:
    return toml_table(text) if path.endswith(".toml") else json_value(text)


def _at(value: object, members: Sequence[str]) -> object:
    """The value below members; of a list, those of all its items."""
    if not members:
        return value
    if isinstance(value, list):
        return [_at(item, members) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return _at(cast("dict[str, object]", value).get(members[0]), members[1:])
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _texts(item)


# --- Files that sources name ------------------------------------------------------------------------------------------


def _embedded(said: str) -> Iterator[str]:
    """The names in a line, as `go:embed` has them; none that leads out of the folder."""
    for word in said.split():
        name = word.strip('"`').removeprefix("all:")
        if name and ".." not in name and not name.startswith(os.sep):
            yield name


def _first_part(pattern: str) -> tuple[str, str]:
    """A folder, and the name or the pattern of names in it by which the way to a pattern begins that has a star."""
    folder, _, part = pattern.partition("*")[0].rpartition(os.sep)
    return folder, (part + pattern[len(folder) + 1 + len(part) :]).partition(os.sep)[0]


def _matching(folder: str, parts: Collection[str]) -> str:
    names = DiskTree().names(folder)
    if len(names) * len(parts) <= MAX_COMPARED:  # Otherwise every name counts.
        names = [name for name in names if any(fnmatch.fnmatchcase(name, part) for part in parts)]
    return _hash(repr(sorted(names)))


# --- Installed packages ----------------------------------------------------------------------------------------------


def _node_packages(folder: str) -> dict[str, Digest]:
    """`node_modules` itself, the scopes in it, and what package managers write there last."""
    scopes = sorted(name for name in DiskTree().names(folder) if name.startswith("@"))
    folders = [folder, *(os.path.join(folder, scope) for scope in scopes)]
    listed: dict[str, Digest] = {path: lambda path=path: _listing(path) for path in folders}
    locks = [os.path.join(folder, name) for name in LOCKS]
    return listed | {path: lambda path=path: str(sight(path)) for path in locks}


def _listing(folder: str) -> str | None:
    """Differs when a package in the folder is added, removed or replaced; caches and hidden names do not count."""
    try:
        with os.scandir(folder) as entries:
            rows = [
                (entry.name, entry.inode(), entry.stat(follow_symlinks=False).st_mtime_ns)
                for entry in entries
                if entry.name != "__pycache__" and not entry.name.startswith((".", "@"))
            ]
    except (OSError, ValueError):
        return None
    return _hash(repr(sorted(rows)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
