"""Whether a variable leads into an untrusted workspace: by a folder, a file inside an option, or a relative name (T47).

A server runs with its root as working folder, so what is relative leads there; so does `/proc/self/cwd`, whatever it
looks like from here. Variables are the user's own, but shells activate environments and hosts add folders; what is
doubtful is left out.
"""

import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote  # noqa: TID251 -- a part of a variable, of which nobody knows what it is

from pilotfish.paths import is_inside
from pilotfish.system.real_path import real_path

SEARCHED = frozenset({
    "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "ERL_LIBS", "GEM_PATH", "JULIA_DEPOT_PATH", "LD_LIBRARY_PATH",
    "LIBRARY_PATH", "NODE_PATH", "OCAMLPATH", "PERL5LIB", "PKG_CONFIG_PATH", "PSModulePath", "PYTHONPATH", "RUBYLIB",
    "R_LIBS", "R_LIBS_USER", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS",
})  # fmt: skip
"""Lists of folders with code: a relative or empty entry means the server's own folder, and a folder above the root
makes the root a module of its name."""

WORDS = frozenset({
    "ALL_PROXY", "CC", "CXX", "GOFLAGS", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "HTTPS_PROXY", "HTTP_PROXY",
    "LANG", "LANGUAGE", "LOGNAME", "NO_PROXY", "NUMBER_OF_PROCESSORS", "OPAMSWITCH", "PATHEXT", "PP",
    "PROCESSOR_ARCHITECTURE", "RUSTUP_TOOLCHAIN", "SYSTEMDRIVE", "TERM", "TZ", "USER", "USERNAME", "all_proxy",
    "http_proxy", "https_proxy", "no_proxy",
})  # fmt: skip
"""Variables whose value need not be a path: a plain word in them leads nowhere."""

WORD_FAMILIES = ("LC_", "XDG_", "ASDF_", "MISE_")

WITH_SLASHES = frozenset({
    "ALL_PROXY", "GOPRIVATE", "GOPROXY", "GOSUMDB", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "TZ", "all_proxy",
    "http_proxy", "https_proxy", "no_proxy",
})  # fmt: skip
"""Words that have slashes and are no relative paths: `Europe/Berlin`, `example.com/private`, addresses."""

GO_FLAGS = frozenset({"buildvcs", "mod", "p", "race", "tags", "trimpath", "v", "x"})
"""Flags of Go that name no file and no program. Others do (`-toolexec`, `-overlay`, `-modfile`), and more will."""

CONSENTS = frozenset({"MISE_TRUSTED_CONFIG_PATHS", "MISE_YES"})
"""What answers questions of other tools about trust: yes for any project is no answer for this one."""

MAX_VALUE = 32_768
"""Characters of a value that are looked through; a longer one leads who knows where."""

MOVING = ("/proc/", "/dev/fd/")
"""Places that mean something else in another process."""

_ROOTED = re.compile(r"""[~/][^:;,\s"'=]*""")
_ENTRY = re.compile("[:;]")
_PIECE = re.compile(r"""[^:;,\s"'=]+""")


def lies_in(path: str, territory: Iterable[str]) -> bool:
    """Whether `path` is inside one of the folders, by its name or by where it really leads."""
    real = real_path(path)
    if any(one.startswith(MOVING) for one in (path, real)):
        return True
    return any(is_inside(one, folder) for folder in territory for one in (path, real))


def outside_entries(name: str, value: str, folders: tuple[str, ...]) -> tuple[str, ...] | None:
    """The entries of a list of folders that stay; None when the variable is no such list."""
    if name not in SEARCHED or len(value) > MAX_VALUE:
        return None
    return tuple(entry for entry in value.split(os.pathsep) if os.path.isabs(entry) and not _reaches(entry, folders))


def leads_into(name: str, value: str, folders: tuple[str, ...]) -> bool:
    """Whether any part of the value is a place in one of the folders, or could be."""
    if name in CONSENTS or len(value) > MAX_VALUE:
        return True
    if name == "GOFLAGS" and not all(_is_plain_go_flag(word) for word in value.split()):
        return True
    if any(lies_in(place, folders) for place in _absolute_places(value)):
        return True
    if name in WORDS or name.startswith(WORD_FAMILIES):
        return name not in WITH_SLASHES and any(_looks_relative(piece) for piece in _PIECE.findall(value))
    return not all(entry.startswith(("/", "~")) for entry in _ENTRY.split(value))


def _reaches(entry: str, folders: tuple[str, ...]) -> bool:
    real = real_path(entry)
    return lies_in(entry, folders) or any(is_inside(folder, real) for folder in folders)


def _absolute_places(value: str) -> Iterator[str]:
    """Everything in the value that could be read as an absolute path: whole, as a list, in an option, in an address."""
    for text in dict.fromkeys((value, unquote(value))):
        for place in (*text.split(os.pathsep), *_ROOTED.findall(text)):
            expanded = os.path.expanduser(place)
            if os.path.isabs(expanded) and "\0" not in expanded:
                yield "/" + os.path.normpath(expanded).lstrip("/")


def _looks_relative(piece: str) -> bool:
    return piece.startswith(".") or ("/" in piece and not piece.startswith("/"))


def _is_plain_go_flag(word: str) -> bool:
    return word.lstrip("-").partition("=")[0] in GO_FLAGS
