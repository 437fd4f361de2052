"""What is in a folder right now. Links are names like files; pipes, sockets and devices are not there."""

import errno
import os
import stat
from enum import Enum, auto

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.paths import is_installed
from pilotfish.system import calls
from pilotfish.system.real_path import real_path


class NameKind(Enum):
    FILE = auto()
    """A regular file, or a link to anything."""
    FOLDER = auto()


class ListedName(Struct, frozen=True):
    """One name. `stamp` is the time of the last change of status in nanoseconds: no program can set that."""

    kind: NameKind
    inode: int
    stamp: int
    is_shared: bool = False
    """A link, or a file with several names: it can be written under another name, of which nobody here is told."""


class Listing(Struct, frozen=True):
    inode: int
    """That of the folder itself."""
    files: dict[str, int]
    """Name → time of the last change of status, in nanoseconds."""
    folders: dict[str, int]
    """Name → inode."""
    shared: frozenset[str] = frozenset()
    """The files among these that are links or have several names."""


class Shortage(Struct, frozen=True):
    """The system could not list a folder for lack of something; later it may."""

    reason: str


def look_at(path: AbsPath) -> ListedName | None:
    """What has that name; None when nothing has that counts."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        return None
    is_shared = kind is NameKind.FILE and _is_shared(path, status, is_link=stat.S_ISLNK(status.st_mode))
    return ListedName(kind, status.st_ino, calls.changed_ns(status), is_shared)


def target_stamp(path: AbsPath) -> int:
    """When the file that a name leads to last changed its status; 0 when it leads to none.

    Of a folder, a number below -1 that no other folder has.
    """
    try:
        status = os.stat(path)
    except OSError:
        return 0
    if stat.S_ISDIR(status.st_mode):
        return -2 - status.st_ino
    return calls.changed_ns(status) if stat.S_ISREG(status.st_mode) else 0


def linked_folder(path: AbsPath) -> str | None:
    """The real path of the folder that a link leads to; None for anything else."""
    return real_path(path) if os.path.islink(path) and os.path.isdir(path) else None


def inode_of(folder: AbsPath, *, follow: bool = True) -> int | None:
    """The inode of a folder, or of the one that a link leads to; None when there is none."""
    try:
        status = os.stat(folder, follow_symlinks=follow)
    except OSError:
        return None
    return status.st_ino if stat.S_ISDIR(status.st_mode) else None


def listing(folder: AbsPath, *, follow: bool) -> Listing | Shortage | None:
    """All that is in a folder; None when it cannot be listed. `follow` says that it may be a link to one."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | calls.O_DIRECTORY | (0 if follow else calls.O_NOFOLLOW))
        try:
            return _listed(descriptor, folder)
        finally:
            os.close(descriptor)
    except OSError as error:
        return Shortage(os.strerror(error.errno).lower()) if error.errno in _SHORTAGES else None


def _listed(descriptor: int, folder: AbsPath) -> Listing:
    own = os.fstat(descriptor)
    files: dict[str, int] = {}
    folders: dict[str, int] = {}
    shared: set[str] = set()
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders[entry.name] = entry.inode()
            elif (is_link := entry.is_symlink()) or entry.is_file(follow_symlinks=False):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    # It is gone by now.
                    continue
                files[entry.name] = calls.changed_ns(status)
                if (is_link or status.st_nlink > 1) and _is_shared(join(folder, entry.name), status, is_link=is_link):
                    shared.add(entry.name)
    return Listing(own.st_ino, files, folders, frozenset(shared))


def _is_shared(path: AbsPath, status: os.stat_result, *, is_link: bool) -> bool:
    """Whether it can be written under another name: a link, or a file with several names.

    uv and pnpm give every installed file a second name in their store, where files are replaced and never written; and
    pnpm makes a link for each dependency of each package, to a folder that is watched itself.
    """
    if is_link:
        return f"{os.sep}node_modules{os.sep}" not in path
    return status.st_nlink > 1 and not is_installed(path)


def join(folder: AbsPath, name: str) -> AbsPath:
    return AbsPath(f"{folder}{os.sep}{name}" if folder != os.sep else os.sep + name)


_KINDS = {stat.S_IFREG: NameKind.FILE, stat.S_IFLNK: NameKind.FILE, stat.S_IFDIR: NameKind.FOLDER}

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
