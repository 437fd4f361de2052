"""Paths as segments. Pure: no file system here, so resolve symbolic links first where they matter."""

import os
import re
import sys
from itertools import pairwise

DEPENDENCY_FOLDERS = frozenset({
    ".bundle", ".dart_tool", ".eggs", ".gradle", ".m2", ".nox", ".nuget", ".pnpm-store", ".pub-cache",
    ".stack-work", ".tox", ".venv", ".yarn", "CMakeFiles", "Carthage", "Pods", "__pypackages__", "bower_components",
    "dist-packages", "elm-stuff", "jspm_packages", "node_modules", "site-packages", "vendor", "venv",
})  # fmt: skip
"""Folders of other people's code and of what builds make, wherever they lie: no reason to start a server."""

PACKAGE_FOLDERS = frozenset({"dist-packages", "node_modules", "site-packages"})
"""Those of them that a package manager fills with sources of the same language."""

BIN = "Scripts" if sys.platform == "win32" else "bin"
"""Where an environment of Python has its programs."""

PROGRAM_FOLDERS = ("node_modules/.bin", f".venv/{BIN}", f"venv/{BIN}", "vendor/bin")
"""Where projects keep the programs that they depend on."""

DEPENDENCY_TREES = (
    ("pkg", "mod"),
    ("rustlib", "src"),
    ("registry", "src"),
    ("stdlib", "typeshed"),
    ("typeshed-fallback", "stdlib"),
    ("typeshed-fallback", "stubs"),
)
"""The same where one name alone says too little: Go's module cache, Rust's sources, the stubs of Python servers."""

SYSTEM_FOLDERS = (
    "/usr/include", "/usr/lib", "/usr/lib64", "/usr/local/include", "/usr/local/lib", "/usr/local/go",
    "/opt/homebrew", "/nix/store", "/Library/Developer", "/Applications/Xcode.app",
)  # fmt: skip
"""Where systems keep installed libraries."""


_PACKAGES = re.compile(rf".*?/(?:{'|'.join(sorted(PACKAGE_FOLDERS))})(?=/|$)")

_UNDECODED = re.compile(r"[\udc80-\udcff]")
"""The bytes of a file name that are not UTF-8, as `os.fsdecode` keeps them."""


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or below it, by whole segments: `/work2` is not inside `/work`."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def below(path: str, folder: str) -> tuple[str, ...] | None:
    """The segments from `folder` down to `path`; empty for the folder itself, None when `path` is not inside."""
    if not is_inside(path, folder):
        return None
    return tuple(filter(None, path[len(folder.rstrip("/")) :].split("/")))


def shown_path(path: str, workspace: str) -> str:
    """Relative inside the workspace, absolute outside; bytes that are not text are shown as `\\xff`."""
    folder = workspace.rstrip("/") + "/"
    shown = path.removeprefix(folder) or path
    return shown if shown.isascii() else _UNDECODED.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", shown)


def top_folder(path: str) -> str:
    """The folder that all others on its system are in; on Windows, that of the drive or of the share."""
    return os.path.splitdrive(path)[0] + "/"


def ancestors(folder: str, top: str = "") -> tuple[str, ...]:
    """`folder`, its parent and so on up to `top`, both included; empty when `folder` is not inside `top`."""
    segments = below(folder, top or top_folder(folder))
    if segments is None:
        return ()
    found = [folder]
    for _ in segments:
        found.append(os.path.dirname(found[-1]))
    return tuple(found)


def distance(path: str, other: str) -> int:
    """Steps between the folders of two files."""
    return len(os.path.relpath(os.path.dirname(path), os.path.dirname(other)).split(os.sep))


def is_dependency(segments: tuple[str, ...]) -> bool:
    folders = segments[:-1]
    if not DEPENDENCY_FOLDERS.isdisjoint(folders):
        return True
    return not set(pairwise(folders)).isdisjoint(DEPENDENCY_TREES)


def is_installed(path: str) -> bool:
    """Whether it lies in a folder that a package manager fills."""
    return not PACKAGE_FOLDERS.isdisjoint(path.split("/")[:-1])


def package_folder(path: str) -> str | None:
    """The outermost folder that a package manager fills and that this path is, or lies in."""
    found = _PACKAGES.match(path)
    return None if found is None else found[0]


def is_library(path: str) -> bool:
    """Whether an absolute path, outside every workspace, is that of an installed library."""
    if any(is_inside(path, folder) for folder in SYSTEM_FOLDERS):
        return True
    return is_dependency(below(path, top_folder(path)) or ())
