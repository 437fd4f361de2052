"""What a server says of its whole project, file by file: what changed in it, and what of a file is new. Pure.

Messages count without their positions, each as often as it is there: an edit of another file moves nothing in this one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from zlib import crc32

from pilotfish.feedback.delta import Delta, lasting_words, place
from pilotfish.model import AbsPath, Diagnostic

FileAccount = Counter[int]
"""What is said of one file, as checksums of codes and messages."""

Account = Mapping[AbsPath, FileAccount]
"""A file that is not in it has nothing."""


def said(words: Iterable[tuple[str | None, str]]) -> FileAccount:
    """Of codes and messages."""
    return Counter(crc32(f"{code}\0{lasting_words(message)}".encode(errors="replace")) for code, message in words)


def said_of(diagnostics: Iterable[Diagnostic], server: str) -> FileAccount:
    """What this server says in a list that may be of several."""
    return said((one.code, one.message) for one in diagnostics if one.server == server)


def changed_files(before: Account, now: Account) -> tuple[AbsPath, ...]:
    """The files of which something new is said, then those of which something is not said any more."""
    nothing = FileAccount()
    gained = [path for path, found in now.items() if found - before.get(path, nothing)]
    lost = [path for path, found in before.items() if found - now.get(path, nothing)]
    return tuple(dict.fromkeys((*gained, *lost)))


def since_said(before: FileAccount, diagnostics: Iterable[Diagnostic], server: str) -> Delta:
    """What is new of this server's. What others say is not known to be, so it counts as older."""
    left, introduced, older = Counter(before), list[Diagnostic](), list[Diagnostic]()
    for one in sorted(diagnostics, key=place):
        (key,) = said([(one.code, one.message)])
        if one.server == server and left[key] <= 0:
            introduced.append(one)
        else:
            left[key] -= one.server == server
            older.append(one)
    return Delta(tuple(introduced), tuple(older), ())
