"""Which worktrees of a repository may share a server: those for which it would be started in the same way.

Whatever makes a difference is in the name of the group: the program, its variables and settings, the place of its root
in the worktree, what configures it and what is installed. Where a doubt is left, a worktree shares nothing.
"""

import hashlib
import os
import re
from collections.abc import Iterable

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, is_inside
from pilotfish.protocol.codec import encode
from pilotfish.protocol.uris import uri_of
from pilotfish.servers.environment import lies_in
from pilotfish.servers.inputs import InputEvidence
from pilotfish.servers.spec import Environment, ServerSpec
from pilotfish.servers.tree import DiskTree
from pilotfish.system.git_state import repository_of
from pilotfish.system.ports import Launch
from pilotfish.system.real_path import real_path

FOUND_ABOVE = frozenset({
    ".editorconfig", ".gitignore", ".ignore", "jsconfig.json", "node_modules", "package.json", "pyproject.toml",
    "pyrightconfig.json", "tsconfig.json", "ty.toml",
})  # fmt: skip
"""What servers look for in the folders above their root, which are others in a folder of ours. The same in the worktree
itself is found first: so it is in one that lies inside of another."""

MAX_ABOVE = 256 * 1024  # Of a file that is compared with another one
MAX_PATHS_FILE = 64 * 1024  # Of a file of an environment that adds folders to its search path


class Share(Struct, frozen=True):
    group: str  # The same for all that may share one server
    top: AbsPath  # The folder of the worktree
    folder: AbsPath  # Where the files of one after the other are shown


class Started(Struct, frozen=True):
    spec: ServerSpec
    root: AbsPath
    launch: Launch
    options: object  # What it is told then, as JSON
    inputs: InputEvidence | None
    own: AbsPath  # The folder that is this server's in this root alone
    packages: tuple[AbsPath, ...]


def share_of(started: Started, state: str) -> Share | None:
    """Blocking: some looks at folders."""
    found, inputs, launch = repository_of(started.root), started.inputs, started.launch
    if found is None or inputs is None or inputs.is_cut:
        return None
    top, repository = found
    above = ancestors(os.path.dirname(top))
    found_above = {os.path.join(one, name) for one in above for name in FOUND_ABOVE.intersection(DiskTree().names(one))}
    if not all(_is_same(path, os.path.join(top, os.path.basename(path))) for path in found_above):
        return None
    if any(_leads_elsewhere(folder, started.spec.inputs.environment) for folder in started.packages):
        return None
    program = real_path(launch.argv[0])
    digests = inputs.digests()
    inside = {path[len(top) :]: digest for path, digest in digests.items() if is_inside(path, top)}
    outside = {path: digest for path, digest in digests.items() if digest and not is_inside(path, top)}
    read = [sorted(inside.items()), sorted((path, outside[path]) for path in outside.keys() - found_above)]
    confined = encode(launch.confinement).decode() if launch.confinement is not None else ""
    environment = sorted(launch.environment.items())
    said = encode([os.path.relpath(started.root, top), list(launch.argv), environment, started.options, read, confined])
    for own, name in ((started.own, b"${own}"), (uri_of(top), b"${top}"), (top, b"${top}")):
        said = said.replace(os.fsencode(own), name)
    group = hashlib.sha256(f"{repository}\0{program}\0".encode(errors="surrogateescape") + said).hexdigest()[:16]
    folder = AbsPath(os.path.join(state, "worktrees", f"{group}-{os.getpid()}"))
    # Servers spell other paths in more than one way.
    return Share(group, top, folder) if re.fullmatch(r"[\w/.-]+", folder, re.ASCII) else None


def _is_same(path: str, other: str) -> bool:
    text = DiskTree().read(path, MAX_ABOVE)
    return (text is not None and text == DiskTree().read(other, MAX_ABOVE)) or real_path(path) == real_path(other)


def _leads_elsewhere(packages: AbsPath, environment: Environment | None) -> bool:
    """Whether installed packages are folders of a project: those of one worktree, whichever uses them."""
    if environment is Environment.NODE:
        scopes = [packages, *_below(packages, (name for name in DiskTree().names(packages) if name.startswith("@")))]
        real = real_path(packages)
        links = (path for scope in scopes for path in _below(scope, DiskTree().names(scope)) if os.path.islink(path))
        return any(not is_inside(real_path(path), real) for path in links)
    names = [name for name in DiskTree().names(packages) if name.endswith(".pth") or name.startswith("__editable__")]
    texts = (DiskTree().read(path, MAX_PATHS_FILE) or "" for path in _below(packages, names))
    lines = (line.strip() for text in texts for line in text.splitlines())
    return any(name.startswith("__editable__") for name in names) or any(
        line.startswith((os.sep, ".")) and not lies_in(line, (packages,)) for line in lines
    )


def _below(folder: str, names: Iterable[str]) -> list[str]:
    return [os.path.join(folder, name) for name in names]
