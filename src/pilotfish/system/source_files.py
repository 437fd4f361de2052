"""The files below a folder. Left out, and reported where a caller wants to know: what git ignores, dependencies, hidden
folders, other worktrees, links, and what cannot be listed."""

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.system.ownership import is_linked_worktree
from pilotfish.system.watching.ignoring import IgnoreRules, is_ignored, read_rules, rules_above

REPOSITORIES = frozenset({".git", ".hg", ".jj", ".svn"})
"""Folders of version control: their contents are not source files."""


class Skipped(Struct):
    ignored: list[AbsPath] = field(default_factory=list[AbsPath])
    """Folders: ignored by git, hidden, other worktrees, or of dependencies."""
    links: list[AbsPath] = field(default_factory=list[AbsPath])
    special: list[AbsPath] = field(default_factory=list[AbsPath])
    """Pipes, sockets, devices."""
    unreadable: list[AbsPath] = field(default_factory=list[AbsPath])
    """Folders that could not be listed."""


def files_below(folder: AbsPath, skipped: Skipped | None = None) -> Iterator[AbsPath]:
    """Regular files below a real folder, sorted by path; `skipped` collects what was left out."""
    left = skipped or Skipped()
    # Not by recursion: folders may lie in each other deeper than Python calls itself.
    walks = [_entries(folder, rules_above(folder), left)]
    while walks:
        entry, rules = next(walks[-1], (None, ()))
        if entry is None:
            walks.pop()
        elif entry.is_dir(follow_symlinks=False):
            walks.append(_entries(AbsPath(entry.path), rules, left))
        else:
            yield AbsPath(entry.path)


def _entries(
    folder: AbsPath, rules: Sequence[IgnoreRules], skipped: Skipped
) -> Iterator[tuple["os.DirEntry[str]", Sequence[IgnoreRules]]]:
    """The files of one folder and the folders to go on with, each with the rules of what is ignored in it."""
    own = read_rules(folder)
    rules = rules if own is None else (*rules, own)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        skipped.unreadable.append(folder)
        return
    for entry in entries:
        path, is_folder = AbsPath(entry.path), entry.is_dir(follow_symlinks=False)
        left_out = is_folder and (
            entry.name.startswith(".") or entry.name in DEPENDENCY_FOLDERS or is_linked_worktree(entry.path)
        )
        if left_out or is_ignored(path, rules):
            if is_folder and entry.name not in REPOSITORIES:
                skipped.ignored.append(path)
        elif is_folder or entry.is_file(follow_symlinks=False):
            yield entry, rules
        else:
            (skipped.links if entry.is_symlink() else skipped.special).append(path)
