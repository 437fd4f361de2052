"""Opening and naming files below a root by descriptors, one step per folder, as `openat(2)` has it (T29).

A path that was checked can be another file by the time it is opened. So nothing here takes a whole path: every folder
is opened in the one before it, without following symbolic links, and the last step happens in the folder that is
already open. However fast another process swaps folders for links meanwhile, what is opened lies below the root.
A root is a real path, whose own parents only its owner can change.

A file with a second name (a hard link) survives whatever happens to the first one, as the same file: its content, its
mode, its time, and what another program is writing into it.
"""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.system import calls
from pilotfish.system.ports import Identity

STEP_FLAGS = calls.O_PATH | calls.O_DIRECTORY | calls.O_NOFOLLOW
"""`O_PATH`, where there is one: a folder on the way need not be readable."""

NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | calls.O_NOFOLLOW

NEW_FILE_MODE = 0o666
"""Of a file that was not there before, less the umask; one that was keeps its own."""

NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK, errno.ENOSYS})
"""What a file system says that has no second names, or none for this file."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""A name more may need space; moving the one that is there does not."""


def open_beneath(root: AbsPath, segments: Sequence[str]) -> int:
    """Open a regular file below `root` for reading; the descriptor is the caller's to close.

    Raises `Refused`: `outside_workspace` for a link or a step out, `not_a_file`, `file_missing`, `file_unreadable`.
    """
    with parent_of(root, segments) as (folder, name):
        # Opening a device can have effects of its own: look first, and again at what was opened.
        if (status := status_of(folder, name)) is not None:
            _refuse_unless_regular(status, segments)
        descriptor = _open(folder, name)
        try:
            _refuse_unless_regular(os.fstat(descriptor), segments)
        except Refused:
            os.close(descriptor)
            raise
        return descriptor


@contextmanager
def parent_of(root: AbsPath, segments: Sequence[str]) -> Generator[tuple[int, str]]:
    """The open folder that holds the last of `segments`, and that name.

    What the system refuses in the block is raised as `Refused`, with what it means here.
    """
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
    except FileNotFoundError:
        raise Refused(Code.FILE_MISSING, f"{_shown(segments)} does not exist") from None
    except OSError as error:
        raise Refused(_code(error), f"{_shown(segments)}: {error.strerror}") from None
    finally:
        os.close(descriptor)


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
    try:
        return os.open(name, STEP_FLAGS, dir_fd=folder)
    except NotADirectoryError:
        # A link gives this too, since a folder was asked for; so does one that is a folder again by now.
        status = status_of(folder, name)
        if status is not None and (stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise Refused(Code.OUTSIDE_WORKSPACE, f"{_shown(segments)} leads through a symbolic link") from None
        raise FileNotFoundError from None


def status_of(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _refuse_unless_regular(status: os.stat_result, segments: Sequence[str]) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Refused(Code.OUTSIDE_WORKSPACE, f"{_shown(segments)} is a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(Code.NOT_A_FILE, f"{_shown(segments)} is not a regular file")


def give_name(folder: int, name: str, new: str) -> None:
    """Let the file `name` be `new`, which must be free; `name` may stay as its second name."""
    try:
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS | NO_ROOM:
            raise
        if status_of(folder, new) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=folder)


def drop_name(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def sync_folder(folder: int) -> None:
    """Make a rename last. A folder that may be written but not read cannot be synced: the file itself was."""
    with suppress(PermissionError):
        readable = os.open(".", os.O_RDONLY | calls.O_DIRECTORY, dir_fd=folder)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


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


def _open(folder: int, name: str) -> int:
    return os.open(name, os.O_RDONLY | calls.O_NOFOLLOW | calls.O_NONBLOCK, dir_fd=folder)
