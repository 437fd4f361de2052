"""What a server's process inherits: an allow-list, so that tokens and agent sockets stay with us (T12, T35).

What leads into an untrusted workspace is left out (`leads_into`), `PATH` entries above all: it would let the
project decide which program runs (T9, T47).
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote  # noqa: TID251 -- a part of a variable, of which nobody knows what it is

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.system.ownership import is_own_folder
from pilotfish.system.real_path import real_path

PERSON = frozenset({
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "TERM",
})  # fmt: skip
"""Who runs it, and where."""

NETWORKS = frozenset({
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
})  # fmt: skip
"""What some networks need."""

TOOLCHAIN_VARIABLES = frozenset({
    "ANDROID_HOME", "CARGO_HOME", "CC", "CONDA_PREFIX", "CPATH", "CPLUS_INCLUDE_PATH", "CXX", "C_INCLUDE_PATH",
    "DART_SDK", "DENO_DIR", "DEVELOPER_DIR", "DOTNET_CLI_HOME", "DOTNET_ROOT", "ELAN_HOME", "ERL_LIBS", "FLUTTER_ROOT",
    "FPCDIR", "GEM_HOME", "GEM_PATH", "GHCUP_INSTALL_BASE_PREFIX", "GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPATH",
    "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB", "GOTOOLCHAIN", "GRADLE_USER_HOME", "HEX_HOME", "JAVA_HOME",
    "JULIA_DEPOT_PATH", "KOTLIN_HOME", "LD_LIBRARY_PATH", "LIBRARY_PATH", "LUA_CPATH", "LUA_PATH", "MAVEN_HOME",
    "M2_HOME", "MIX_HOME", "MSBuildSDKsPath", "NIX_PATH", "NIX_PROFILES", "NIX_SSL_CERT_FILE", "NODE_PATH",
    "NPM_CONFIG_PREFIX", "NVM_DIR", "OCAMLPATH", "OPAMROOT", "OPAMSWITCH", "OPAM_SWITCH_PREFIX", "PERL5LIB",
    "PKG_CONFIG_PATH", "PNPM_HOME", "PP", "PSModulePath", "PUB_CACHE", "PYENV_ROOT", "PYTHONPATH", "RBENV_ROOT",
    "RUBYLIB", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "R_HOME", "R_LIBS", "R_LIBS_USER", "SDKMAN_DIR", "SDKROOT",
    "STACK_ROOT", "SWIFTLY_HOME_DIR", "UV_CACHE_DIR", "VIRTUAL_ENV", "VOLTA_HOME", "ZIG_GLOBAL_CACHE_DIR",
})  # fmt: skip

WINDOWS = frozenset({
    "APPDATA", "COMSPEC", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
    "PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR",
})  # fmt: skip
"""What its programs do not start without."""

INHERITED = PERSON | NETWORKS | TOOLCHAIN_VARIABLES | WINDOWS
"""Names that reach a server. Everything else does not: no rule by pattern would know every token."""

INHERITED_FAMILIES = ("LC_", "XDG_", "ASDF_", "MISE_")
"""The same for names that start so; `MISE_` and `ASDF_` shims find their tools by them."""

FAMILY_MEMBERS = frozenset({
    "ASDF_CONFIG_FILE", "ASDF_DATA_DIR", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
    "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "MISE_CACHE_DIR",
    "MISE_CONFIG_DIR", "MISE_DATA_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS",
    "XDG_DATA_HOME", "XDG_STATE_HOME",
})  # fmt: skip
"""Those of the families that a host can be told by name, where it passes on nothing else."""

NEVER = ("XDG_RUNTIME_DIR", "XDG_SESSION_")
"""Exceptions from the families: they lead to the sockets of the user's session."""

MAX_ENTRIES = 500  # Of `PATH`; people's have some twenty, and each is looked at

PASSING = frozenset({"LOGNAME", "MISE_SHELL", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER", "USERNAME"})
"""What differs from terminal to terminal and changes nothing that a server does."""

TOOLCHAINS = (
    "bundle", "cargo", "cc", "clang", "composer", "dart", "deno", "dotnet", "elixir", "erl", "gcc", "ghc", "git", "go",
    "java", "julia", "lua", "node", "npm", "ocaml", "opam", "perl", "php", "python", "python3", "R", "ruby", "rustc",
    "rustup", "shellcheck", "swift", "zig",
)  # fmt: skip
"""Programs that language servers run: which of them `PATH` leads to is part of what a server is."""


def child_environment(
    base: Mapping[str, str], added: Mapping[str, str], path: Iterable[AbsPath], *, untrusted: Iterable[AbsPath]
) -> dict[str, str]:
    """The whole environment of a server. `added` is the spec's own and wins; `path` becomes `PATH`.

    A variable that names a place in `untrusted` is left out: an activated `VIRTUAL_ENV` is the project's, too. Of a
    list of folders the other entries stay.
    """
    folders = tuple(untrusted)
    inherited = {name: value for name, value in base.items() if _is_inherited(name)}
    if folders:
        kept = ((name, _outside(name, value, folders)) for name, value in inherited.items())
        inherited = {name: value for name, value in kept if value is not None}
    return {**inherited, "PATH": os.pathsep.join(path), **added}


def inheritable(entries: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a server may inherit of an environment, and `PATH`: nothing else of another process is kept here."""
    return tuple((name, value) for name, value in entries if name == "PATH" or _is_inherited(name))


def search_path(path: str, territory: Iterable[AbsPath], *, trusted: bool) -> tuple[AbsPath, ...]:
    """The entries of `PATH` that may decide what runs.

    Never a relative or empty one. In an untrusted workspace only the user's own places: none inside `territory`,
    whatever name it goes by, and none that another user can write to (T48).
    """
    folders = tuple(territory)
    entries = _absolute_entries(path)
    return tuple(entry for entry in entries if trusted or not (lies_in(entry, folders) or _is_anyones(entry)))


def beside_us(path: Iterable[AbsPath], territory: Iterable[AbsPath], *, trusted: bool) -> tuple[AbsPath, ...]:
    """The folder of the environment that `pilotfish` on the `PATH` is installed in, which may bring servers along.

    What installs programs (uv, pipx) puts a link to ours into a folder of the `PATH`, and to no program beside it.
    """
    links = (os.path.join(folder, "pilotfish") for folder in path)
    found = next((link for link in links if os.path.islink(link) and os.path.isfile(link)), None)
    return () if found is None else search_path(os.path.dirname(real_path(found)), territory, trusted=trusted)


def foreign_path(path: str) -> tuple[AbsPath, ...]:
    """The entries of `PATH` that are not the user's own places: looked at only to say that a program is there."""
    return tuple(entry for entry in _absolute_entries(path) if _is_anyones(entry))


def fingerprint(environment: Mapping[str, str], programs: Iterable[str]) -> str:
    """Differs when a server would do something else in another environment (T48).

    Of `PATH` counts only to which `programs` it leads: hosts put folders of their own in front, one for each session.
    """
    passing = (name for name in environment if name.startswith("XDG_") and not name.endswith(("_HOME", "_DIRS")))
    said = sorted((name, environment[name]) for name in environment.keys() - {"PATH", *PASSING, *passing})
    digest = hashlib.sha256()
    for part in (*(part for pair in said for part in pair), *programs):
        encoded = os.fsencode(part)
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()[:16]


def _outside(name: str, value: str, folders: tuple[AbsPath, ...]) -> str | None:
    """What is left of a variable when nothing in it leads into the folders; None when nothing is."""
    if name in SEARCHED and len(value) <= MAX_VALUE:
        entries = (entry for entry in value.split(os.pathsep) if os.path.isabs(entry) and not _reaches(entry, folders))
        return os.pathsep.join(entries) or None
    return None if leads_into(name, value, folders) else value


def _absolute_entries(path: str) -> Iterable[AbsPath]:
    entries = path.split(os.pathsep, MAX_ENTRIES)[:MAX_ENTRIES]
    return dict.fromkeys(_normal(entry) for entry in entries if os.path.isabs(entry))


def _normal(path: str) -> AbsPath:
    """`normpath` keeps two slashes at the front, which mean one everywhere but on Windows."""
    normal = os.path.normpath(path)
    return AbsPath(normal if sys.platform == "win32" else "/" + normal.lstrip("/"))


def _is_anyones(entry: str) -> bool:
    return os.path.isdir(entry) and not is_own_folder(entry)


def _is_inherited(name: str) -> bool:
    return name in INHERITED or (name.startswith(INHERITED_FAMILIES) and not name.startswith(NEVER))


# --- Whether a variable leads into an untrusted workspace ------------------------------------------------------------


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

WITH_SLASHES = frozenset({
    "ALL_PROXY", "GOPRIVATE", "GOPROXY", "GOSUMDB", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "TZ", "all_proxy",
    "http_proxy", "https_proxy", "no_proxy",
})  # fmt: skip
"""Words that have slashes and are no relative paths: `Europe/Berlin`, `example.com/private`, addresses."""

GO_FLAGS = frozenset({"buildvcs", "mod", "p", "race", "tags", "trimpath", "v", "x"})
"""Flags of Go that name no file and no program. Others do (`-toolexec`, `-overlay`, `-modfile`), and more will."""

CONSENTS = frozenset({"MISE_TRUSTED_CONFIG_PATHS", "MISE_YES"})
"""What answers questions of other tools about trust: yes for any project is no answer for this one."""

MAX_VALUE = 32_768  # Characters of a value that are looked through; a longer one leads who knows where
MOVING = ("/proc/", "/dev/fd/")  # Places that mean something else in another process

_DRIVE = r"(?:[A-Za-z]:)?" if sys.platform == "win32" else ""
_ROOTED = re.compile(_DRIVE + r"""[~/\\][^:;,\s"'=]*""" if _DRIVE else r"""[~/][^:;,\s"'=]*""")
_ENTRY = re.compile(";" if _DRIVE else "[:;]")
_PIECE = re.compile(r"""[^:;,\s"'=]+""")


def lies_in(path: str, territory: Iterable[str]) -> bool:
    """Whether `path` is inside one of the folders, by its name or by where it really leads."""
    real = real_path(path)
    if any(one.startswith(MOVING) for one in (path, real)):
        return True
    return any(is_inside(one, folder) for folder in territory for one in (path, real))


def leads_into(name: str, value: str, folders: tuple[str, ...]) -> bool:
    """Whether any part of the value is a place in one of the folders, or could be (T47).

    A server runs with its root as working folder, so what is relative leads there; so does `/proc/self/cwd`, whatever
    it looks like from here. Variables are the user's own, but shells activate environments and hosts add folders; what
    is doubtful is left out.
    """
    if name in CONSENTS or len(value) > MAX_VALUE:
        return True
    if name == "GOFLAGS" and any(word.lstrip("-").partition("=")[0] not in GO_FLAGS for word in value.split()):
        return True
    if any(lies_in(place, folders) for place in _absolute_places(value)):
        return True
    if name in WORDS or name.startswith(INHERITED_FAMILIES):
        pieces = () if name in WITH_SLASHES else _PIECE.findall(value)
        return any(piece.startswith(".") or ("/" in piece and not piece.startswith("/")) for piece in pieces)
    return not all(entry.startswith("~") or os.path.isabs(entry) for entry in _ENTRY.split(value))


def _reaches(entry: str, folders: tuple[str, ...]) -> bool:
    real = real_path(entry)
    return lies_in(entry, folders) or any(is_inside(folder, real) for folder in folders)


def _absolute_places(value: str) -> Iterator[str]:
    """Everything in the value that could be read as an absolute path: whole, as a list, in an option, in an address."""
    for text in dict.fromkeys((value, unquote(value))):
        for place in (*text.split(os.pathsep), *_ROOTED.findall(text)):
            expanded = os.path.expanduser(place)
            if os.path.isabs(expanded) and "\0" not in expanded:
                yield _normal(expanded)
