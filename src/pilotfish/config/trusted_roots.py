"""The entries of `security.trustedProjectRoots`: which folders they cover (TRUST-2, TRUST-3). Pure.

A plain entry covers its folder and everything below it, by whole segments. An entry with a glob character is matched
as picomatch does with `dot: true`. Only the candidate's real path is ever compared, and entries are taken as written:
an entry that is a symbolic link covers nothing, because nobody's real path goes through it.
"""

import os
import re
import sys

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.glob_regex import BadGlob
from pilotfish.protocol.picomatch import path_glob

GLOB = re.compile(r"[*?\[\]{}]|[@!+]\(")
"""What makes an entry a glob. Brackets and braces that a folder really has in its name must be matched by a glob."""

IGNORE_CASE = sys.platform == "win32"


def is_glob(entry: str) -> bool:
    return GLOB.search(entry) is not None


def fault(entry: str) -> str | None:
    """What is wrong with an entry as a pattern, or None."""
    try:
        covers(entry, AbsPath("/nowhere"), AbsPath("/home"))
    except BadGlob as error:
        return str(error)
    return None


def covers(entry: str, candidate: AbsPath, home: AbsPath) -> bool:
    """Whether `entry` trusts the real path `candidate`; raises `BadGlob` for a pattern that is none."""
    absolute = home + entry[1:] if entry == "~" or entry.startswith("~/") else entry
    if not os.path.isabs(absolute):
        return False
    expanded, folder = _slashed(absolute), _slashed(candidate)
    if is_glob(entry):
        return path_glob(expanded, ignore_case=IGNORE_CASE).matches(folder)
    return ".." not in expanded.split("/") and is_inside(folder, expanded)


def _slashed(path: str) -> str:
    path = path.replace("\\", "/") if sys.platform == "win32" else path
    return path.rstrip("/") or "/"
