"""What git knows of files, read with nothing of the repository run: committed texts, and which files changed.

`git cat-file` reads an object as it is stored: no filter, no text conversion, no hook, no pager. By what is left a
repository could have something run, and that is switched off: a partial clone that fetches what is missing, filters,
hooks, a monitor of files, and submodules, whose own configuration is not ours to switch off, so none is entered. Where
we cannot tell which filters there are, git is not run. The user's own configuration is not read, so a repository of
another user stays closed, as git has it.
"""

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.system import calls
from pilotfish.system.regular_files import read_regular

SECONDS = 2.0
"""An object is read in milliseconds; a network file system may take longer."""

MAX_BYTES = 8 * 1024 * 1024

VARIABLES: Mapping[str, str] = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

LIST_SECONDS = 30.0
"""For the changes of a whole worktree: git may have to look at every file."""

SAFE: Mapping[str, str] = {
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "submodule.recurse": "false",
}
"""Settings by which a repository could name a program that git runs to list changes, or a file that it waits for;
filters come on top."""

FILTER_KEYS: Mapping[str, str] = {"clean": "", "smudge": "", "process": "", "required": "false"}
"""An empty command means: no filter."""

NO_SUBMODULES = "--ignore-submodules=all"
"""For every command that compares a worktree: git runs `git status` in each submodule, with the submodule's filters."""

OWN_FILES = (
    "config",
    "config.worktree",
    "HEAD",
    "index",
    "packed-refs",
    "info/exclude",
    "info/attributes",
    "commondir",
)
"""What git reads of a repository before it does anything."""

MAX_CONFIG_BYTES = 256 * 1024

MAX_INCLUDES = 20
"""Of one repository; git itself follows ten levels."""

_INCLUDED = re.compile(rb"(?im)(?:^|\])[ \t]*path[ \t]*=[ \t]*([^\r\n]*)")

NOTHING_FOUND = 1
"""What `git config` exits with when no key matches."""


def run_git(
    git: str, folder: AbsPath, words: Sequence[str], variables: Mapping[str, str], given: bytes | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in a folder, with nothing of the repository or the user run. Blocking: for a thread.

    Raises `OSError` where it cannot be started, `Refused` where the repository may not be read, and
    `subprocess.TimeoutExpired`.
    """
    settings = _settings(git, folder)
    if settings is None:
        raise Refused(Code.INVALID_INPUT, f"the configuration of the repository of {folder} cannot be read")
    # As variables they win over the repository's.
    named = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return _run(git, folder, words, {**named, **variables}, LIST_SECONDS, given)


def git_names(git: str, folder: AbsPath, *words: str) -> list[str] | None:
    """What git prints, split at NULs; None where it fails. Names that are given to it are no patterns. Blocking."""
    try:
        done = run_git(git, folder, words, {"GIT_LITERAL_PATHSPECS": "1"})
    except (OSError, ValueError, Refused, subprocess.TimeoutExpired):
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else None


def changed_files(git: str, folder: AbsPath) -> tuple[AbsPath, ...] | None:
    """Files below a folder that differ from HEAD, that are gone or untracked and not ignored; None: git cannot say.

    Filters of the repository do not run, so a file may be listed that git itself would call unchanged. Submodules are
    not listed. Without a commit, every file is new. Blocking.
    """
    if (found := differing(git, folder)) is None:
        return None
    paths = (path for several in found for path in several)
    return tuple(path for path in paths if os.path.isfile(path) or not os.path.lexists(path))


def differing(git: str, folder: AbsPath) -> tuple[tuple[AbsPath, ...], tuple[AbsPath, ...]] | None:
    """The same, in two: the paths that HEAD has, and the untracked ones. Blocking."""
    options = ("--name-only", "--relative", "--no-renames", NO_SUBMODULES, "-z")
    names = git_names(git, folder, "diff-index", *options, "HEAD", "--")
    if names is None:
        names = git_names(git, folder, "ls-files", "--cached", "-z")
    others = git_names(git, folder, "ls-files", "--others", "--exclude-standard", "-z")
    if names is None or others is None:
        return None
    tracked = dict.fromkeys(AbsPath(os.path.join(folder, name)) for name in names)
    untracked = dict.fromkeys(AbsPath(os.path.join(folder, name)) for name in others)
    return tuple(tracked), tuple(path for path in untracked if path not in tracked)


def why_silent(folder: AbsPath, git: str | None) -> str:
    """Why `changed_files` says nothing of a folder, or cannot be asked without a git, in a sentence."""
    for above in ancestors(folder):
        if os.path.lexists(os.path.join(above, ".git")):
            if git is None:
                return "git was not found."
            if os.stat(above).st_uid != calls.user():
                return f"{above} belongs to another user, so git does not read it (dubious ownership)."
            return f"git cannot list the changes of {folder}."
    return f"{folder} is not in a git repository."


def committed_content(git: str, path: AbsPath) -> bytes | None:
    """What HEAD has of a file; None where it has nothing of it, or nothing can be said. Blocking: for a thread."""
    folder, name = os.path.split(path)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        # The folder is gone, too.
        folder, name = os.path.dirname(folder), os.path.join(os.path.basename(folder), name)
    if not is_readable(folder):
        return None
    try:
        done = _run(git, folder, ("cat-file", "blob", f"HEAD:./{name}"), {}, SECONDS, None)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= MAX_BYTES else None


def _settings(git: str, folder: AbsPath) -> Mapping[str, str] | None:
    """`SAFE`, and every filter that the repository defines switched off; None where we cannot tell which there are."""
    if not is_readable(folder):
        return None
    words = ("config", "--name-only", "-z", "--get-regexp", r"^filter\.")
    try:
        done = _run(git, folder, words, {}, SECONDS, None)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if done.returncode not in {0, NOTHING_FOUND}:
        return None
    filters = {os.fsdecode(key).rpartition(".")[0] for key in done.stdout.split(b"\0") if key}
    return {**SAFE, **{f"{name}.{key}": value for name in filters for key, value in FILTER_KEYS.items()}}


def _run(
    git: str,
    folder: str,
    words: Sequence[str],
    variables: Mapping[str, str],
    seconds: float,
    given: bytes | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [git, "-C", folder, *words],
        input=given or b"",
        capture_output=True,
        env={**VARIABLES, **variables, "PATH": os.path.dirname(git)},
        timeout=seconds,
        check=False,
    )


def is_readable(folder: str) -> bool:
    """Whether git would wait for nobody there: a FIFO in place of a file, or included by one, blocks it for ever."""
    place = next((place for above in ancestors(folder) if os.path.lexists(place := os.path.join(above, ".git"))), None)
    if place is None:
        return True
    git = git_folder(place)
    # At a NUL the name ends for git, and for nobody else.
    if git is None or "\0" in _line(os.path.join(git, "commondir")):
        return False
    files = [os.path.join(one, name) for one in dict.fromkeys((git, common_folder(git))) for name in OWN_FILES]
    if not all(map(_is_regular, files)):
        return False
    known = [file for file in files if os.path.basename(file).startswith("config") and os.path.exists(file)]
    for file in known:
        text = read_regular(file, MAX_CONFIG_BYTES, is_whole=True)
        if text is None or len(known) > MAX_INCLUDES:
            return False
        for name in _included(text):
            place = None if name is None else os.path.join(os.path.dirname(file), name)
            if place is None or not _is_regular(place):
                return False
            if os.path.exists(place) and place not in known:
                known.append(place)
    return True


def git_folder(place: str) -> str | None:
    """The folder of the repository that a `.git` is, or names; None where it is none."""
    if os.path.isdir(place):
        return place
    named = _line(place)
    if not named.startswith("gitdir: "):
        return None
    folder = os.path.join(os.path.dirname(place), named.removeprefix("gitdir: "))
    return folder if "\0" not in folder and os.path.isdir(folder) else None


def common_folder(git: str) -> str:
    """Of a linked working tree, the folder of the repository itself."""
    named = _line(os.path.join(git, "commondir"))
    folder = os.path.join(git, named)
    return folder if named and "\0" not in folder and os.path.isdir(folder) else git


def _line(path: str) -> str:
    # As git takes it: any other blank is of the name, and a repository may have a folder for each of the two names.
    return os.fsdecode((read_regular(path, MAX_CONFIG_BYTES) or b"").rstrip(b"\r\n"))


def _included(config: bytes) -> Iterator[str | None]:
    """The files that a configuration may include; None for a name that only git can read."""
    if b"[include" not in config.lower():
        return
    if b"\\" in config:  # a name may go on in the next line, or be spelled with escapes
        yield None
    for found in _INCLUDED.finditer(config):
        name = found[1].strip().removeprefix(b'"').removesuffix(b'"')
        yield None if re.search(rb'^[~%]|[";#]', name) else os.fsdecode(name)


def _is_regular(path: str) -> bool:
    """Whether a file is one, or is not there at all."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
