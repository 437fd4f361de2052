"""What git has done to a working tree: read from its own files, and from the index and objects where these have moved.

Nothing of a repository is run for it: `git ls-files`, `diff-files` and `ls-tree` read the index, the status of files
and stored objects, as `system.git` runs them.
"""

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.system.git import NO_SUBMODULES, common_folder, git_folder, git_names
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import read_regular

UNFINISHED: Mapping[str, str] = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
}
"""What git keeps in its folder while it waits for somebody to resolve conflicts."""

INDEX = ":"

MAX_FILE = 4 * 1024 * 1024
"""Of a file that is read."""

MAX_LOG = 512 * 1024
"""Of what was added to the log of HEAD, some 200 bytes for each commit of a rebase; more is not told apart."""

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ENTRY = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*\t?(.*)")
"""A line of that log. What is given to git is a commit, and never an option."""

MAX_PATHS = 2_000
"""That are given to one git. Of more, the first ones are asked about, and the others count as git's, too."""


class GitState(Struct, frozen=True):
    """Where a working tree stands; two that are equal have nothing of git's between them."""

    folder: AbsPath
    """The working tree."""
    head: tuple[int, int] = (0, 0)
    """Size and time of the log of HEAD."""
    index: tuple[int, int] = (0, 0)
    stash: str = ""
    """The commit of the newest stash."""
    unfinished: str | None = None
    """What git is in the middle of."""


class GitMove(Struct, frozen=True):
    target: str | None
    """Where HEAD was put otherwise than by a commit, or `INDEX` where nothing was committed after that; None: it was
    not."""
    base: str
    """The commit of HEAD before."""
    stashes: frozenset[str]
    """Commits of stashes that may have been applied."""


def git_state(root: AbsPath) -> GitState | None:
    """Of the working tree that a folder is in; None outside of one. A few looks at files."""
    top, git = _working_tree(root)
    if git is None:
        return None
    return GitState(
        top,
        _look(os.path.join(git, "logs", "HEAD")),
        _look(os.path.join(git, "index")),
        _read(os.path.join(common_folder(git), "refs", "stash")).decode(errors="replace").strip(),
        next((name for file, name in UNFINISHED.items() if os.path.exists(os.path.join(git, file))), None),
    )


def repository_of(folder: AbsPath) -> tuple[AbsPath, str] | None:
    """The top of the working tree that a folder is in, and the folder of its repository; None outside of one."""
    top, git = _working_tree(folder)
    return None if git is None else (top, real_path(common_folder(git)))


def _working_tree(folder: AbsPath) -> tuple[AbsPath, str | None]:
    found = ((AbsPath(top), git_folder(os.path.join(top, ".git"))) for top in ancestors(folder))
    return next((one for one in found if one[1] is not None), (folder, None))


def git_move(before: GitState | None, now: GitState) -> GitMove | None:
    """What git did meanwhile; None: nothing. Blocking, reads what was added to the log of HEAD."""
    if before is None or before.folder != now.folder or before == now:
        return None
    git = git_folder(os.path.join(now.folder, ".git"))
    added = b"" if git is None else _read(os.path.join(git, "logs", "HEAD"), before.head[0], MAX_LOG)
    entries = [_ENTRY.match(line) for line in added.splitlines()]
    stashes = frozenset(one for one in (before.stash, now.stash) if _COMMIT.fullmatch(one))
    if now.head[0] < before.head[0] or len(added) == MAX_LOG or None in entries:
        # The log was rewritten: whatever happened, what is as in the index now is not somebody's own work.
        return GitMove(INDEX, "HEAD", stashes)
    # A branch that begins where HEAD is brings no file.
    known = [one for one in entries if one is not None and not (one[3].startswith(b"checkout") and one[1] == one[2])]
    base = os.fsdecode(known[0][1]) if known else "HEAD"
    moves = [entry for entry in known if not entry[3].startswith(b"commit")]
    if not moves:
        return GitMove(None, base, stashes)
    return GitMove(INDEX if moves[-1] is known[-1] else os.fsdecode(moves[-1][2]), base, stashes)


def brought_by_git(git: str, state: GitState, move: GitMove, paths: Collection[AbsPath]) -> frozenset[AbsPath]:
    """Which of these files, all changed since then, have what git put there. Blocking: for a thread.

    After a move of HEAD these are the files that are as git left them; without one, those that are as in the commit
    from before, which `git restore` and `git stash` bring back, and those that are as in a stash. This errs towards
    git in one case: somebody who writes by hand just what the commit has.
    """
    names = {os.path.relpath(path, state.folder): path for path in list(paths)[:MAX_PATHS]}
    there = {name: path for name, path in names.items() if os.path.isfile(path)}
    if move.target == INDEX:
        tracked = _listed(git, state, "ls-files", "-z", "--", *there)
        found = (tracked & there.keys()) - _listed(
            git, state, "diff-files", NO_SUBMODULES, "--name-only", "-z", "--", *there
        )
        # What is gone and not in the index any more was removed with it.
        found |= (names.keys() - there.keys()) - _listed(git, state, "ls-files", "-z", "--", *names)
    else:
        found = _as_in(git, state, move.target or move.base, there)
    for stash in move.stashes:
        found |= _as_in(git, state, stash, there)
    return frozenset(names[name] for name in found) | frozenset(list(paths)[MAX_PATHS:])


def moved_paths(git: str, state: GitState, move: GitMove) -> frozenset[AbsPath]:
    """The files in which the commits that a move went between differ: on a busy machine they are noticed later than
    the move itself. Blocking: for a thread."""
    pairs = [(f"{stash}^", stash) for stash in move.stashes]
    if move.target is not None:
        pairs.append((move.base, "HEAD" if move.target == INDEX else move.target))
    found = [_listed(git, state, "diff-tree", "-r", "-z", "--name-only", "--no-renames", *pair) for pair in pairs]
    return frozenset(AbsPath(os.path.join(state.folder, name)) for name in frozenset[str]().union(*found))


def _as_in(git: str, state: GitState, commit: str, names: Mapping[str, AbsPath]) -> frozenset[str]:
    """The files with the content that they have in a commit."""
    rows = _listed(git, state, "ls-tree", "-z", "--full-tree", commit, "--", *names)
    stored = {name: words.split()[-1] for words, _, name in (row.partition("\t") for row in rows) if words}
    found: set[str] = set()
    for name, blob in stored.items():
        if name in names:
            content = _read(names[name])
            # A name of 64 digits where the repository uses SHA-256.
            hashed = hashlib.sha256() if len(blob) == 64 else hashlib.sha1(usedforsecurity=False)
            hashed.update(b"blob %d\0" % len(content) + content)
            found |= {name} if hashed.hexdigest() == blob else set()
    return frozenset(found)


def _listed(git: str, state: GitState, *words: str) -> frozenset[str]:
    return frozenset(git_names(git, state.folder, *words) or ())


def _look(path: str) -> tuple[int, int]:
    with suppress(OSError, ValueError):
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    return 0, 0


def _read(path: str, offset: int = 0, most: int = MAX_FILE) -> bytes:
    """What a regular file has from there on; nothing where it cannot be read."""
    return read_regular(path, most, offset=offset) or b""
