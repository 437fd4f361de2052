"""The files below a folder: what git ignores, dependencies, hidden folders and links are left out."""

import os
from collections.abc import Iterator, Sequence

from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.system.watching.ignoring import IgnoreRules, is_ignored, read_rules, rules_above


def files_below(folder: AbsPath) -> Iterator[AbsPath]:
    """Regular files below a real folder, in the order of their paths."""
    yield from _walk(folder, rules_above(folder))


def _walk(folder: AbsPath, rules: Sequence[IgnoreRules]) -> Iterator[AbsPath]:
    own = read_rules(folder)
    rules = rules if own is None else (*rules, own)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path, is_folder = AbsPath(entry.path), entry.is_dir(follow_symlinks=False)
        if (is_folder and _is_passed_over(entry.name)) or is_ignored(path, rules):
            continue
        if is_folder:
            yield from _walk(path, rules)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or name in DEPENDENCY_FOLDERS
