"""What our code takes from `os`, on Windows too: `/` between names, open folders, links that are not followed.

Windows takes `/` wherever it takes a backslash, and URIs, git, globs and the other systems write nothing else. So there
the functions of Python that make a path make one with `/`, and a path is compared as everywhere. `dir_fd` is a handle
of a folder; one that is pinned lets nobody rename or delete it: until it is closed, its name leads to it, as those of
the folders above do, which Windows keeps from being renamed meanwhile. Replaced are functions of `os`, in our own
processes and in one that opens our library: with arguments that Windows' own functions take, they do the same.
"""

import errno
import hashlib
import ntpath
import os
import stat
import sys
import types
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

NO_FOLLOW, FOLDER, PINNED = 1 << 28, 1 << 29, 1 << 27
"""Flags of `open` that Windows does not have, as bits that it does not use. A pinned folder keeps its name."""

MAKERS = ("abspath", "commonpath", "expanduser", "expandvars", "join", "normpath", "realpath", "relpath")
"""The functions of `os.path` that make a path."""

LIST_AND_TRAVERSE, SHARE_READ_WRITE, SHARE_DELETE, OPEN_EXISTING = 0x1000A1, 0x3, 0x4, 3
"""To list, to go on from, to look at, and to wait for: with less, the others need not mind us."""
ALREADY_EXISTS = 183
BACKUP_SEMANTICS, OPEN_REPARSE_POINT = 0x2000000, 0x200000
REPARSE_POINT, DIRECTORY = 0x400, 0x10
MAX_NAME = 32_768
PRIVATE = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;OW)"
"""A list of access, as Windows writes it: nothing from the folder above; everything for the three."""
DACL = 0x80000004
"""The list, without what the folder above gives."""


def slashed(text: str) -> str:
    """A path with `/`. What starts with `\\\\?\\` is taken by Windows word for word, and stays."""
    return text if text.startswith("\\\\?\\") else text.replace("\\", "/")


def path_module() -> types.ModuleType:
    """`ntpath`, with functions that make paths with `/`. Pure, so that its rules are tables that run everywhere."""
    made = types.ModuleType("os.path", ntpath.__doc__)
    made.__dict__.update(vars(ntpath))
    for name in MAKERS:
        setattr(made, name, _writing_slashes(getattr(ntpath, name)))
    return made


def _writing_slashes(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        made = function(*arguments, **named)
        return slashed(made) if isinstance(made, str) else made

    return wrapped


if sys.platform == "win32":
    import ctypes
    import msvcrt

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateFileW.restype = _kernel.CreateMutexW.restype = ctypes.c_void_p
    _locks: dict[int, ctypes.c_void_p] = {}
    _INVALID = ctypes.c_void_p(-1).value

    def install() -> None:
        """Replace them, once."""
        if os.sep == "/":
            return
        os.sep = "/"
        os.path = sys.modules["os.path"] = path_module()
        for name in ("getcwd", "readlink"):
            setattr(os, name, _writing_slashes(getattr(os, name)))
        for name in ("stat", "unlink", "mkdir", "rmdir"):
            setattr(os, name, _in_folder(getattr(os, name)))
        for name in ("link", "rename", "replace"):
            setattr(os, name, _between_folders(getattr(os, name)))
        os.open, os.close, os.fsync = _opening(os.open), _closing(os.close), _syncing(os.fsync)
        os.scandir, os.listdir = _listing(os.scandir), _listing(os.listdir)

    def keep_others_out(folder: str) -> None:
        """Let only its owner, the system and its administrators into a folder, and into all that is made in it."""
        security, descriptor = ctypes.WinDLL("advapi32", use_last_error=True), ctypes.c_void_p()
        made = security.ConvertStringSecurityDescriptorToSecurityDescriptorW(PRIVATE, 1, ctypes.byref(descriptor), None)
        if not (made and security.SetFileSecurityW(folder, DACL, descriptor)):
            raise ctypes.WinError(ctypes.get_last_error())
        _kernel.LocalFree(descriptor)

    def _in_folder(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(path: Any, *arguments: Any, dir_fd: int | None = None, **named: Any) -> Any:
            return function(_placed(path, dir_fd), *arguments, **named)

        return wrapped

    def _between_folders(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(
            source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None, **_: object
        ) -> Any:
            return function(_placed(source, src_dir_fd), _placed(target, dst_dir_fd))

        return wrapped

    def _opening(function: Callable[..., int]) -> Callable[..., int]:
        @wraps(function)
        def wrapped(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            path = _placed(path, dir_fd)
            if flags & FOLDER:
                return _open_folder(path, flags)
            if flags & NO_FOLLOW and os.path.islink(path):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            return function(path, flags & ~NO_FOLLOW | os.O_BINARY, mode)

        return wrapped

    def _closing(function: Callable[[int], None]) -> Callable[[int], None]:
        @wraps(function)
        def wrapped(descriptor: int) -> None:
            if descriptor in _locks:
                _kernel.CloseHandle(_locks.pop(descriptor))
            function(descriptor)

        return wrapped

    def _syncing(function: Callable[[int], None]) -> Callable[[int], None]:
        @wraps(function)
        def wrapped(descriptor: int) -> None:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):  # names are in the journal of the file system
                function(descriptor)

        return wrapped

    def lock_folder(descriptor: int) -> None:
        """Lock an open folder for as long as it is open, by a name that all processes of the user's session know."""
        name = hashlib.sha256(_path_of(descriptor).lower().encode(errors="replace")).hexdigest()
        handle = ctypes.c_void_p(_kernel.CreateMutexW(None, 0, f"pilotfish-{name}"))
        if not handle or ctypes.get_last_error() == ALREADY_EXISTS:
            _kernel.CloseHandle(handle)
            raise BlockingIOError
        _locks[descriptor] = handle

    def _listing(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(path: Any = ".") -> Any:
            folder = cast("Any", _path_of(path) if isinstance(path, int) else os.fspath(path))
            # Of a folder that ends so, the paths of the entries have a slash there.
            return function(folder + "/" if isinstance(folder, str) else folder)

        return wrapped

    def _placed(path: Any, folder: int | None) -> Any:
        return path if folder is None else os.path.join(_path_of(folder), path)

    def _path_of(folder: int) -> str:
        name = ctypes.create_unicode_buffer(MAX_NAME)
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(folder))
        if not _kernel.GetFinalPathNameByHandleW(handle, name, MAX_NAME, 0):
            raise ctypes.WinError(ctypes.get_last_error())
        # Without what makes Windows take a path word for word, `.` and slashes included.
        plain = name.value.removeprefix("\\\\?\\")
        return slashed("\\\\" + plain[4:] if plain.startswith("UNC\\") else plain)

    def _open_folder(path: str, flags: int) -> int:
        follow = not flags & NO_FOLLOW
        share = SHARE_READ_WRITE if flags & PINNED else SHARE_READ_WRITE | SHARE_DELETE
        how = BACKUP_SEMANTICS if follow else BACKUP_SEMANTICS | OPEN_REPARSE_POINT
        handle = _kernel.CreateFileW(path, LIST_AND_TRAVERSE, share, None, OPEN_EXISTING, how, None)
        if handle == _INVALID:
            raise ctypes.WinError(ctypes.get_last_error())
        descriptor = msvcrt.open_osfhandle(handle, os.O_RDONLY)
        attributes = os.fstat(descriptor).st_file_attributes
        if not attributes & DIRECTORY or (not follow and attributes & REPARSE_POINT):
            os.close(descriptor)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return descriptor
