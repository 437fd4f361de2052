"""The files of hosts on disk: read as they are, written whole or not at all.

A link stays a link: its target is changed, as long as that lies where the host's files lie. A link that leads elsewhere
is refused, because other people write into a project's folder, too (T28). Modes are kept.
"""

import os
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.system.real_path import real_path

MAX_BYTES = 16 * 1024 * 1024
"""Of a host's file. Claude Code keeps its history in the file that its MCP servers are in, and that may be large."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file as it is now."""

    path: str
    """As the host spells it."""
    target: str
    """Its real path: another one where there are links on the way."""
    content: bytes | None
    """None: there is no such file."""
    mode: int | None = None


def read_host_file(path: str, within: str) -> HostFile:
    """Read a file; raises `Refused` for what is not a file, leads out of `within`, or is too large."""
    target = real_path(path)
    border = real_path(within)
    if os.path.commonpath([target, border]) != border:
        hint = f"It must lead to a file below {border}. Change {target} by hand, or replace the link."
        raise Refused(Code.OUTSIDE_WORKSPACE, f"{path} leads to {target}", hint=hint)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return HostFile(path, target, None)
    except OSError as error:
        raise Refused(Code.FILE_UNREADABLE, f"{path} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(Code.NOT_A_FILE, f"{path} is not a file", hint="Move it away, then run setup again.")
        if status.st_size > MAX_BYTES:
            raise Refused(Code.LIMIT_EXCEEDED, f"{path} has {status.st_size} bytes, more than {MAX_BYTES}")
        with open(descriptor, "rb", closefd=False) as file:
            return HostFile(path, target, file.read(), stat.S_IMODE(status.st_mode))
    finally:
        os.close(descriptor)


def missing_folders(path: str) -> tuple[str, ...]:
    """The folders that must be created for a file, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def write(target: str, content: bytes | None, mode: int) -> None:
    """Replace the content atomically, or remove the file for None; raises `Unavailable` when nothing has changed."""
    try:
        if content is None:
            with suppress(FileNotFoundError):
                os.unlink(target)
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _replace(target, content, mode)
    except OSError as error:
        raise Unavailable(Code.FILE_UNREADABLE, f"{target} cannot be written: {error.strerror}") from None


def remove_empty(folders: Sequence[str]) -> list[str]:
    """Remove those folders that are empty, the innermost first; returns the others."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)
    return [folder for folder in folders if os.path.isdir(folder)]


def usual_mode(*, executable: bool) -> int:
    """The mode of a new file under the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return (0o777 if executable else 0o666) & ~mask


def _replace(target: str, content: bytes, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".pilotfish-", dir=os.path.dirname(target))
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
