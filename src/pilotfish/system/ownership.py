"""Whose a file is. What another user made decides nothing for this one: no root, no program, no configuration (T56)."""

import os
import stat
import sys
from contextlib import suppress
from functools import cache

from pilotfish.paths import ancestors, is_inside, top_folder
from pilotfish.system import calls
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import read_regular

KEPT = ("PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMROOT", "USERPROFILE")
"""Where Windows lets only administrators write, or only the user."""

MAX_POINTER = 8 * 1024
"""Of a `.git` that is a file."""


def is_foreign(status: os.stat_result) -> bool:
    """Whether neither this user nor the system owns a file."""
    return status.st_uid != calls.user() and status.st_uid not in _system_users()


def is_own_folder(path: str) -> bool:
    """Whether only this user and the system decide what is in a folder, now or by swapping one above it.

    Windows lets everybody make folders beside its own and the users': there, only what is in those is sure.
    """
    folder = real_path(path)
    if sys.platform == "win32":
        return any(is_inside(folder, real_path(os.environ[name])) for name in KEPT if os.environ.get(name))
    with suppress(OSError):  # what cannot be looked at is not known to be ours
        if os.stat(folder).st_mode & stat.S_IWOTH:
            return False
        while not is_foreign(status := os.stat(folder)):
            if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
                return False
            if folder == os.path.dirname(folder):
                return True
            folder = os.path.dirname(folder)
    return False


def is_private(status: os.stat_result) -> bool:
    """Whether a file is this user's alone: nothing that came with a repository is."""
    return status.st_uid == calls.user() and not calls.mode_of(status) & (stat.S_IRWXG | stat.S_IRWXO)


def make_private_folders(folder: str) -> None:
    """Make a folder, and what is missing above it, for this user alone; `os.makedirs` gives its mode to the last."""
    if not os.path.isdir(above := os.path.dirname(folder)):
        make_private_folders(above)
    try:
        os.mkdir(folder, stat.S_IRWXU)
        calls.keep_others_out(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise


def own_home() -> str:
    """The home folder of this user, by the system and not by a variable, where the system says so."""
    if sys.platform == "win32":
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


@cache
def _system_users() -> frozenset[int]:
    """Who owns the system: root; in a sandbox with users of its own, whoever root looks like there."""
    users = {0}
    for folder in ("/", "/usr"):
        with suppress(OSError):
            users.add(os.stat(folder).st_uid)
    return frozenset(users)


# --- Where a workspace begins when the client does not say so ---------------------------------------------------------


def top_of(folder: str) -> str:
    """The git worktree that a folder is in; the folder itself without one. What `.git` points at is not followed (T3).

    A home kept in git is none, and neither is what another user made: in a place that all may write to, their `.git`
    above our folder would decide what belongs to it (T56).
    """
    homes = {os.path.expanduser("~"), real_path(os.path.expanduser("~")), top_folder(folder)}
    candidate = folder
    while candidate not in homes:
        with suppress(OSError):
            if not any(map(is_foreign, (os.lstat(os.path.join(candidate, ".git")), os.stat(candidate)))):
                return candidate
        candidate = os.path.dirname(candidate)
    return folder


def is_linked_worktree(folder: str) -> bool:
    """Whether another worktree of a repository begins here, which `git worktree` has made; a submodule is none."""
    return b"/worktrees/" in (read_regular(os.path.join(folder, ".git"), MAX_POINTER) or b"")


def is_of_linked_worktree(path: str, folder: str) -> bool:
    """Whether what is below a folder belongs to another worktree, which begins in between."""
    return any(map(is_linked_worktree, ancestors(path, folder)[:-1]))


def is_in_worktree(path: str, folder: str) -> bool:
    """Whether something is below a folder, and in the same worktree."""
    return is_inside(path, folder) and not is_of_linked_worktree(path, folder)
