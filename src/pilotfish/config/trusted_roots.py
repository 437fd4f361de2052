"""The entries of `security.trustedProjectRoots`: which folders they cover (TRUST-2, TRUST-3). Pure.

A plain entry covers its folder and everything below it, by whole segments. An entry with a glob character is read by
the rules of `protocol.globs`, dot files included, and must match the whole path. Only the candidate's real path is
compared, and entries are taken as written: an entry that is a symbolic link covers nothing, because no real path goes
through it. An entry that cannot be read as a glob is an error of the configuration and covers nothing.
"""

import os
import re
import sys
import unicodedata

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.globs import BadGlob, lsp_glob

GLOB = re.compile(r"[*?\[\]{}]|[@!+]\(")
"""What makes an entry a glob. Brackets and braces that a folder really has in its name must be matched by a glob."""

UNSUPPORTED = re.compile(r"[?*+@!]\(|\\|\{[^,{}]*\.\.[^,{}]*\}|\s\Z")
"""Syntax of other glob dialects: groups `@(a|b)`, escapes and ranges `{1..3}` would mean something else here, and
`lsp_glob` drops white space at the end. None of them may turn into a pattern that the person did not write."""

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
    """Whether `entry` trusts the real path `candidate`; raises `BadGlob` for a pattern that cannot be read."""
    covered = _glob_covers(entry, candidate, home) if is_glob(entry) else _folder_covers(entry, candidate, home)
    # No real path has `..` or an empty segment in it: such a candidate was not resolved.
    return covered and candidate == os.path.normpath(candidate) and not candidate.startswith("//")


def _folder_covers(entry: str, candidate: AbsPath, home: AbsPath) -> bool:
    absolute = home + entry[1:] if entry == "~" or entry.startswith("~/") else entry
    if not os.path.isabs(absolute):
        return False
    folder = comparable(absolute)
    return ".." not in folder.split("/") and is_inside(comparable(candidate), folder)


def _glob_covers(entry: str, candidate: AbsPath, home: AbsPath) -> bool:
    pattern = comparable(entry)
    if found := UNSUPPORTED.search(pattern):
        raise BadGlob(f"{found[0]!r} is not supported in a glob")
    below_home = pattern.startswith("~/")
    glob = lsp_glob(pattern[1:] if below_home else pattern, ignore_case=IGNORE_CASE)
    if not (below_home or os.path.isabs(entry)):
        return False
    # The home folder is compared as it is: its name may hold characters that a pattern gives a meaning.
    base, folder = comparable(home) if below_home else "", comparable(candidate)
    return is_inside(folder, base) and glob.matches(folder[len(base) :])


def comparable(path: str, platform: str = sys.platform) -> str:
    """With `/` between segments and without one at the end: the root folder is the empty string.

    Two names are one where the system takes them for one: on Windows in any case, on macOS in any composition of their
    letters. Case counts on macOS, where a volume may tell it apart: an entry must not cover more than was meant.
    """
    if platform == "win32":
        path = path.replace("\\", "/").lower()
    elif platform == "darwin":
        path = unicodedata.normalize("NFC", path)
    return path.rstrip("/")
