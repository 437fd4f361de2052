"""Document URIs and the paths they name.

What goes out has one encoder, exact: the bytes of the path, everything percent-encoded in upper-case hex except ASCII
letters, digits, `-._~` and `/`, which is the set that VS Code leaves bare and so the one that servers know best.
What comes in has one decoder, tolerant: whatever a server escaped or left bare, it names the same path. URIs are
therefore compared as decoded paths (`path_of`), never as strings.

Rules of the decoder: percent-escapes are decoded exactly once, `.` and `..` go after that, and a NUL refuses the URI,
so that a check of containment sees the path that would be opened. A `%` that starts no escape is a plain `%`. `#`
and `?` are plain characters: the URI of a file has neither query nor fragment, but careless servers leave them bare.
Any scheme but `file` names no path: such a URI stays opaque, word for word.

Windows spellings depend on the string alone, not on this machine: a drive becomes `C:\\...` with an upper-case letter,
a host becomes `\\\\host\\share\\...`. Hence a POSIX folder `/c:` is taken for a drive; the specification says that
`c%3A` is one, and no such folder exists in practice.
"""

import os
import posixpath
import re
import sys
from functools import lru_cache

from pilotfish.errors import Bug
from pilotfish.model import AbsPath, Uri


@lru_cache(maxsize=4096)
def uri_of(path: AbsPath) -> Uri:
    """The one URI that we send for `path`."""
    if path.startswith("/") and not path.startswith(_HOST_PATHS):
        return Uri("file://" + _escaped(path))
    if path.startswith(_LONG):
        # What lifts Windows' limit of 260 characters: `\\?\C:\x`, `\\?\UNC\host\share`.
        rest = path.removeprefix(_LONG)
        path = AbsPath("\\\\" + rest[4:] if rest[:4].upper() == "UNC\\" else rest)
    if drive := _DRIVE_PATH.match(path):
        return Uri(f"file:///{drive[1].upper()}:" + _escaped(path[drive.end() :].replace("\\", "/")))
    if path.startswith(("\\\\", "//")):
        return Uri("file:" + _escaped(path.replace("\\", "/")))
    raise Bug(f"a URI was wanted for {path!r}, which is not absolute")


def path_of(uri: str) -> AbsPath | None:
    """The path that `uri` names, however it is encoded; None when it names none."""
    parts = _FILE_URI.fullmatch(uri)
    if parts is None:
        return None
    host, path = _unescaped(parts[1] or ""), _unescaped(parts[2])
    if host is None or path is None:
        return None
    if _DRIVE.fullmatch(host):
        # `file://c:/x`: two slashes before a Windows path.
        host, path = "", host + path
    plain = _normalised(path)
    if drive := _DRIVE_PATH.match(plain):
        return AbsPath(f"{drive[1].upper()}:" + _windows(plain[drive.end() :]))
    if host and host.lower() != "localhost":
        return _share(host, path)
    return AbsPath(plain) if path.startswith("/") else None


_SEPARATOR = "/" if sys.platform == "win32" else "\\"
"""How their segments are divided: on Windows as in all of ours, elsewhere so that none is taken for one of ours."""
_HOST_PATHS = ("//",) if sys.platform == "win32" else ()
_LONG = "\\\\?\\"
_FILE_URI = re.compile(r"file:(?://([^/\\]*))?(.*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:")
_DRIVE_PATH = re.compile(r"[/\\]?([A-Za-z]):(?=[/\\]|\Z)")
_HOST = re.compile(r"[\w$-][\w.$-]*", re.ASCII)

_BARE = re.compile(r"[A-Za-z0-9\-._~/]*")
_ESCAPES = tuple(chr(byte) if _BARE.fullmatch(chr(byte)) else f"%{byte:02X}" for byte in range(256))
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BYTES = {b"%02X" % byte: bytes((byte,)) for byte in range(256)}


def _escaped(path: str) -> str:
    if _BARE.fullmatch(path):
        return path
    return "".join([_ESCAPES[byte] for byte in os.fsencode(path)])


def _unescaped(text: str) -> str | None:
    """`text` with its escapes decoded once; None when it has a NUL or is not Unicode text."""
    if "%" in text or not text.isascii():
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return None
        text = os.fsdecode(_ESCAPE.sub(lambda escape: _BYTES[escape[1].upper()], data))
    return None if "\0" in text else text


def _normalised(path: str) -> str:
    # `normpath` keeps a pair of leading slashes, which POSIX lets mean something else and Linux does not.
    return posixpath.normpath("/" + path.lstrip("/"))


def _windows(path: str) -> str:
    return _normalised(path.replace("\\", "/")).replace("/", _SEPARATOR)


def _share(host: str, path: str) -> AbsPath | None:
    rest = _windows(path)
    if rest == _SEPARATOR or _DRIVE_PATH.match(rest):
        # No share is called like a drive, and the URI of one would name that.
        return None
    return AbsPath(_SEPARATOR * 2 + host.lower() + rest) if _HOST.fullmatch(host) else None
