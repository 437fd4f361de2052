"""The files of hosts on disk: read as they are, written whole or not at all.

A link stays a link: what it leads to is changed, as long as that lies where the host's files lie. What leads elsewhere
is refused, because a project's folder is written by strangers, too (T28). Modes stay as they are.
"""

import os
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pilotfish.errors import Code, Refused, Unavailable

MAX_BYTES = 16 * 1024 * 1024
"""Of a host's file. Claude Code keeps its history in the file that its MCP servers are in, and that may be large."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it is now."""

    path: str
    """As the host names it."""
    target: str
    """Where that leads: the same, unless there are links on the way."""
    content: bytes | None
    """None: there is no such file."""
    mode: int | None = None


def found(path: str, within: str) -> Found:
    """Look at a file; raises `Refused` for what is none, leads out of `within`, or is too large."""
    target = os.path.realpath(path)
    border = os.path.realpath(within)
    if os.path.commonpath([target, border]) != border:
        hint = f"It would have to be inside of {border}. Change {target} by hand, or replace the link."
        raise Refused(Code.OUTSIDE_WORKSPACE, f"{path} leads to {target}", hint=hint)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return Found(path, target, None)
    except OSError as error:
        raise Refused(Code.FILE_UNREADABLE, f"{path} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(Code.NOT_A_FILE, f"{path} is not a file", hint="Move it away, then run setup again.")
        if status.st_size > MAX_BYTES:
            raise Refused(Code.LIMIT_EXCEEDED, f"{path} has {status.st_size} bytes, more than {MAX_BYTES}")
        with open(descriptor, "rb", closefd=False) as file:
            return Found(path, target, file.read(), stat.S_IMODE(status.st_mode))
    finally:
        os.close(descriptor)


def missing_folders(path: str) -> tuple[str, ...]:
    """The folders that have to be made for a file, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return tuple(missing)


def write(target: str, content: bytes | None, mode: int) -> None:
    """Put the content there at once, or the file away; raises `Unavailable`, and then nothing has changed."""
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
    """Remove folders, the innermost first, unless something is in them; returns those that are still there."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)
    return [folder for folder in folders if os.path.isdir(folder)]


def usual_mode(*, executable: bool) -> int:
    """The mode of a new file, as the user wants new files to be."""
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
