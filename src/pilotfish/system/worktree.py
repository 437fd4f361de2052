"""Where a workspace begins when the client does not say so."""

import os


def top_of(folder: str) -> str:
    """The git worktree that a folder is in; the folder itself without one. A home kept in git is none."""
    home, candidate = os.path.expanduser("~"), folder
    while candidate not in {home, "/"}:
        if os.path.lexists(os.path.join(candidate, ".git")):
            return candidate
        candidate = os.path.dirname(candidate)
    return folder
