"""Where a server's root is: a walk from a file's folder up to the workspace.

Only existence is asked and manifests are parsed: nothing is run (T8). One search costs at most a fixed number of
questions per folder between the file and the workspace, however large the tree is. Answers are kept for one search
only; `evidence` says for how long what follows from them holds.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from pilotfish.paths import ancestors, below
from pilotfish.protocol.codec import fields, items, maybe_fields, member
from pilotfish.protocol.globs import BadGlob, lsp_glob
from pilotfish.servers.manifests import REMEMBERED, json_value, toml_table
from pilotfish.servers.spec import Grouping, NpmRequirement, RootRule, RootStrategy
from pilotfish.servers.tree import ProjectTree

NPM_SECTIONS = ("devDependencies", "dependencies", "peerDependencies")  # Of a manifest: what a project asks for

GLOB_CHARACTERS = frozenset("*?[{")


def fits(pattern: str, path: str) -> bool:
    """Whether the end of `path` matches; a pattern that is none matches nothing."""
    try:
        return lsp_glob(f"**/{pattern}").matches(path)
    except BadGlob:
        return False


class Search:
    """What one search has seen: each question is asked once."""

    def __init__(self, tree: ProjectTree, folders: Sequence[str]) -> None:
        self._tree = tree
        self._seen: dict[tuple[str, str], bool] = {}
        self._names: dict[str, Sequence[str]] = {}
        self._texts: dict[str, str | None] = {}
        self.folders = folders[: self._repository(folders) + 1]

    def distances(self, markers: Sequence[str]) -> list[int]:
        """How many folders up each folder with one of `markers` is, nearest first."""
        return [place for place, folder in enumerate(self.folders) if self.has(folder, markers)]

    def has(self, folder: str, markers: Sequence[str]) -> bool:
        return any(self._holds(folder, marker) for marker in markers)

    def text(self, path: str) -> str | None:
        if path not in self._texts:
            self._texts[path] = self._tree.read(path, MAX_MANIFEST)
        return self._texts[path]

    def _holds(self, folder: str, marker: str) -> bool:
        key = (folder, marker)
        if key not in self._seen:
            self._seen[key] = self._look_for(folder, marker)
        return self._seen[key]

    def _look_for(self, folder: str, marker: str) -> bool:
        name, _, section = marker.partition("#")
        if section:
            return self._tree.exists(f"{folder}/{name}") and _has_section(self.text(f"{folder}/{name}") or "", section)
        if GLOB_CHARACTERS.isdisjoint(marker):
            return self._tree.exists(f"{folder}/{marker}")
        # A glob is for the names in one folder; before its last slash it is a plain path.
        head, _, glob = marker.rpartition("/")
        place = os.path.join(folder, head) if head else folder
        if place not in self._names:
            self._names[place] = self._tree.names(place)
        return any(fits(glob, name) for name in self._names[place])

    def _repository(self, folders: Sequence[str]) -> int:
        """The place of the nearest repository or linked worktree; the last folder without one.

        `.git` is a folder in a repository and a file in a worktree or a submodule. The file is looked at, and what it
        points at is not (T3).
        """
        for place, folder in enumerate(folders):
            if self._holds(folder, ".git"):
                pointer = self.text(os.path.join(folder, ".git"))
                if pointer is None or "/worktrees/" in pointer:
                    return place
        return len(folders) - 1


def _has_section(text: str, section: str) -> bool:
    """Whether a manifest has a table of TOML (or INI) or a key of JSON of this name; the rest is not looked at."""
    quoted = re.escape(section)
    return re.search(rf'^[ \t]*\[+[ \t]*{quoted}[ \t]*[\].]|"{quoted}"\s*:', text, re.MULTILINE) is not None


def is_marked(root: str, top: str, markers: Sequence[str], tree: ProjectTree) -> bool:
    """Whether a root, or a folder above it up to `top`, has one of these."""
    return bool(Search(tree, ancestors(root, top) or (root,)).distances(markers))


def root_of(rule: RootRule, search: Search) -> str | None:
    """The root by `rule`; None when the rule says that the server is not meant for this file."""
    marked = search.distances((*rule.strong, *rule.markers))
    reach = marked[0] if marked else len(search.folders) - 1
    if any(search.has(folder, rule.exclusions) for folder in search.folders[: reach + 1]):
        return None
    if (rule.required and not marked) or not fits_npm(rule.requires, search):
        return None
    if rule.strategy is RootStrategy.WORKSPACE or not marked:
        return search.folders[-1]
    found = search.distances(rule.strong) or marked
    if rule.strategy is RootStrategy.OUTERMOST:
        return search.folders[found[-1]]
    # The nearest folder up from there whose manifest claims it.
    package = search.folders[found[0]]
    for folder in search.folders[found[0] :]:
        for grouping in rule.grouping:
            name, _ = MANIFESTS[grouping]
            if not search.has(folder, (name,)):
                continue
            found = claim(grouping, search.text(os.path.join(folder, name)) or "")
            if found and found.covers("/".join(below(package, folder) or ())):
                return folder
    return package


def fits_npm(requirement: NpmRequirement | None, search: Search) -> bool:
    """Whether a project has such a package, from the first folder of `search` up."""
    if requirement is None:
        return True
    major = _npm_major(requirement.package, search)
    if major is None:
        return requirement.minimum is None
    return (requirement.minimum or 0) <= major and (requirement.below is None or major < requirement.below)


def _npm_major(package: str, search: Search) -> int | None:
    """The major version of the package that the project has installed, else of what it asks for; nearest first."""
    name = f"node_modules/{package}/package.json"
    for folder in search.folders:
        if search.has(folder, (name,)):
            return _major(member(json_value(search.text(os.path.join(folder, name)) or ""), "version"))
    for folder in search.folders:
        if search.has(folder, (f"package.json#{package}",)):
            manifest = json_value(search.text(os.path.join(folder, "package.json")) or "")
            asked = (member(manifest, section, package) for section in NPM_SECTIONS)
            return next((major for one in asked if (major := _major(one)) is not None), None)
    return None


def _major(version: object) -> int | None:
    """Of a version, or of a range of versions that begins with one."""
    found = re.match(r"[~^>=v\s]{0,9}(\d{1,6})(?=\.|\s*$)", version) if isinstance(version, str) else None
    return int(found[1]) if found else None


# --- Manifests that join packages into one root ----------------------------------------------------------------------


MAX_MANIFEST = 262_144  # Bytes read of a manifest; the largest `package.json` of a public monorepo is a third of this


MAX_LINES = 2_000  # Of a manifest that is read line by line


class Claim(Struct, frozen=True):
    """Globs of folders, relative to the manifest's own."""

    members: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def covers(self, folder: str) -> bool:
        """Whether the folder at this relative path is a member; the manifest's own folder always is."""
        if not folder:
            return True
        is_excluded = any(_covers(glob, folder) for glob in self.excluded)
        return not is_excluded and any(_covers(glob, folder) for glob in self.members)


@lru_cache(maxsize=REMEMBERED)
def claim(grouping: Grouping, manifest: str) -> Claim | None:
    """What a manifest of this kind claims; None when it is not such a manifest at all.

    One that does not parse claims nothing: the package then is its own root, as without the manifest.
    """
    return MANIFESTS[grouping][1](manifest)


def _cargo(manifest: str) -> Claim | None:
    """Path dependencies are members without being listed, so everything is that is not excluded."""
    workspace = maybe_fields(member(toml_table(manifest), "workspace"))
    excluded = _texts(fields(workspace).get("exclude"))
    return (
        Claim(("**",), (*excluded, *(f"{one.rstrip('/')}/**" for one in excluded))) if workspace is not None else None
    )


def _uv(manifest: str) -> Claim | None:
    workspace = maybe_fields(member(toml_table(manifest), "tool", "uv", "workspace"))
    return Claim(_texts(workspace.get("members")), _texts(workspace.get("exclude"))) if workspace is not None else None


def _npm(manifest: str) -> Claim | None:
    """A list, or the older `{"packages": [...]}` of yarn."""
    workspaces = member(json_value(manifest), "workspaces")
    globs = _texts(fields(workspaces).get("packages", workspaces))
    return _with_exclusions(globs) if globs else None


def _pnpm(manifest: str) -> Claim | None:
    """The list under `packages:`. The one piece of YAML that we read, so no YAML library."""
    lines = iter(manifest.splitlines()[:MAX_LINES])
    for line in lines:
        if re.match(r"packages:\s*(#.*)?$", line):
            break
    globs: list[str] = []
    for line in lines:
        item = re.match(r"\s*-\s(.*)", line)
        if item:
            globs.append(item[1].partition("#")[0].strip(" \t'\""))
        elif not re.match(r"\s*(#|$)", line):
            break
    return _with_exclusions(tuple(globs))


def _go_work(manifest: str) -> Claim | None:
    text = re.sub(r"//.*", "", manifest)
    blocks = re.findall(r"^use[ \t]*\(([^()]*)\)", text, re.MULTILINE)
    single = re.findall(r"^use[ \t]+([^(\s]\S*)", text, re.MULTILINE)
    words = [word.strip('"`') for block in blocks for word in block.split()] + [word.strip('"`') for word in single]
    return Claim(tuple(word for word in words if not word.startswith("..")))


def _with_exclusions(globs: tuple[str, ...]) -> Claim:
    return Claim(
        members=tuple(glob for glob in globs if not glob.startswith("!")),
        excluded=tuple(glob[1:] for glob in globs if glob.startswith("!")),
    )


def _covers(glob: str, folder: str) -> bool:
    plain = glob.removeprefix("./").rstrip("/")
    if plain in {"", "."}:
        return not folder
    try:
        return lsp_glob(plain).matches(folder)
    except BadGlob:
        return False


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in items(value) if isinstance(item, str))


MANIFESTS: Mapping[Grouping, tuple[str, Callable[[str], Claim | None]]] = {
    "cargo": ("Cargo.toml", _cargo),
    "go-work": ("go.work", _go_work),
    "npm": ("package.json", _npm),
    "pnpm": ("pnpm-workspace.yaml", _pnpm),
    "uv": ("pyproject.toml", _uv),
}
"""The file that each kind of manifest is, and how it is read."""
