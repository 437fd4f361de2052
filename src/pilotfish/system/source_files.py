"""The files below a folder. Left out, and reported where a caller wants to know: what git ignores, dependencies, hidden
folders, links, and what cannot be listed."""

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.system.watching.ignoring import IgnoreRules, is_ignored, read_rules, rules_above

REPOSITORIES = frozenset({".git", ".hg", ".jj", ".svn"})
"""Folders of version control: their contents are not source files."""


class Skipped(Struct):
    """What a walk left out."""

    ignored: list[AbsPath] = field(default_factory=list[AbsPath])
    """Folders: ignored by git, hidden, or of dependencies."""
    links: list[AbsPath] = field(default_factory=list[AbsPath])
    special: list[AbsPath] = field(default_factory=list[AbsPath])
    """Pipes, sockets, devices."""
    unreadable: list[AbsPath] = field(default_factory=list[AbsPath])
    """Folders that could not be listed."""


def files_below(folder: AbsPath, skipped: Skipped | None = None) -> Iterator[AbsPath]:
    """Regular files below a real folder, sorted by path; `skipped` collects what was left out."""
    yield from _walk(folder, rules_above(folder), skipped or Skipped())


def _walk(folder: AbsPath, rules: Sequence[IgnoreRules], skipped: Skipped) -> Iterator[AbsPath]:
    own = read_rules(folder)
    rules = rules if own is None else (*rules, own)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        skipped.unreadable.append(folder)
        return
    for entry in entries:
        path, is_folder = AbsPath(entry.path), entry.is_dir(follow_symlinks=False)
        if (is_folder and _is_left_out(entry.name)) or is_ignored(path, rules):
            if is_folder and entry.name not in REPOSITORIES:
                skipped.ignored.append(path)
        elif is_folder:
            yield from _walk(path, rules, skipped)
        elif entry.is_symlink():
            skipped.links.append(path)
        elif entry.is_file(follow_symlinks=False):
            yield path
        else:
            skipped.special.append(path)


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in DEPENDENCY_FOLDERS
