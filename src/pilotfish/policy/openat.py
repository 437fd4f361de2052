"""Opening and changing files below a root by descriptors, one step per folder (T29).

A path that was checked can be another file by the time it is opened. So nothing here takes a whole path: every folder
is opened in the one before it, without following symbolic links, and the last step happens in the folder that is
already open. However fast somebody swaps folders for links meanwhile, what is opened lies below the root.
A root is a real path, whose own parents only its owner can change.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.system.ports import Identity

STEP_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""`O_PATH`, where there is one: a folder on the way need not be readable."""

NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

NEW_FILE_MODE = 0o666
"""Of a file that was not there before, less the umask; one that was keeps its own."""


def open_beneath(root: AbsPath, segments: Sequence[str], flags: int, mode: int = NEW_FILE_MODE) -> int:
    """Open a regular file below `root`; the descriptor is the caller's to close.

    Raises `Refused`: `outside_workspace` for a link or a step out, `not_a_file`, `file_missing`, `file_unreadable`.
    """
    with parent_of(root, segments) as (folder, name), explained(segments):
        # Opening a device can have effects of its own: look first, and again at what was opened.
        if (status := status_of(folder, name)) is not None:
            refuse_unless_regular(status, segments)
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=folder)
        try:
            refuse_unless_regular(os.fstat(descriptor), segments)
        except Refused:
            os.close(descriptor)
            raise
        return descriptor


def create_beneath(root: AbsPath, segments: Sequence[str], content: bytes) -> Identity:
    """Write a file that is not there yet, all of it or nothing; `invalid_input` when something is."""
    with parent_of(root, segments) as (folder, name), explained(segments):
        with _temporary(folder, name, NEW_FILE_MODE) as (temporary, descriptor):
            write_all(descriptor, content)
            # A link never replaces anything, unlike a rename: no check that could be too old.
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            written = identity_of(os.fstat(descriptor))
        sync_folder(folder)
        return written


def replace_beneath(root: AbsPath, segments: Sequence[str], content: bytes, expected: Identity) -> Identity:
    """Write over the file that `content` was made from, all of it or nothing; its mode stays.

    Returns what is there now. Another file there than `expected` is `stale`.
    """
    with parent_of(root, segments) as (folder, name), explained(segments):
        before = _expected(folder, name, expected, segments)
        with _temporary(folder, name, 0o600) as (temporary, descriptor):
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            write_all(descriptor, content)
            _expected(folder, name, expected, segments)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            written = identity_of(os.fstat(descriptor))
        sync_folder(folder)
        return written


def rename_beneath(root: AbsPath, old: Sequence[str], new: Sequence[str]) -> None:
    """Move a regular file to a name below the same root that nothing has yet."""
    with parent_of(root, old) as (source, old_name), parent_of(root, new) as (target, new_name), explained(old):
        status = status_of(source, old_name)
        if status is None:
            raise Refused(Code.FILE_MISSING, f"{_shown(old)} does not exist")
        refuse_unless_regular(status, old)
        # As above: the new name must be free, and only the system can say so in time.
        os.link(old_name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        os.unlink(old_name, dir_fd=source)


def remove_beneath(root: AbsPath, segments: Sequence[str]) -> None:
    """Delete a regular file below `root`."""
    with parent_of(root, segments) as (folder, name), explained(segments):
        status = status_of(folder, name)
        if status is None:
            raise Refused(Code.FILE_MISSING, f"{_shown(segments)} does not exist")
        refuse_unless_regular(status, segments)
        os.unlink(name, dir_fd=folder)


@contextmanager
def parent_of(root: AbsPath, segments: Sequence[str]) -> Generator[tuple[int, str]]:
    """The open folder that holds the last of `segments`, and that name."""
    *folders, name = _plain(segments)
    try:
        descriptor = os.open(root, STEP_FLAGS)
    except OSError as error:
        raise Refused(Code.ROOT_GONE, f"{root} cannot be opened: {error.strerror}") from None
    try:
        for folder in folders:
            inner = _step(descriptor, folder, segments)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


def make_folders_beneath(root: AbsPath, segments: Sequence[str]) -> None:
    """Make the folders on the way to a file that is to be written."""
    for depth in range(1, len(segments)):
        with parent_of(root, segments[:depth]) as (folder, name), explained(segments), suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)


def identity_of(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def _plain(segments: Sequence[str]) -> Sequence[str]:
    """Each segment must be one name: `..`, a slash or a NUL would make a step lead elsewhere."""
    for segment in segments:
        if segment in {"", ".", ".."} or "/" in segment or "\0" in segment:
            raise Refused(Code.OUTSIDE_WORKSPACE, f"{_shown(segments)} is not a path below its root")
    if not segments:
        raise Refused(Code.NOT_A_FILE, "the root itself is not a file")
    return segments


def _step(folder: int, name: str, segments: Sequence[str]) -> int:
    with explained(segments):
        try:
            return os.open(name, STEP_FLAGS, dir_fd=folder)
        except NotADirectoryError:
            # A link gives this too, since a folder was asked for.
            if (status := status_of(folder, name)) is not None and stat.S_ISLNK(status.st_mode):
                raise Refused(Code.OUTSIDE_WORKSPACE, f"{_shown(segments)} leads through a symbolic link") from None
            raise Refused(Code.FILE_MISSING, f"{_shown(segments)} does not exist") from None


def status_of(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def refuse_unless_regular(status: os.stat_result, segments: Sequence[str]) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Refused(Code.OUTSIDE_WORKSPACE, f"{_shown(segments)} is a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(Code.NOT_A_FILE, f"{_shown(segments)} is not a regular file")


def _expected(folder: int, name: str, expected: Identity, segments: Sequence[str]) -> os.stat_result:
    status = status_of(folder, name)
    if status is not None:
        refuse_unless_regular(status, segments)
    if status is None or identity_of(status) != expected:
        raise Refused(Code.STALE, f"{_shown(segments)} has changed since it was read")
    return status


@contextmanager
def _temporary(folder: int, name: str, mode: int) -> Generator[tuple[str, int]]:
    """A new file in `folder`; its name is gone at the end, whatever happened."""
    temporary = f".{secrets.token_hex(8)}.{name[:32]}.tmp"
    descriptor = os.open(temporary, NEW_FILE_FLAGS, mode, dir_fd=folder)
    try:
        yield temporary, descriptor
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):  # Renamed: it has become the file itself.
            os.unlink(temporary, dir_fd=folder)


def write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def sync_folder(folder: int) -> None:
    """Make a rename last. A folder that may be written but not read cannot be synced: the file itself was."""
    with suppress(PermissionError):
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


@contextmanager
def explained(segments: Sequence[str]) -> Generator[None]:
    """What the system says, as what it means here."""
    try:
        yield
    except FileNotFoundError:
        raise Refused(Code.FILE_MISSING, f"{_shown(segments)} does not exist") from None
    except OSError as error:
        raise Refused(_code(error), f"{_shown(segments)}: {error.strerror}") from None


def _code(error: OSError) -> Code:
    """Links are refused whether they lead out or not: a real path has none, so this one was swapped in."""
    match error.errno:
        case errno.ELOOP | errno.EMLINK:
            return Code.OUTSIDE_WORKSPACE
        case errno.ENXIO | errno.EISDIR:
            return Code.NOT_A_FILE
        case errno.EEXIST:
            return Code.INVALID_INPUT
        case _:
            return Code.FILE_UNREADABLE


def _shown(segments: Sequence[str]) -> str:
    return "/".join(segments)
