"""What a server's process inherits: an allow-list, so that tokens and agent sockets stay with us (T12, T35).

What leads into an untrusted workspace is left out, `PATH` entries above all: it would let the project decide which
program runs (T9).
"""

import os
from collections.abc import Iterable, Mapping

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside

INHERITED = frozenset({
    # Who and where.
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "TERM",
    # Networks that need it.
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    # Toolchains.
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
    # What Windows programs do not start without.
    "APPDATA", "COMSPEC", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
    "PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR",
})  # fmt: skip
"""Names that reach a server. Everything else does not: no rule by pattern would know every token."""

SEARCHED = frozenset({
    "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "ERL_LIBS", "GEM_PATH", "JULIA_DEPOT_PATH", "LD_LIBRARY_PATH",
    "LIBRARY_PATH", "LUA_CPATH", "LUA_PATH", "NODE_PATH", "OCAMLPATH", "PERL5LIB", "PKG_CONFIG_PATH", "PSModulePath",
    "PYTHONPATH", "RUBYLIB", "R_LIBS", "R_LIBS_USER",
})  # fmt: skip
"""Lists of folders with code: a relative or empty entry means the server's own folder, the root."""

INHERITED_FAMILIES = ("LC_", "XDG_", "ASDF_", "MISE_")
"""The same for names that start so; `MISE_` and `ASDF_` shims find their tools by them."""

NEVER = ("XDG_RUNTIME_DIR", "XDG_SESSION_")
"""Exceptions from the families: they lead to the sockets of the user's session."""


def child_environment(
    base: Mapping[str, str], added: Mapping[str, str], path: Iterable[AbsPath], untrusted: Iterable[AbsPath] = ()
) -> dict[str, str]:
    """The whole environment of a server. `added` is the spec's own and wins; `path` becomes `PATH`.

    A variable that names a place in `untrusted` is left out: an activated `VIRTUAL_ENV` is the project's, too.
    """
    folders = tuple(untrusted)
    inherited = {
        name: value
        for name, value in base.items()
        if _is_inherited(name) and not (folders and _leads_into(name, value, folders))
    }
    return {**inherited, "PATH": os.pathsep.join(path), **added}


def inheritable(entries: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What a server may inherit of an environment, and `PATH`: nothing else of another process is kept here."""
    return tuple((name, value) for name, value in entries if name == "PATH" or _is_inherited(name))


def search_path(path: str, territory: Iterable[AbsPath], *, trusted: bool) -> tuple[AbsPath, ...]:
    """The entries of `PATH` that may decide what runs.

    Never a relative or empty one. In an untrusted workspace none inside `territory`, whatever name it goes by.
    """
    folders = tuple(territory)
    entries = dict.fromkeys(
        AbsPath(os.path.normpath(entry)) for entry in path.split(os.pathsep) if os.path.isabs(entry)
    )
    return tuple(entry for entry in entries if trusted or not lies_in(entry, folders))


def lies_in(path: str, territory: Iterable[str]) -> bool:
    """Whether `path` is inside one of the folders, by its name or by where it really leads."""
    real = os.path.realpath(path)
    return any(is_inside(one, folder) for folder in territory for one in (path, real))


def _leads_into(name: str, value: str, folders: tuple[AbsPath, ...]) -> bool:
    entries = value.split(os.pathsep)
    if name in SEARCHED and not all(map(os.path.isabs, entries)):
        return True
    return any(os.path.isabs(entry) and lies_in(entry, folders) for entry in entries)


def _is_inherited(name: str) -> bool:
    return name in INHERITED or (name.startswith(INHERITED_FAMILIES) and not name.startswith(NEVER))
