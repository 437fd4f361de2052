"""What git knows of files, read with nothing of the repository run: committed texts, and which files changed.

`git cat-file` reads an object as it is stored: no filter, no text conversion, no hook, no pager. What is left by which
a repository could have something run is a partial clone that fetches what is missing, and that is switched off. The
user's own configuration is not read, so a repository of another user stays closed, as git has it.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence

from pilotfish.model import AbsPath

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


LIST_SECONDS = 60.0
"""For the changes of a whole worktree: git may have to look at every file."""

SAFE: Mapping[str, str] = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}
"""Settings by which a repository could name a program that git runs to list changes; filters come on top."""

FILTER_KEYS: Mapping[str, str] = {"clean": "", "smudge": "", "process": "", "required": "false"}
"""An empty command means: no filter."""


def run_git(
    git: str, folder: AbsPath, words: Sequence[str], variables: Mapping[str, str], given: bytes | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in a folder, with nothing of the repository or the user run. Blocking: for a thread.

    Raises `OSError` where it cannot be started, and `subprocess.TimeoutExpired`.
    """
    settings = _settings(git, folder)
    named = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return subprocess.run(
        [git, "-C", folder, *words],
        input=given or b"",
        capture_output=True,
        env={**VARIABLES, **named, **variables, "PATH": os.path.dirname(git)},
        timeout=LIST_SECONDS,
        check=False,
    )


def changed_files(git: str, folder: AbsPath) -> tuple[AbsPath, ...] | None:
    """Files below a folder that differ from HEAD or are untracked and not ignored; None where git cannot say. Blocking.

    Filters of the repository do not run, so a file may be listed that git itself would call unchanged. Deleted files
    are not listed. Without a commit, every file is new.
    """
    settings = _settings(git, folder)
    differing = ("diff-index", "--name-only", "--relative", "--no-renames", "--diff-filter=d", "-z", "HEAD", "--")
    names = _listed(git, folder, differing, settings)
    if names is None:
        names = _listed(git, folder, ("ls-files", "--cached", "-z"), settings)
    others = _listed(git, folder, ("ls-files", "--others", "--exclude-standard", "-z"), settings)
    if names is None or others is None:
        return None
    paths = dict.fromkeys(os.path.join(folder, name) for name in (*names, *others))
    return tuple(AbsPath(path) for path in paths if os.path.isfile(path))


def _settings(git: str, folder: AbsPath) -> Mapping[str, str]:
    """`SAFE`, and every filter that the repository defines switched off."""
    keys = _listed(git, folder, ("config", "--name-only", "-z", "--get-regexp", r"^filter\."), {}) or []
    filters = {key.rpartition(".")[0] for key in keys}
    return {**SAFE, **{f"{name}.{key}": value for name in filters for key, value in FILTER_KEYS.items()}}


def _listed(git: str, folder: AbsPath, words: tuple[str, ...], settings: Mapping[str, str]) -> list[str] | None:
    """What git prints, split at NULs."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    try:
        done = subprocess.run(
            [git, "-C", folder, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**VARIABLES, **variables, "PATH": os.path.dirname(git)},
            timeout=LIST_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else None


def committed_content(git: str, path: AbsPath) -> bytes | None:
    """What HEAD has of a file; None where it has nothing of it, or nothing can be said. Blocking: for a thread."""
    folder, name = os.path.split(path)
    try:
        done = subprocess.run(
            [git, "-C", folder, "cat-file", "blob", f"HEAD:./{name}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**VARIABLES, "PATH": os.path.dirname(git)},
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= MAX_BYTES else None
