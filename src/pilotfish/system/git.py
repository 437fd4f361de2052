"""The last committed text of a file, read by git with nothing of the repository run.

`git cat-file` reads an object as it is stored: no filter, no text conversion, no hook, no pager. What is left by which
a repository could have something run is a partial clone that fetches what is missing, and that is switched off. The
user's own configuration is not read, so a repository of somebody else stays closed, as git has it.
"""

import os
import subprocess
from collections.abc import Mapping

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
