"""Where a workspace begins when the client does not say so."""

import os

from pilotfish.system.ownership import is_foreign
from pilotfish.system.real_path import real_path


def top_of(folder: str) -> str:
    """The git worktree that a folder is in; the folder itself without one. What `.git` points at is not followed (T3).

    A home kept in git is none, and neither is what another user made: in a place that all may write to, their `.git`
    above our folder would decide what belongs to it (T56).
    """
    homes = {os.path.expanduser("~"), real_path(os.path.expanduser("~")), "/"}
    candidate = folder
    while candidate not in homes:
        if _is_own_repository(candidate):
            return candidate
        candidate = os.path.dirname(candidate)
    return folder


def _is_own_repository(folder: str) -> bool:
    try:
        return not (is_foreign(os.lstat(os.path.join(folder, ".git"))) or is_foreign(os.stat(folder)))
    except OSError:
        return False
